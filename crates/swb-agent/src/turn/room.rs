//! Room in the model's context: made before it is full, and when the model says that it is.
//!
//! The parent sees a compaction inside a turn as `compaction_start` and `compaction_end`. It can be aborted with the turn
//! and has changed nothing then. If no summary can be written the facts stand alone: the turn has to go on.

use std::sync::Arc;

use swb_proto::agent::{AddedEvent, Message, TurnUsage};

use super::{Turn, TurnError, announced, locked};
use crate::compaction::{self, estimate};

/// So full the context may get, in percent.
const FULL: u64 = 80;
/// So much of it the latest messages may keep as they are.
const KEPT: u64 = 25;
/// A summary of less than this share of the conversation would win nothing.
const WORTHWHILE: u64 = 10;
/// What the latest messages keep if nobody knows how much fits.
const KEPT_TOKENS: u64 = 10_000;

/// Why there is a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The context is nearly full.
    Threshold,
    /// The model says that it is.
    Overflow,
}

impl Need {
    fn name(self) -> &'static str {
        match self {
            Need::Threshold => "threshold",
            Need::Overflow => "overflow",
        }
    }
}

impl Turn {
    /// A message that can never fit is refused before it spoils the history.
    pub(super) fn check_size(&self, message: &Message) -> Result<(), TurnError> {
        let tokens = estimate::message(message);
        match self.context_window {
            Some(window) if tokens > window => Err(TurnError::TooLarge { tokens, window }),
            _ => Ok(()),
        }
    }

    /// Makes room if the context is nearly full.
    pub(super) async fn make_room(&self, usage: &mut TurnUsage) -> Result<(), TurnError> {
        let Some(window) = self.context_window else { return Ok(()) };
        if locked(&self.history).context_tokens() > window * FULL / 100 {
            self.compact(Need::Threshold, usage).await?;
        }
        Ok(())
    }

    /// Shortens the conversation. `false` if that is not possible, or the turn was cancelled.
    pub(super) async fn compact(&self, need: Need, usage: &mut TurnUsage) -> Result<bool, TurnError> {
        let kept = self.context_window.map_or(KEPT_TOKENS, |window| window * KEPT / 100);
        let (messages, percent, seen, context_tokens) = {
            let history = locked(&self.history);
            let context_tokens = history.context_tokens();
            // Whatever we thought would fit, the model has said that half of this is more likely to.
            let kept = if need == Need::Overflow { kept.min(context_tokens / 2) } else { kept };
            let (count, percent) = history.replaceable(kept);
            (history.messages()[..count].to_vec(), percent, history.compactions(), context_tokens)
        };
        if messages.is_empty() || percent < WORTHWHILE {
            return Ok(false);
        }
        self.output
            .send(&AddedEvent::CompactionStart {
                reason: need.name().to_owned(),
                context_tokens,
                context_window: self.context_window,
            })
            .await?;
        let (model, its_window) = &self.summariser;
        let model = announced(Arc::clone(model), self.output.clone());
        let summary = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            summary = compaction::summarise((model, *its_window), &messages, self.context_window) => Some(summary),
        };
        let (summary, error) = match summary {
            None => return self.compaction_cancelled().await,
            Some(Ok(summary)) => {
                usage.add(&summary.usage);
                locked(&self.history).used_aside(&summary.usage)?;
                (summary.text, None)
            }
            Some(Err(error)) => {
                let error = error.to_string();
                (compaction::without_model(&messages, self.context_window, &error), Some(error))
            }
        };
        let (context_tokens, message_count) = {
            let mut history = locked(&self.history);
            // Overtaken by another one: then there is room already.
            history.compact(seen, messages.len(), &summary, false)?;
            (history.context_tokens(), history.messages().len())
        };
        let end = AddedEvent::CompactionEnd {
            cancelled: false,
            context_tokens: Some(context_tokens),
            message_count: Some(message_count),
            summary: Some(summary),
            error,
        };
        self.output.send(&end).await?;
        Ok(true)
    }

    async fn compaction_cancelled(&self) -> Result<bool, TurnError> {
        let end = AddedEvent::CompactionEnd {
            cancelled: true,
            context_tokens: None,
            message_count: None,
            summary: None,
            error: None,
        };
        self.output.send(&end).await?;
        Ok(false)
    }
}
