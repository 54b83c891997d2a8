//! Whose process is at the other end of a socket.
//!
//! Everything here runs as one user, so a user id proves little. What a process cannot change is its ancestry: whoever
//! was started below a host stays below it, since the host adopts its orphans. Such a process is that host's child,
//! whatever it says, and commands no host.

use rustix::process::{Pid, getpid};
use tokio::net::UnixStream;

/// How far up is looked. Deeper trees are answered as if they were below a host: in doubt, no.
const MOST_ANCESTORS: usize = 256;

/// Whether whoever connected may command a host: the same user, and not from below any host.
pub(crate) fn may_command(stream: &UnixStream) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    let same_user = peer.uid() == rustix::process::geteuid().as_raw();
    same_user && peer.pid().and_then(Pid::from_raw).is_some_and(|pid| !is_below_a_host(pid))
}

/// Whether any ancestor of the process, or the process itself, is a host.
pub fn is_below_a_host(process: Pid) -> bool {
    let mut at = process;
    for _ in 0..MOST_ANCESTORS {
        if at == getpid() && at != process || is_host(at) {
            return true;
        }
        match parent(at) {
            // The top of the tree, or of what can be seen of it.
            Some(None) => return false,
            Some(Some(above)) => at = above,
            // It ended while it was looked at. Its orphans have a new parent; nobody is let in on a guess.
            None => return true,
        }
    }
    true
}

/// The parent of a process: `None` if there is no such process, `Some(None)` at the top.
fn parent(process: Pid) -> Option<Option<Pid>> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name in parentheses may hold anything, also parentheses and spaces.
    let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Pid::from_raw(parent))
}

/// Recognised by how it was started: a process can pretend to be a host, and only loses by it.
fn is_host(process: Pid) -> bool {
    let Ok(line) = std::fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero())) else { return false };
    let mut words = line.split(|byte| *byte == 0);
    words.nth(1) == Some(crate::entry::HOST.as_bytes())
        && words.next().is_some_and(|word| word.starts_with(b"{"))
}
