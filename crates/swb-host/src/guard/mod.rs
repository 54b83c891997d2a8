//! A command that does not outlive whoever started it, not even when that is killed.
//!
//! Between the two stands a process of this program, the guard. It is the subreaper of the command, so that nothing the
//! command starts leads out of its tree, and it watches the one that started it: at that one's death, or when it is told,
//! it ends the whole tree. So the kernel's word is enough, and nobody has to say goodbye.
//!
//! ```text
//!  starter ── Guarded ──► guard (subreaper) ──► command ──► whatever it starts
//!     ▲                     │ watches the starter (pidfd)
//!     └───── report ────────┘ how the command ended (the guard's stderr)
//! ```
//!
//! What a command leaves running in the background stays under its guard until that ends, too, or the starter does. Who
//! kills the guard itself gets rid of this protection; what is left is then the starter's again, if that is a subreaper.
//! Proof: `crates/swb-cli/tests/rpc/guarding.rs`, with the real binary.

mod keeper;

use std::ffi::OsStr;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

use crate::entry::{GUARD, this_program};
use crate::group::Group;

pub(crate) use keeper::keep;

/// How long a guard may take to end what it guards.
const PATIENCE: Duration = Duration::from_secs(2);
/// No report is longer.
const REPORT_BYTES: u64 = 1024;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It has never begun, for this reason.
    NotStarted(String),
    /// Nobody knows: its guard was killed.
    Unknown,
}

/// A command with its guard. Dropped before it was released, the whole tree ends.
#[derive(Debug)]
pub struct Guarded {
    guard: Option<Group>,
    report: Receiver,
}

impl Guarded {
    /// Starts a command under a guard. Folder, environment and stdout are set by `prepare`; stderr goes where stdout goes.
    pub fn spawn(
        program: &OsStr,
        arguments: &[&OsStr],
        prepare: impl FnOnce(&mut Command) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(this_program());
        command.arg0("swb").args([GUARD, &std::process::id().to_string(), "--"]).arg(program).args(arguments);
        command.stdin(Stdio::null());
        prepare(&mut command)?;
        command.stderr(writer);
        let guard = Group::spawn(&mut command)?;
        // Our copy of the writing end goes with the command: the guard's end is then the end of the report.
        drop(command);
        Ok(Guarded { guard: Some(guard), report: Receiver::from_owned_fd(reader.into())? })
    }

    /// Waits for the end of the command. What it has started may go on.
    pub async fn wait(&mut self) -> End {
        let mut text = String::new();
        // A guard that is killed in the middle of its word has said nothing.
        let _ = (&mut self.report).take(REPORT_BYTES).read_to_string(&mut text).await;
        keeper::read_report(&text)
    }

    /// Ends the whole tree, and returns when it has ended.
    pub async fn end(mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        tell(&guard);
        if tokio::time::timeout(PATIENCE, guard.wait()).await.is_err() {
            guard.kill();
            let _ = guard.wait().await;
        }
    }

    /// Lets what the command has left behind go on, under its guard.
    pub fn release(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.release();
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            tell(&guard);
            guard.release();
        }
    }
}

/// Tells a guard to end, also one that was stopped.
fn tell(guard: &Group) {
    guard.signal(Signal::TERM);
    guard.signal(Signal::CONT);
}
