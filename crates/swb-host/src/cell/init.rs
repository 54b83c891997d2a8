//! Process 1 of a cell.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, wait};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};

use crate::signals::Signals;
use crate::wire::Exit;

/// Runs the command, reaps whatever ends in the cell, and writes to `says_how` how the command ended.
pub(crate) fn init(says_how: &Path, inner: &[OsString]) -> io::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // After this nobody can die unnoticed: had the one above gone before, its place would be gone, too.
    let says_how = OpenOptions::new().write(true).open(says_how)?;
    // Processes outside are not to be seen.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| {
        io::Error::new(io::Error::from(error).kind(), format!("no /proc of its own: {error}"))
    })?;
    give_up_capabilities()?;

    let (program, args) = inner.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut signals = Signals::listen()?;
    let child = Command::new(program).args(args).process_group(0).spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display()))
    })?;
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other)?;
    let status = signals.relay(number, || reap(number))?;
    let exit = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    };
    serde_json::to_writer(says_how, &exit)?;
    Ok(ExitCode::SUCCESS)
}

/// Reaps everybody who has ended. The status of the one that matters, once it is among them.
fn reap(wanted: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((number, status))) = wait(WaitOptions::NOHANG) {
        if number == wanted {
            found = Some(status);
        }
    }
    found
}

/// Nothing started from here on has any, whatever user it runs as and whatever file it executes.
fn give_up_capabilities() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // One that this kernel does not know.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(set_no_new_privs(true)?)
}
