//! `swb run`: one prompt to an agent, and the answer as it comes.
//!
//! * `prompt` – what is said, and in which session.
//! * `link` – the line to an agent: `daemon` makes one to a run of the daemon, which is started if it is not there;
//!   `direct` and `child` one to a process of our own, where no daemon is wanted.
//! * `drive` – the turn; `signals` – what may come in between.
//! * `view`, `screen` – what is shown of it: on a terminal, in a file, to a program.

mod child;
pub(crate) mod daemon;
mod direct;
mod drive;
mod link;
mod prompt;
mod screen;
mod signals;
mod view;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueHint};

use super::rpc::{ToolMode, profile_name};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;
use crate::terminal::keyboard::Keyboard;
use screen::{Screen, Size};
use signals::Signals;
use view::View;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` or nothing reads it from standard input.
    prompt: Option<String>,
    /// Which agent works: `builtin`, or one that the configuration names.
    #[arg(long, value_name = "NAME", conflicts_with = "no_daemon")]
    agent: Option<String>,
    /// Return at once and print the session; what needs an approval waits for one.
    #[arg(long, short, conflicts_with = "no_daemon")]
    detach: bool,
    /// Go on with a session: the latest of this project, or the one of this id.
    #[arg(long = "continue", short = 'c', value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,
    /// The model, also of a session that goes on; `demo` needs neither key nor network.
    #[arg(long, short, value_name = "ID")]
    model: Option<String>,
    /// Keep sessions apart under this name, with settings and a system prompt of its own.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
    /// Run the agent as a child of this command, in this folder; it ends with the command.
    #[arg(long)]
    no_daemon: bool,
    /// With --no-daemon: what tools may do without asking; `workspace` unless agent.tool_mode says otherwise.
    #[arg(long, value_enum)]
    mode: Option<ToolMode>,
    /// With --no-daemon: a file that belongs to the prompt: an image, a PDF or a text. May be given several times.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    attach: Vec<PathBuf>,
    /// With --no-daemon: the system prompt, or a file that holds it.
    #[arg(long, short, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    system: Option<String>,
}

pub(crate) async fn run(mut args: RunArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let said = prompt::sort(args.resume.take(), args.prompt.take());
    if args.no_daemon {
        return direct::run(args, said, set, io).await;
    }
    for (option, is_given, instead) in [
        (
            "--mode",
            args.mode.is_some(),
            "what agents of the daemon may do is decided by the policy: `swb policy rules`",
        ),
        ("--attach", !args.attach.is_empty(), "name the file in the prompt, if it lies in the project"),
        ("--system", args.system.is_some(), "a profile has a system prompt of its own: docs/agent.md"),
    ] {
        if is_given {
            return Err(Failure::new(format!("{option} works only with --no-daemon"))
                .code(exit_code::USAGE)
                .hint(format!("add --no-daemon; or: {instead}")));
        }
    }
    daemon::run(args, said, set, io).await
}

/// Where somebody or something looks on.
#[derive(Debug)]
struct Seat {
    view: View,
    keyboard: Option<Keyboard>,
    signals: Signals,
}

impl Seat {
    /// Taken before anything is shown, because the terminal must be put back whatever happens.
    fn take(io: &Io) -> Result<Self, Failure> {
        let draws = !io.json && draws();
        let signals = Signals::listen(draws)?;
        let keyboard = if draws { Keyboard::take() } else { None };
        let view = match (io.json, draws) {
            (true, _) => View::Json(Vec::new()),
            (false, true) => {
                View::Screen(Box::new(Screen::new(Size::now(), io.is_colourful(), Instant::now())))
            }
            (false, false) => View::Answer(view::Answer::default()),
        };
        Ok(Seat { view, keyboard, signals })
    }
}

/// Whether there is a terminal that can be drawn on.
fn draws() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
