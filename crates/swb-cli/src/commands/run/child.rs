//! An agent in a process of its own: `swb rpc`, driven over its pipes. No daemon is needed.
//!
//! The agent ends when the line to it is dropped, because its standard input ends then; if it does not, it is killed.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use swb_bus::transport::line_buffer::{Line, LineBuffer};
use swb_proto::agent::encode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::link::{Ended, Incoming, Link, Word};
use crate::failure::Failure;

/// Frames that may wait; then the pipe fills and the agent waits.
const WAITING: usize = 64;
/// A result may be long; one that is longer than this is dropped.
const LONGEST_FRAME: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// How much of standard error is kept.
const KEPT_BYTES: usize = 8 * 1024;

/// Starts it.
pub(super) fn start(arguments: &[OsString]) -> Result<Link, Failure> {
    let failed = |error| Failure::new("the agent cannot be started").because(error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
    let (commands, written) = mpsc::unbounded_channel();
    let (spoken, frames) = mpsc::channel(WAITING);
    let (told, ended) = oneshot::channel();
    if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
        tokio::spawn(write(stdin, written));
        tokio::spawn(read(stdout, spoken));
    }
    let kill = tokio::spawn(watch(child, told)).abort_handle();
    Ok(Link { frames, commands, ended, kill })
}

async fn write(mut stdin: ChildStdin, mut words: mpsc::UnboundedReceiver<Word>) {
    while let Some(word) = words.recv().await {
        let mut line = Vec::new();
        let encoded = match word {
            Word::Contract(command) => encode(&command, &mut line),
            Word::Added(command) => encode(&command, &mut line),
        };
        if encoded.is_ok() && stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read(mut stdout: ChildStdout, frames: mpsc::Sender<Incoming>) {
    let mut lines = LineBuffer::new(LONGEST_FRAME);
    loop {
        let space = lines.space();
        space.reserve(READ_BYTES);
        match stdout.read_buf(space).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while let Some(line) = lines.next() {
            let Line::Whole(line) = line else { continue };
            if frames.send(Incoming::decode(line)).await.is_err() {
                return;
            }
        }
    }
}

/// Waits for the end. Dropped before it, the process is killed.
async fn watch(mut child: Child, told: oneshot::Sender<Ended>) {
    let stderr = child.stderr.take();
    let (status, said) = tokio::join!(child.wait(), last_words(stderr));
    let code = status.as_ref().ok().and_then(ExitStatus::code).and_then(|code| u8::try_from(code).ok());
    let _ = told.send(Ended { how: status.map_or_else(|error| error.to_string(), in_words), code, said });
}

/// The end of what is printed beside the protocol.
async fn last_words(stderr: Option<ChildStderr>) -> String {
    let mut kept = Vec::new();
    if let Some(mut stderr) = stderr {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
            kept.extend_from_slice(&bytes[..count]);
            let surplus = kept.len().saturating_sub(KEPT_BYTES);
            kept.drain(..surplus);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}
