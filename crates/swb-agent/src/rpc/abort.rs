//! Abort: end what is running, forget what waits, and say so in order.

use super::reply::{Nothing, Outcome};
use super::{Agent, Gone};
use crate::cancel::Cancel;

impl Agent {
    /// Ends everything that is under way. The answer comes when it has ended.
    pub(super) async fn abort(&mut self, id: String) -> Result<(), Gone> {
        self.aborts.push(id);
        self.dropped.extend(self.queue.clear());
        self.cancel_all();
        self.settle().await
    }

    pub(super) fn cancel_all(&mut self) {
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
        }
        if let Some(compaction) = &self.compaction {
            compaction.cancel.cancel();
        }
        self.calls_cancel.cancel();
        self.toolbox.subagents.cancel_all();
    }

    /// Once nothing runs any more: answers what was dropped, then the aborts.
    pub(super) async fn settle(&mut self) -> Result<(), Gone> {
        if !self.is_idle() || self.toolbox.subagents.are_ending() {
            return Ok(());
        }
        if self.calls_cancel.is_cancelled() {
            self.calls_cancel = Cancel::new();
        }
        for waiting in std::mem::take(&mut self.dropped) {
            self.respond(&waiting.id, waiting.command, &Outcome::cancelled()).await?;
        }
        for id in std::mem::take(&mut self.aborts) {
            self.respond(&id, "abort", &Nothing::default()).await?;
        }
        Ok(())
    }
}
