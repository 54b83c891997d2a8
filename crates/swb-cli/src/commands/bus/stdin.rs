//! A body from standard input, without ever waiting for one that will not come.
//!
//! A terminal or `/dev/null` has no body. A pipe is read to its end, but a pipe that some parent left open and never
//! writes to would keep us for ever: if nothing comes for a while, that is an error and nothing is posted.

use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::Failure;

/// Everything on standard input; empty if it is a terminal or another character device.
pub(super) fn body(patience: Duration) -> Result<Vec<u8>, Failure> {
    let mut stdin = std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?);
    if stdin.metadata()?.file_type().is_char_device() {
        return Ok(Vec::new());
    }
    let mut body = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        if !patience.is_zero() && !is_ready(&stdin, patience)? {
            let message =
                format!("nothing came on standard input for {} s; nothing was posted", patience.as_secs());
            return Err(Failure::new(message)
                .hint("give the text with --body, or close standard input with </dev/null"));
        }
        match stdin.read(&mut chunk) {
            Ok(0) => return Ok(body),
            Ok(n) => body.extend_from_slice(&chunk[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::new("cannot read standard input").because(error)),
        }
    }
}

fn is_ready(stdin: &std::fs::File, patience: Duration) -> Result<bool, Failure> {
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(Failure::new("cannot wait for standard input").because(error)),
    }
}
