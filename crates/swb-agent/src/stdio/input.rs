//! Commands on their way in.
//!
//! One thread reads and does nothing else, so that commands are taken in the moment they come, also while the agent is
//! still starting. A line over the limit is dropped while it streams. What is not handled yet waits in a short queue;
//! when that is full the pipe fills and the parent waits. A second thread only watches for the parent's end of the pipe
//! to close, which the first one learns late when nobody takes what it has read.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, poll};
use swb_bus::transport::line_buffer::{Line, LineBuffer};
use swb_proto::agent::{BadFrame, MAX_FRAME_BYTES, Request, decode};
use tokio::sync::{mpsc, watch};

const READ_BYTES: usize = 64 * 1024;
/// Each may be as long as a line may be.
const WAITING: usize = 8;

/// What came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Request),
    Bad(BadFrame),
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) requests: mpsc::Receiver<Incoming>,
    /// Becomes true when the parent has closed its end, even if nobody takes requests at that time.
    pub(crate) ended: watch::Receiver<bool>,
}

impl Input {
    /// Starts reading.
    pub(crate) fn start(file: File) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(WAITING);
        let (closed, ended) = watch::channel(false);
        let (watched, read_to_end) = (file.try_clone()?, closed.clone());
        std::thread::spawn(move || {
            read(file, &sender);
            read_to_end.send_replace(true);
        });
        std::thread::spawn(move || {
            wait_for_writer_to_go(&watched);
            closed.send_replace(true);
        });
        Ok(Input { requests, ended })
    }
}

fn wait_for_writer_to_go(file: &File) {
    // A pipe hangs up by itself; a socket whose writing half was shut has to be asked about.
    let mut fds = [PollFd::new(file, PollFlags::RDHUP)];
    loop {
        let woken = poll(&mut fds, None);
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if woken.is_ok() && fds[0].revents().intersects(gone) {
            return;
        }
    }
}

fn read(mut file: File, sender: &mpsc::Sender<Incoming>) {
    let mut lines = LineBuffer::new(MAX_FRAME_BYTES);
    loop {
        let space = lines.space();
        let begin = space.len();
        space.resize(begin + READ_BYTES, 0);
        let count = match file.read(&mut space[begin..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                space.truncate(begin);
                continue;
            }
            Err(_) => 0,
        };
        space.truncate(begin + count);
        if count == 0 {
            // A last line needs no newline.
            space.push(b'\n');
        }
        while let Some(line) = lines.next() {
            if let Some(incoming) = judge(&line)
                && sender.blocking_send(incoming).is_err()
            {
                return;
            }
        }
        if count == 0 {
            return;
        }
    }
}

fn judge(line: &Line<'_>) -> Option<Incoming> {
    match line {
        Line::Whole(line) => match decode(line) {
            Ok(request) => request.map(Incoming::Request),
            Err(bad) => Some(Incoming::Bad(bad)),
        },
        // The contract says that this error has no id.
        Line::Oversized(_) => {
            Some(Incoming::Bad(BadFrame { id: None, message: "frame exceeds 1 MiB limit".to_owned() }))
        }
    }
}
