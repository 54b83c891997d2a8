//! Whose process is at the other end of a socket.
//!
//! Everything here runs as one user, so a user id proves little. What a process cannot change is its ancestry: whoever
//! was started below a host stays below it, since the host adopts its orphans. Such a process is that host's child,
//! whatever it says, and commands no host. Hosts are started by the daemon and never below each other, so the topmost one
//! counts: a process below a host that poses as another host is still the first one's.

use std::path::PathBuf;

use rustix::process::{Pid, getpid};
use tokio::net::UnixStream;

use crate::entry::{self, Told};

/// How far up is looked. Deeper trees are answered as if they were below a host: in doubt, no.
const MOST_ANCESTORS: usize = 256;

/// What stands above a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Above {
    /// No host: a person's process, or the system's.
    NoHost,
    /// This one, known by its socket.
    Host(PathBuf),
    /// It cannot be told. Nobody is let in on a guess.
    Unclear,
}

/// Whether whoever connected may command a host: the same user, and not from below any host.
pub(crate) fn may_command(stream: &UnixStream) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    let same_user = peer.uid() == rustix::process::geteuid().as_raw();
    same_user && peer.pid().and_then(Pid::from_raw).is_some_and(|pid| !is_below_a_host(pid))
}

/// Whether any ancestor of the process, or the process itself, is a host.
fn is_below_a_host(process: Pid) -> bool {
    let is_below_me = ancestors(process).any(|at| at == Ok(getpid())) && process != getpid();
    is_below_me || above(process) != Above::NoHost
}

/// The host above whoever connected.
pub fn above_peer(stream: &UnixStream) -> Above {
    match stream.peer_cred().ok().and_then(|peer| peer.pid()).and_then(Pid::from_raw) {
        Some(pid) => above(pid),
        None => Above::Unclear,
    }
}

/// Whether whoever connected is in a cell: it has another view of the processes there are than we have.
pub fn peer_is_in_cell(stream: &UnixStream) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let theirs = peer.and_then(|pid| namespace(&pid.to_string()));
    theirs.is_some() && theirs != namespace("self")
}

/// The topmost host above a process, or the process itself if it is one.
pub fn above(process: Pid) -> Above {
    let mut found = Above::NoHost;
    for at in ancestors(process) {
        match at {
            Ok(at) => {
                if let Some(host) = as_host(at) {
                    found = host;
                }
            }
            Err(Lost) => return Above::Unclear,
        }
    }
    found
}

/// The way to the top was lost: a process ended while it was looked at, or there is no end of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lost;

/// The process, its parent, and so on to the top.
fn ancestors(process: Pid) -> impl Iterator<Item = Result<Pid, Lost>> {
    let mut next = Some(Ok(process));
    let mut steps = 0;
    std::iter::from_fn(move || {
        let at = next.take()?;
        if let Ok(at) = at {
            steps += 1;
            next = match parent(at) {
                Some(None) => None,
                Some(Some(above)) if steps < MOST_ANCESTORS => Some(Ok(above)),
                _ => Some(Err(Lost)),
            };
        }
        Some(at)
    })
}

/// The parent of a process: `None` if there is no such process, `Some(None)` at the top.
pub(crate) fn parent(process: Pid) -> Option<Option<Pid>> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name in parentheses may hold anything, also parentheses and spaces.
    let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Pid::from_raw(parent))
}

/// Recognised by how it was started: a process can pretend to be a host, and only loses by it.
pub(crate) fn as_host(process: Pid) -> Option<Above> {
    let line = std::fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero())).ok()?;
    let mut words = line.split(|byte| *byte == 0).skip(1);
    let (name, told) = (words.next()?, words.next()?);
    if name != entry::HOST.as_bytes() || !told.starts_with(b"{") {
        return None;
    }
    Some(serde_json::from_slice(told).map_or(Above::Unclear, |told: Told| Above::Host(told.socket)))
}
