//! The first step into a cell: out of the namespaces of the house.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, getpid, kill_process, set_parent_process_death_signal,
    waitpid,
};
use rustix::thread::UnshareFlags;

use super::Walls;
use crate::entry;
use crate::signals::Signals;
use crate::wire::Exit;

/// Builds the cell, runs the command in it, and ends as the command ended. Must be called before there is any thread.
pub(crate) fn enter(walls: &Walls, inner: &[OsString]) -> io::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    leave_the_house().map_err(|error| io::Error::new(error.kind(), format!("no namespaces: {error}")))?;
    // What is mounted here is seen here only.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let here = std::env::current_dir();
    walls.build()?;
    // What lies over a folder is not seen from within it: go in again.
    if here.and_then(std::env::set_current_dir).is_err() {
        std::env::set_current_dir("/")?;
    }

    let mut signals = Signals::listen()?;
    // The child's real end comes back this way: process 1 of a namespace cannot die of a signal of its own choice. It is
    // not inherited but found by its place, so that nothing in the cell can hold or forge it.
    let (mut ended, says_how) = std::io::pipe()?;
    let place = format!("/proc/{}/fd/{}", std::process::id(), says_how.as_raw_fd());
    let mut init = Command::new(entry::this_program());
    init.arg(entry::CELL_INIT).arg(place).arg("--").args(inner);
    let init = init.process_group(0).spawn()?;
    let number = i32::try_from(init.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other)?;
    let status = signals.relay(number, || waitpid(Some(number), WaitOptions::NOHANG).ok().flatten())?.1;

    drop(says_how);
    let mut how = String::new();
    ended.read_to_string(&mut how)?;
    match serde_json::from_str(&how) {
        Ok(Exit::Code(code)) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        Ok(Exit::Signal(signal)) => die_of(signal),
        // It could not say: it was killed, or it never came so far and has complained.
        Err(_) => status.terminating_signal().map_or_else(|| Ok(ExitCode::from(entry::CANNOT)), die_of),
    }
}

fn die_of(signal: i32) -> io::Result<ExitCode> {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}

fn leave_the_house() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    #[expect(
        deprecated,
        reason = "what is unsafe about it concerns file descriptor tables, which stay as they are"
    )]
    rustix::thread::unshare(flags)?;
    // Files look the same inside as outside: the same user, and nobody else.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
