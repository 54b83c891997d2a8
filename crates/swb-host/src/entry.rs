//! The programs of this room within the one binary: how they are named, started and told what to do.
//!
//! They are kept out of the command line that people see, and are looked for before anything else is set up: the way into
//! a cell must be walked by a process with one thread.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::cell::{self, Walls};
use crate::guard;
use crate::host::{self, Control, Options};
use crate::output::Limits;

/// The name of the host. [`crate::lineage`] knows hosts by it.
pub(crate) const HOST: &str = "host";
pub(crate) const CELL: &str = "cell";
pub(crate) const CELL_INIT: &str = "cell-init";
/// Stands between a command and whoever started it.
pub(crate) const GUARD: &str = "guard";
/// Becomes a command that dies with its parent.
pub(crate) const LEASH: &str = "leash";
/// Tries out a cell.
pub(crate) const NOTHING: &str = "cell-nothing";
/// The exit code of a cell that could not be built. As with `env` and `nohup`, the command was not run.
pub(crate) const CANNOT: u8 = 125;

/// This binary, also for a child in a cell, whatever has become of its file since it was started.
#[must_use]
pub fn this_program() -> &'static str {
    "/proc/self/exe"
}

/// What a host is told on its command line, besides the command. Hosts and those who start them are of one binary.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) socket: PathBuf,
    pub(crate) ring: usize,
    pub(crate) cap: u64,
    pub(crate) walls: Option<Walls>,
}

/// Runs one of this room's programs if the arguments name it.
pub fn run(args: Vec<OsString>) -> Option<ExitCode> {
    let result = match (args.get(1)?.to_str()?, args.get(2), args.get(4..)) {
        (NOTHING, ..) => Ok(ExitCode::SUCCESS),
        (HOST, Some(told), Some(command)) => be_host(told, command),
        (CELL, Some(walls), Some(command)) => {
            read(walls).and_then(|walls: Walls| cell::enter(&walls, command))
        }
        (CELL_INIT, Some(place), Some(command)) => cell::init(place.as_ref(), command),
        (GUARD, Some(starter), Some(command)) => guard::keep(starter, command),
        (LEASH, Some(parent), Some(command)) => put_on_leash(parent, command),
        _ => return None,
    };
    Some(result.unwrap_or_else(|error| {
        crate::complain(&error.to_string());
        ExitCode::from(CANNOT)
    }))
}

fn read<'a, T: Deserialize<'a>>(json: &'a OsStr) -> io::Result<T> {
    let json = json.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(serde_json::from_str(json)?)
}

fn be_host(told: &OsStr, command: &[OsString]) -> io::Result<ExitCode> {
    let Told { socket, ring, cap, walls } = read(told)?;
    let options = Options {
        socket,
        limits: Limits { ring, cap },
        walls,
        // It was started there, and with them.
        folder: None,
        environment: Vec::new(),
        command: command.to_vec(),
    };
    // No signal from a terminal reaches it. That it leads a session already is as good.
    let _ = rustix::process::setsid();
    // Before anything else is opened, so that the child's end has a number of one digit: more is too much for some shells.
    let control = Control::open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(host::run(options, control, say_ready))?;
    Ok(ExitCode::SUCCESS)
}

/// The child of a host without a cell: it at least does not outlive a host that is killed.
fn put_on_leash(parent: &OsStr, command: &[OsString]) -> io::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|above| parent != above.as_raw_nonzero().to_string().as_str()) {
        // It is dead already.
        return Ok(ExitCode::from(CANNOT));
    }
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let error = Command::new(program).args(args).exec();
    Err(io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display())))
}

/// Whoever started the host waits for this line; afterwards nobody listens there.
fn say_ready() -> io::Result<()> {
    io::stdout().write_all(b"ready\n")?;
    io::stdout().flush()?;
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}
