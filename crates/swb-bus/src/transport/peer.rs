//! Who is at the other end of a socket. The only place that asks the kernel, and the only one that differs by system.

use std::io;

use tokio::net::UnixStream;

/// Whether the peer runs as the same user as this process.
pub(super) fn is_same_user(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}

/// Whether the peer has closed both directions. A peer that only finished writing still wants its answers.
pub(super) fn has_hung_up(stream: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
