//! The `swb` binary: one file per command, and what they share.
//!
//! A command takes parsed arguments and an `Io`, and returns or fails with a `Failure` that knows its exit code and
//! the next step. Business rules live in the rooms above; here is only what a person or a script sees.
//! It is a library so that completions, man pages and `docs/cli.md` are made from the same tree of arguments.

mod args;
mod commands;
mod connect;
pub mod exit_code;
mod failure;
mod incumbent;
mod io;
mod mcp;
mod plain;
mod project_trust;
pub mod reference;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Command, Inner, Process, Swb};
use failure::Failure;
use io::Io;

/// The tree of all arguments.
pub fn command() -> clap::Command {
    Swb::command()
}

/// Parses, runs, prints an error if there is one. The programs of `swb_host` are not among what can be run.
pub fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    let inner = first.is_some_and(|first| Process::NAMES.iter().any(|name| first == *name));
    let (io, result) = if inner {
        (Io::new(false), run_process(&Inner::parse()))
    } else {
        let swb = match Swb::try_parse() {
            Ok(swb) => swb,
            Err(error) => return usage(&error),
        };
        let io = Io::new(swb.json);
        let result = run(swb, &io);
        (io, result)
    };
    ExitCode::from(result.unwrap_or_else(|failure| io.fail(&failure)))
}

/// Help and version are no errors. Scripts of `swb bus` know only 0 and 1.
fn usage(error: &clap::Error) -> ExitCode {
    if io::is_run_agent() && error.use_stderr() {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        Io::new(false).note(format!("Error: {}", first.trim_start_matches("error: ")));
    } else {
        let _ = error.print();
    }
    let bus = std::env::args_os().nth(1).is_some_and(|first| first == "bus");
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if bus => ExitCode::from(exit_code::FAILURE),
        _ => ExitCode::from(exit_code::USAGE),
    }
}

fn run_process(inner: &Inner) -> Result<u8, Failure> {
    match &inner.process {
        Process::Daemon => commands::daemon::run(&inner.set),
        Process::Watch(args) => commands::watch::run(args, &inner.set),
        Process::Complete => commands::complete::run(&inner.set),
    }
}

fn run(swb: Swb, io: &Io) -> Result<u8, Failure> {
    let set = &swb.set;
    match swb.command {
        Command::Completion(args) => return commands::completion::run(&args, io),
        Command::Man(args) => return commands::man::run(&args, io),
        Command::Schema(args) => return commands::schema::run(&args, io),
        // Before anything is printed or waited for: its parent is already writing.
        Command::Rpc(args) => return commands::rpc::run(args, set),
        Command::ToolsList => return commands::rpc::tools_list(set, io),
        _ => {}
    }
    io.settle(set)?;
    match swb.command {
        Command::Bus(command) => return commands::bus::run(*command, set, io),
        Command::Models(args) => return commands::models::run(&args, set, io),
        Command::Trust(args) => return commands::trust::run(&args, io),
        Command::Policy(command) => return commands::policy::run(*command, set, io),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start the runtime").because(error))?;
    runtime.block_on(async {
        match swb.command {
            Command::Run(args) => commands::run::run(args, set, io).await,
            Command::Agents(args) => commands::agents::agents(&args, io).await,
            Command::Logs(args) => commands::agents::logs(&args, io).await,
            Command::Send(args) => commands::agents::send(args, io).await,
            Command::Cancel(args) => commands::agents::cancel(args, io).await,
            Command::Why(args) => commands::agents::why(&args, io).await,
            Command::Up(args) => commands::up::run(&args, set, io).await,
            Command::Down(args) => commands::down::run(args, io).await,
            Command::Restart => commands::restart::run(set, io).await,
            Command::Status => commands::status::run(io).await,
            Command::Call(args) => commands::call::run(args, io).await,
            Command::Events(args) => commands::events::run(args, io).await,
            Command::Token(args) => commands::token::run(&args, io).await,
            Command::Audit(command) => commands::audit::run(command, io).await,
            Command::Workspaces(args) => commands::workspaces::run(&args, io).await,
            Command::Sessions(args) => commands::sessions::run(&args, io).await,
            Command::Projects(args) => commands::projects::run(&args, io).await,
            Command::Approvals(args) => commands::approvals::run(args, io).await,
            Command::Config(args) => commands::config::run(&args, set, io),
            Command::Doctor => commands::doctor::run(set, io).await,
            Command::Bus(_)
            | Command::Completion(_)
            | Command::Man(_)
            | Command::Schema(_)
            | Command::Rpc(_)
            | Command::Models(_)
            | Command::Policy(_)
            | Command::Trust(_)
            | Command::ToolsList => unreachable!("handled before the runtime started"),
        }
    })
}
