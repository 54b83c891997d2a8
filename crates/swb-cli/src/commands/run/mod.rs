//! `swb run`: one prompt to an agent, and the answer as it comes. No daemon is needed.
//!
//! * `prompt` – what is said, and in which session.
//! * `link`, `child` – the line to the agent, and the process at its other end.
//! * `drive` – the turn; `signals` – what may come in between.
//! * `view`, `screen` – what is shown of it: on a terminal, in a file, to a program.

mod child;
mod drive;
mod link;
mod prompt;
mod screen;
mod signals;
mod view;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum, ValueHint};
use swb_daemon::Paths;

use super::rpc::{ToolMode, profile_name};
use crate::failure::Failure;
use crate::io::Io;
use crate::terminal::keyboard::Keyboard;
use drive::Drive;
use prompt::Wanted;
use screen::{Screen, Size};
use signals::Signals;
use view::View;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` or nothing reads it from standard input.
    prompt: Option<String>,
    /// Go on with a session: the latest of this folder, or the one of this id.
    #[arg(long = "continue", short = 'c', value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,
    /// The model, also of a session that goes on; `demo` needs neither key nor network.
    #[arg(long, short, value_name = "ID")]
    model: Option<String>,
    /// What tools may do without asking; `workspace` unless the setting agent.tool_mode says otherwise.
    #[arg(long, value_enum)]
    mode: Option<ToolMode>,
    /// A file that belongs to the prompt: an image, a PDF or a text. May be given several times.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    attach: Vec<PathBuf>,
    /// The system prompt, or a file that holds it.
    #[arg(long, short, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    system: Option<String>,
    /// Keep sessions apart under this name, with settings and a system prompt of its own.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
}

pub(crate) async fn run(args: RunArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let said = prompt::sort(args.resume, args.prompt);
    let session = match said.session {
        Some(Wanted::Latest) => Some(prompt::latest(&Paths::from_env()?.sessions(args.profile.as_deref()))?),
        Some(Wanted::Id(id)) => Some(id),
        None => None,
    };
    let prompt = prompt::command(prompt::read(said.prompt)?, &args.attach)?;
    let draws = !io.json && draws();
    // Before anything is shown, because it must be put back whatever happens.
    let signals = Signals::listen(draws)?;
    let keyboard = if draws { Keyboard::take() } else { None };

    let mut arguments: Vec<OsString> = vec!["rpc".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // In one word, so that a value may begin with a dash.
            arguments.push(format!("--{name}={value}").into());
        }
    };
    option("continue", session);
    option("system", args.system);
    option("model", args.model);
    option("profile", args.profile);
    let mode = args.mode.and_then(|mode| mode.to_possible_value());
    option("tool-mode", mode.map(|mode| mode.get_name().to_owned()));
    for value in set {
        option("set", Some(value.clone()));
    }
    if keyboard.is_some() {
        arguments.push("--asks".into());
    }
    let link = child::start(&arguments)?;
    let view = match (io.json, draws) {
        (true, _) => View::Json(Vec::new()),
        (false, true) => {
            let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
            View::Screen(Box::new(Screen::new(Size::now(), colour, Instant::now())))
        }
        (false, false) => View::Answer(view::Answer::default()),
    };
    Drive::new(link, view, keyboard, signals).run(&prompt).await
}

/// Whether there is a terminal that can be drawn on.
fn draws() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
