//! `swb rpc`: the agent process that a parent drives over stdin and stdout. No daemon is needed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use swb_agent::mcp::McpOptions;
use swb_agent::model::Thinking;
use swb_agent::{Control, Launch, Mode, Options, RulePlaces, ToolSettings, project_around};
use swb_daemon::{Config, Paths, redaction};
use swb_proto::id;

use crate::exit_code;
use crate::failure::Failure;
use crate::incumbent;
use crate::io::Io;

/// How long an approval waits for its answer.
const ASK_PATIENCE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(crate) struct RpcArgs {
    /// Go on with the session of this id, or the only one whose id contains it.
    #[arg(long = "continue", value_name = "ID")]
    resume: Option<String>,
    /// The system prompt, or a file that holds it.
    #[arg(long, short, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    system: Option<String>,
    /// The model, also of a session that goes on; `demo` needs neither key nor network. For new sessions also $SWB_MODEL
    /// and the setting agent.model.
    #[arg(long, short, value_name = "ID")]
    model: Option<String>,
    /// Keep sessions apart under this name, with settings and a system prompt of its own.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
    /// The session that starts this one, whose subagent it is.
    #[arg(long, value_name = "ID", hide = true)]
    parent: Option<String>,
    /// The id of a new session; whoever runs it knows it by this name.
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "resume", value_parser = session_id)]
    session: Option<String>,
    /// Where its sessions are kept.
    #[arg(long, value_name = "DIR", hide = true)]
    sessions: Option<PathBuf>,
    /// A copy of the user's settings, for where those cannot be seen.
    #[arg(long, value_name = "FILE", hide = true)]
    settings: Option<PathBuf>,
    /// How many agents are above this one.
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    depth: usize,
    /// Let subagents that end in the background begin a turn; it is answered as `auto_turn`. Without it the next turn hears of them.
    #[arg(long)]
    auto_turns: bool,
    /// What tools may do; `workspace` unless the setting agent.tool_mode says otherwise.
    #[arg(long, value_enum)]
    tool_mode: Option<ToolMode>,
    /// Send an `ask` event for what needs approval, and wait for the command `answer`. Without it such calls are denied.
    #[arg(long)]
    asks: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ToolMode {
    /// Look, but change nothing.
    ReadOnly,
    /// Read anything but secrets, write and run inside the working directory, ask for the rest.
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

/// A session is a file, so its name must be one that leads nowhere else.
fn session_id(name: &str) -> Result<String, String> {
    profile_name(name)
}

pub(crate) fn run(args: RpcArgs, set: &[String]) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    // Before anything is redacted.
    redaction::start(&paths.redaction_file())
        .map_err(|error| Failure::new(error.to_string()).code(exit_code::CONFIG))?;
    let profile = args.profile.as_deref();
    let user_file = args.settings.clone().unwrap_or_else(|| paths.config_file());
    let layers = crate::io::layers_over(&user_file, &paths, set, profile)?;
    let config = layers.finish()?;
    let control = Control::from_env(|name| std::env::var(name).ok());
    let control = control.map_err(|error| Failure::new("the agent did not start").because(error))?;
    let system = args.system.as_deref().map(text_or_file).transpose()?;
    let launch = launch(&args, set);
    // Whoever was started by another agent borrows what that one has.
    let mcp = match &args.parent {
        Some(_) => McpOptions::default(),
        None => crate::mcp::options(&paths, &layers, profile)?,
    };
    let options = Options {
        sessions: args.sessions.unwrap_or_else(|| paths.sessions(profile)),
        session: args.session,
        messages: paths.message_root(&config),
        resume: args.resume,
        model: args.model,
        usual_model: usual_model(&config.agent.model),
        system,
        usual_system: usual_system(&paths, profile)?,
        thinking: Thinking::from_name(&config.agent.thinking).unwrap_or_default(),
        compaction_model: Some(config.agent.compaction_model.clone()).filter(|model| !model.is_empty()),
        tools: tool_settings(&config),
        parent: args.parent,
        depth: args.depth,
        launch,
        auto_turns: args.auto_turns,
        mode: match args.tool_mode {
            Some(ToolMode::ReadOnly) => Mode::ReadOnly,
            Some(ToolMode::Workspace) => Mode::Workspace,
            Some(ToolMode::Full) => Mode::Full,
            None => Mode::from_name(&config.agent.tool_mode).unwrap_or_default(),
        },
        asks: args.asks,
        ask_patience: ASK_PATIENCE,
        control,
        rules: Some(RulePlaces {
            config: paths.config.clone(),
            project: std::env::current_dir().ok().and_then(|here| project_around(&here)),
        }),
        models: super::models::settings(&config, incumbent::Settings::read(profile).keys),
        mcp,
    };
    swb_agent::run(options).map_err(|error| Failure::new("the agent did not start").because(error))?;
    Ok(exit_code::SUCCESS)
}

/// How an agent like this one is started: the same program, also when its file was replaced meanwhile.
fn launch(args: &RpcArgs, set: &[String]) -> Launch {
    let itself = PathBuf::from("/proc/self/exe");
    let program =
        if itself.exists() { itself } else { std::env::current_exe().unwrap_or_else(|_| "swb".into()) };
    let mut arguments: Vec<OsString> = vec!["rpc".into()];
    arguments.extend(set.iter().flat_map(|set| ["--set".into(), set.into()]));
    for (flag, value) in [("--profile", &args.profile), ("--system", &args.system)] {
        arguments.extend(value.iter().flat_map(|value| [flag.into(), value.into()]));
    }
    for (flag, value) in [("--sessions", &args.sessions), ("--settings", &args.settings)] {
        arguments.extend(value.iter().flat_map(|value| [flag.into(), value.into()]));
    }
    Launch { program, arguments }
}

/// A value that names a regular file stands for what is in it.
fn text_or_file(value: &str) -> Result<String, Failure> {
    let file = Path::new(value);
    if file.is_file() { read_prompt(file) } else { Ok(value.to_owned()) }
}

fn read_prompt(file: &Path) -> Result<String, Failure> {
    let failed =
        |error| Failure::new(format!("the system prompt {} cannot be read", file.display())).because(error);
    std::fs::read_to_string(file).map_err(failed)
}

/// The system prompt of new sessions: of the profile, the user's, then the incumbent's.
fn usual_system(paths: &Paths, profile: Option<&str>) -> Result<Option<String>, Failure> {
    let of_profile = profile.map(|profile| paths.profile(profile).join("system.md"));
    let theirs = incumbent::base(|name| std::env::var_os(name));
    let theirs = theirs.map(|base| incumbent::file(&base, profile, "system.md"));
    let places = [of_profile, Some(paths.config.join("system.md")), theirs];
    places.into_iter().flatten().find(|file| file.is_file()).map(|file| read_prompt(&file)).transpose()
}

/// The model of new sessions.
pub(crate) fn usual_model(configured: &str) -> Option<String> {
    let variable = std::env::var("SWB_MODEL").ok();
    variable.into_iter().chain([configured.to_owned()]).find(|model| !model.is_empty())
}

fn tool_settings(config: &Config) -> ToolSettings {
    let agent = &config.agent;
    ToolSettings {
        kept_chars: agent.max_tool_output,
        bash_time: Duration::from_secs(agent.bash_timeout_s),
        bash_time_max: Duration::from_secs(agent.bash_max_timeout_s),
        subagent_time: Duration::from_secs(agent.subagent_timeout_s),
        disabled: agent.disabled_tools(),
        hidden_variables: Vec::new(),
    }
}

/// `swb tools_list`: what the agent can do, without starting one.
pub(crate) fn tools_list(set: &[String], io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let layers = crate::io::layers(&paths, set)?;
    let mcp = crate::mcp::options(&paths, &layers, None)?;
    let tools = swb_agent::describe_tools(tool_settings(&layers.finish()?), mcp)?;
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
