//! The child: its start, its streams and its end.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::input::Next;
use super::state::Shared;
use super::{Options, PATIENCE};
use crate::wire::{Containment, Exit, MAX_PIECE, Stream};
use crate::{Group, cell, descendants, entry, mark};

/// Tells the child which of its file descriptors is the control channel.
const CONTROL_FD: &str = "SWB_CONTROL_FD";

/// The two ends of the control channel.
pub(crate) struct Control {
    theirs: OwnedFd,
    ours: std::os::unix::net::UnixStream,
}

impl Control {
    pub(crate) fn open() -> io::Result<Self> {
        let (theirs, ours) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok(Control { theirs: theirs.into(), ours })
    }
}

/// Starts the child and the tasks that look after it.
pub(super) async fn start(
    options: &Options,
    control: Control,
    shared: &Arc<Shared>,
) -> io::Result<JoinSet<()>> {
    let (mut group, containment) = spawn(options, control.theirs).await?;
    let control = UnixStream::from_std(control.ours)?;
    shared.change(|state| {
        state.child_pid = group.id().unwrap_or(0);
        state.containment = containment;
    });
    let (control_reader, control_writer) = control.into_split();
    let missing = || io::Error::other("a pipe of the child is missing");
    let stdin = group.take_stdin().ok_or_else(missing)?;
    let stdout = group.take_stdout().ok_or_else(missing)?;
    let stderr = group.take_stderr().ok_or_else(missing)?;

    let mut readers = JoinSet::new();
    readers.spawn(keep(Arc::clone(shared), Stream::Stdout, stdout));
    readers.spawn(keep(Arc::clone(shared), Stream::Stderr, stderr));
    readers.spawn(keep(Arc::clone(shared), Stream::Control, control_reader));
    let mut tasks = JoinSet::new();
    tasks.spawn(hand_over(Arc::clone(shared), Stream::Stdin, stdin));
    tasks.spawn(hand_over(Arc::clone(shared), Stream::Control, control_writer));
    tasks.spawn(see_to_the_end(Arc::clone(shared), group, readers));
    Ok(tasks)
}

async fn spawn(options: &Options, control: OwnedFd) -> io::Result<(Group, Containment)> {
    // The one file descriptor besides the three that the child keeps.
    fcntl_setfd(&control, FdFlags::empty())?;
    let (mut command, containment) = match &options.walls {
        None => (plain(options), Containment::Off),
        Some(walls) => match cell::try_out(walls).await {
            Ok(()) => (cell::command(walls, &options.command)?, Containment::Namespaces),
            Err(reason) => (plain(options), Containment::Advisory { reason }),
        },
    };
    command.env(mark::VARIABLE, mark::of_this_host(&options.socket)?);
    command.env(CONTROL_FD, control.as_raw_fd().to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let group = Group::spawn(&mut command)?;
    Ok((group, containment))
}

/// Not in a cell, but on a leash.
fn plain(options: &Options) -> Command {
    let mut command = Command::new(entry::this_program());
    command.arg(entry::LEASH).arg(std::process::id().to_string()).arg("--").args(&options.command);
    command
}

/// Reads a stream for as long as it can be kept.
async fn keep(shared: Arc<Shared>, stream: Stream, mut pipe: impl AsyncRead + Unpin) {
    // Room that is not written to before something comes: a quiet child costs its host no memory.
    let mut buffer = Vec::with_capacity(MAX_PIECE);
    loop {
        let room = shared
            .until(|state| state.output(stream).map(|output| output.room()).filter(|room| *room > 0))
            .await;
        buffer.clear();
        match (&mut pipe).take(room.min(MAX_PIECE) as u64).read_buf(&mut buffer).await {
            Ok(n) if n > 0 => {
                shared.change(|state| state.output(stream).into_iter().for_each(|o| o.push(&buffer)));
            }
            // A broken pipe is an end like any other.
            Ok(_) | Err(_) => break,
        }
    }
    shared.change(|state| state.output(stream).into_iter().for_each(|output| output.finish()));
}

/// Writes what was taken for a stream.
async fn hand_over(shared: Arc<Shared>, stream: Stream, mut pipe: impl AsyncWrite + Unpin) {
    loop {
        let next = shared
            .until(|state| match state.input(stream)?.next() {
                Next::Wait => None,
                next => Some(next),
            })
            .await;
        let Next::Write(bytes) = next else { break };
        let written = pipe.write_all(&bytes).await;
        shared.change(|state| {
            let Some(input) = state.input(stream) else { return };
            match written {
                Ok(()) => input.written(bytes.len()),
                Err(_) => input.give_up(),
            }
        });
    }
    let _ = pipe.shutdown().await;
}

/// Waits for the child, ends what it left behind, and says how it ended once everything it said is here.
async fn see_to_the_end(shared: Arc<Shared>, mut group: Group, mut readers: JoinSet<()>) {
    let status = group.wait().await;
    // Whoever holds a pipe open keeps a reader waiting, so the rest of the tree goes first.
    descendants::end_all(PATIENCE).await;
    while readers.join_next().await.is_some() {}
    let exit = match status {
        Ok(status) => status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code),
        Err(_) => Exit::Code(-1),
    };
    shared.change(|state| {
        for stream in Stream::IN {
            state.input(stream).into_iter().for_each(|input| input.give_up());
        }
        state.exit = Some(exit);
    });
}
