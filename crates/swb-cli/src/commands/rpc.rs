//! `swb rpc`: the agent process that a parent drives over stdin and stdout. No daemon is needed.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use swb_agent::{Mode, Options};
use swb_daemon::Paths;
use swb_proto::id;

use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

/// How long an approval waits for its answer.
const ASK_PATIENCE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(crate) struct RpcArgs {
    /// Go on with the session of this id, or the only one whose id contains it.
    #[arg(long = "continue", value_name = "ID")]
    resume: Option<String>,
    /// The system prompt, or a file that holds it.
    #[arg(long, short, value_name = "TEXT|FILE")]
    system: Option<String>,
    /// The model; `demo` needs neither key nor network. Also $SWB_MODEL.
    #[arg(long, short, value_name = "ID")]
    model: Option<String>,
    /// Keep sessions apart under this name, with a system prompt of its own.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
    /// The session that starts this one, whose subagent it is.
    #[arg(long, value_name = "ID", hide = true)]
    parent: Option<String>,
    /// What tools may do.
    #[arg(long, value_enum, default_value_t)]
    tool_mode: ToolMode,
    /// Send an `ask` event for what needs approval, and wait for the command `answer`. Without it such calls are denied.
    #[arg(long)]
    asks: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ToolMode {
    /// Look, but change nothing.
    ReadOnly,
    /// Read anything but secrets, write and run inside the working directory, ask for the rest.
    #[default]
    Workspace,
    /// Anything but what may harm the machine or Switchboard itself, which is asked for.
    Full,
}

/// A profile is a folder, so its name must be one that leads nowhere else.
pub(crate) fn profile_name(name: &str) -> Result<String, String> {
    if name.starts_with('.') {
        return Err("a name does not begin with a dot".to_owned());
    }
    id::check(name).map(|()| name.to_owned()).map_err(|error| error.to_string())
}

pub(crate) fn run(args: RpcArgs, set: &[String]) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let config = crate::io::layers(&paths, set)?.finish()?;
    let mut prompts = vec![paths.config.join("system.md")];
    if let Some(profile) = &args.profile {
        prompts.insert(0, paths.config.join("profiles").join(profile).join("system.md"));
    }
    let options = Options {
        sessions: paths.sessions(args.profile.as_deref()),
        messages: paths.message_root(&config),
        resume: args.resume,
        model: args.model.or_else(|| std::env::var("SWB_MODEL").ok().filter(|model| !model.is_empty())),
        system: args
            .system
            .map(text_or_file)
            .or_else(|| prompts.iter().find_map(|file| std::fs::read_to_string(file).ok())),
        parent: args.parent,
        mode: match args.tool_mode {
            ToolMode::ReadOnly => Mode::ReadOnly,
            ToolMode::Workspace => Mode::Workspace,
            ToolMode::Full => Mode::Full,
        },
        asks: args.asks,
        ask_patience: ASK_PATIENCE,
    };
    swb_agent::run(options).map_err(|error| Failure::new("the agent did not start").because(error))?;
    Ok(exit_code::SUCCESS)
}

/// A value that names a regular file stands for what is in it.
fn text_or_file(value: String) -> String {
    let file = Path::new(&value);
    if file.is_file() { std::fs::read_to_string(file).unwrap_or(value) } else { value }
}

/// `swb tools_list`: what the agent can do, without starting one.
pub(crate) fn tools_list(io: &Io) -> Result<u8, Failure> {
    let tools = swb_agent::describe_tools();
    if io.json {
        io.object(&tools)?;
        return Ok(exit_code::SUCCESS);
    }
    for tool in tools.as_array().into_iter().flatten() {
        let text = |key: &str| tool[key].as_str().unwrap_or_default();
        io.line(format!("{:10} {}", text("name"), text("description")))?;
    }
    Ok(exit_code::SUCCESS)
}
