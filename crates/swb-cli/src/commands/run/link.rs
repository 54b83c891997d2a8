//! The line to an agent: commands one way, frames the other.
//!
//! The seam between what drives an agent and where the agent runs. [`super::child`] makes such a line to a process of its
//! own; whatever else can carry frames may make one, too.

use std::time::Duration;

use serde::Serialize;
use swb_proto::agent::{Frame, decode_event, encode};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// How long an agent may take to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something the agent said.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) frame: Frame,
    /// As it came, without its newline.
    pub(super) line: Vec<u8>,
}

impl Incoming {
    /// A line that is no frame is passed over like one of a later version.
    pub(super) fn decode(line: &[u8]) -> Self {
        Incoming { frame: decode_event(line).unwrap_or(Frame::Unknown), line: line.to_vec() }
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
    pub(super) commands: mpsc::UnboundedSender<Vec<u8>>,
    /// Told when the agent has ended.
    pub(super) ended: oneshot::Receiver<Ended>,
    /// Ends it at once, whatever it is doing.
    pub(super) kill: AbortHandle,
}

impl Link {
    /// Sends a command. One to an agent that has ended is lost, and its end is told elsewhere.
    pub(super) fn send(&self, command: &impl Serialize) {
        let mut line = Vec::new();
        if encode(command, &mut line).is_ok() {
            let _ = self.commands.send(line);
        }
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
