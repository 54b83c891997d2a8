//! The line to an agent: commands one way, frames the other.
//!
//! The seam between what drives an agent and where the agent runs. [`super::child`] makes such a line to a process of its
//! own, [`super::daemon`] one to a run of the daemon.

use std::time::Duration;

use swb_proto::agent::{AddedCommand, Command, Frame, decode_event};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// How long an agent may take to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something the agent said.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) frame: Frame,
    /// As it came, without its newline; empty if there is nothing that a program should see.
    pub(super) line: Vec<u8>,
    /// Something besides, for a person who looks on.
    pub(super) aside: Option<String>,
}

/// Something for the agent.
#[derive(Debug)]
pub(super) enum Word {
    Contract(Command),
    Added(AddedCommand),
}

impl From<Command> for Word {
    fn from(command: Command) -> Self {
        Word::Contract(command)
    }
}

impl From<AddedCommand> for Word {
    fn from(command: AddedCommand) -> Self {
        Word::Added(command)
    }
}

impl Incoming {
    /// A line that is no frame is passed over like one of a later version.
    pub(super) fn decode(line: &[u8]) -> Self {
        Incoming { frame: decode_event(line).unwrap_or(Frame::Unknown), line: line.to_vec(), aside: None }
    }
}

/// How the agent ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// In words, for people.
    pub(super) how: String,
    /// Its exit code, if it had one.
    pub(super) code: Option<u8>,
    /// The last that it said beside the protocol.
    pub(super) said: String,
}

/// The line.
#[derive(Debug)]
pub(super) struct Link {
    /// What the agent says; ends when it does not speak any more.
    pub(super) frames: mpsc::Receiver<Incoming>,
    pub(super) commands: mpsc::UnboundedSender<Word>,
    /// Told when the agent has ended.
    pub(super) ended: oneshot::Receiver<Ended>,
    /// Ends it at once, whatever it is doing.
    pub(super) kill: AbortHandle,
}

impl Link {
    /// Sends a command. One to an agent that has ended is lost, and its end is told elsewhere.
    pub(super) fn send(&self, command: impl Into<Word>) {
        let _ = self.commands.send(command.into());
    }

    /// Lets go of the agent and waits for its end. What it still says is not heard.
    pub(super) async fn close(self) -> Option<Ended> {
        let Link { frames, commands, ended, kill } = self;
        drop((frames, commands));
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        kill.abort();
        ended.ok()?.ok()
    }
}
