//! The process of a subagent: frames in, frames out, and its end.
//!
//! What we send goes through a short queue and a task of its own, so that neither side ever waits for the other to read
//! first. What it sends is read line by line, and no line is kept that is longer than any frame it could mean to send.
//! The end of its stdin tells it to stop; what has not stopped after a while is killed.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use swb_bus::transport::line_buffer::{Line, LineBuffer};
use swb_host::Group;
use swb_proto::agent::{Frame, decode_event, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// The longest frame: a result of a tool at its limit, with every byte escaped.
const FRAME_BYTES: usize = 8 * 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;
/// How many frames may wait for it to read them.
const WAITING: usize = 32;
/// How much of what it complains about is kept.
const COMPLAINT_BYTES: usize = 2048;

/// Why there is no next frame, or why one could not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("it has ended")]
    Gone,
    #[error("it said something that is not a frame of the protocol")]
    NotAFrame,
    #[error("it sent a frame of more than {FRAME_BYTES} bytes")]
    TooLong,
    #[error("it does not read what it is sent")]
    Deaf,
}

/// A process that speaks the protocol.
#[derive(Debug)]
pub(super) struct Process {
    group: Group,
    orders: Option<mpsc::Sender<Vec<u8>>>,
    stdout: ChildStdout,
    lines: LineBuffer,
    /// How much was read since the last whole line.
    unfinished: usize,
    complaint: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut group = Group::spawn(command)?;
        let missing = || io::Error::other("a pipe is missing");
        let (stdin, stderr) = (group.take_stdin(), group.take_stderr());
        let stdout = group.take_stdout().ok_or_else(missing)?;
        let (orders, queue) = mpsc::channel(WAITING);
        tokio::spawn(write(stdin.ok_or_else(missing)?, queue));
        let complaint = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(listen(stderr.ok_or_else(missing)?, Arc::clone(&complaint)));
        Ok(Process {
            group,
            orders: Some(orders),
            stdout,
            lines: LineBuffer::new(FRAME_BYTES),
            unfinished: 0,
            complaint,
        })
    }

    /// Sends a frame, without waiting.
    pub(super) fn send(&self, frame: &impl Serialize) -> Result<(), Trouble> {
        let mut line = Vec::new();
        // Our own words always have a JSON form.
        if encode(frame, &mut line).is_err() {
            return Ok(());
        }
        let orders = self.orders.as_ref().ok_or(Trouble::Gone)?;
        orders.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Trouble::Deaf,
            mpsc::error::TrySendError::Closed(_) => Trouble::Gone,
        })
    }

    /// The next frame. Nothing is lost when the wait for it is dropped.
    pub(super) async fn next(&mut self) -> Result<Frame, Trouble> {
        loop {
            match self.lines.next() {
                Some(Line::Whole(line)) => {
                    self.unfinished = 0;
                    return decode_event(line).map_err(|_| Trouble::NotAFrame);
                }
                Some(Line::Oversized(_)) => return Err(Trouble::TooLong),
                None => {}
            }
            // Who never comes to the end of a line would be read for ever.
            if self.unfinished > FRAME_BYTES {
                return Err(Trouble::TooLong);
            }
            let space = self.lines.space();
            space.reserve(READ_BYTES);
            match self.stdout.read_buf(space).await {
                Ok(0) | Err(_) => return Err(Trouble::Gone),
                Ok(count) => self.unfinished += count,
            }
        }
    }

    /// No more is sent: whoever reads to the end of its stdin stops.
    pub(super) fn close(&mut self) {
        self.orders = None;
    }

    /// Waits for its end, but not for longer than this; then it is killed with its group.
    pub(super) async fn end(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.close();
        match tokio::time::timeout(patience, self.group.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                self.group.kill();
                self.group.wait().await.ok()
            }
        }
    }

    /// The end of what it has printed to stderr.
    pub(super) fn complaint(&self) -> String {
        let tail = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn listen(mut stderr: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..count]);
        let excess = tail.len().saturating_sub(COMPLAINT_BYTES);
        tail.drain(..excess);
    }
}
