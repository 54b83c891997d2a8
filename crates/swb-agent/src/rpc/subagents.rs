//! What the end of a subagent means for the loop.
//!
//! A turn that is running is told by itself. While none is, the news wait for the next one; for a parent that has said
//! it can take that, they begin one, but only so often in a row without a word of the parent.

use super::{Agent, Gone};
use crate::turn::queue::Waiting;

/// The command that such a turn is answered as.
pub(super) const AUTO_TURN: &str = "auto_turn";
/// How many may follow each other while the parent says nothing.
const MAX_AUTOS: usize = 5;

/// Turns that begin by themselves.
#[derive(Debug, Default)]
pub(super) struct Autos {
    allowed: bool,
    /// Since the parent last spoke.
    in_a_row: usize,
    count: u64,
}

impl Autos {
    /// The parent has said something.
    pub(super) fn heard_of_parent(&mut self) {
        self.in_a_row = 0;
    }
}

impl Agent {
    pub(crate) fn allow_auto_turns(&mut self, allowed: bool) {
        self.autos.allowed = allowed;
    }

    pub(super) async fn subagent_ended(&mut self) -> Result<(), Gone> {
        self.settle().await?;
        self.begin_auto_turn().await
    }

    /// Begins a turn with the news, if there are any and nothing else is to be done.
    pub(super) async fn begin_auto_turn(&mut self) -> Result<(), Gone> {
        let may = self.autos.allowed && self.autos.in_a_row < MAX_AUTOS && self.deadline.is_none();
        if !may || !self.is_idle() || self.queue.len() > 0 {
            return Ok(());
        }
        let Some(message) = self.toolbox.subagents.take_news() else { return Ok(()) };
        self.autos.in_a_row += 1;
        self.autos.count += 1;
        let id = format!("auto:{}", self.autos.count);
        self.start_turn(Waiting { id, command: AUTO_TURN, message }, Vec::new()).await
    }

    /// Whether the turn that is running began by itself.
    pub(super) fn is_auto_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.command == AUTO_TURN)
    }
}
