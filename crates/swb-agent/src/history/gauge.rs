//! How full the model's context is.
//!
//! Every message is weighed by rule of thumb as it comes. When a model has counted what it was given, the difference is
//! kept as a correction: it holds the system prompt and the tools, which no message does, and what the rule gets wrong.

use std::sync::Arc;

use swb_proto::agent::{Message, TurnUsage};

use crate::compaction::estimate;

/// After a compaction the correction for what has gone has gone, too; this much may be system prompt and tools.
const MAX_LASTING: i64 = 16 * 1024;

/// An estimate that is corrected.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    weighed: u64,
    correction: i64,
}

impl Gauge {
    /// A message more.
    pub(super) fn add(&mut self, message: &Message) {
        self.weighed += estimate::message(message);
    }

    /// A model has counted all messages so far.
    pub(super) fn counted(&mut self, usage: &TurnUsage) {
        let given = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        // Nothing at all means that it was not counted.
        if given > 0 {
            self.correction = signed(given) - signed(self.weighed);
        }
    }

    /// These messages are all there are now.
    pub(super) fn restart(&mut self, messages: &[Arc<Message>]) {
        self.weighed = messages.iter().map(|message| estimate::message(message)).sum();
        self.correction = self.correction.clamp(0, MAX_LASTING);
    }

    /// What the messages weigh by themselves.
    pub(super) fn weighed(&self) -> u64 {
        self.weighed
    }

    /// So many of the model's tokens in the measure that messages are weighed with.
    pub(super) fn in_estimates(&self, tokens: u64) -> u64 {
        let scaled = u128::from(tokens) * u128::from(self.weighed) / u128::from(self.tokens().max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX).min(tokens)
    }

    /// The tokens that the model would be given now.
    pub(super) fn tokens(&self) -> u64 {
        self.weighed.saturating_add_signed(self.correction)
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_corrects_the_estimate_and_later_messages_add_to_it() {
        let mut gauge = Gauge::default();
        gauge.add(&Message::user("x".repeat(400)));
        let estimated = gauge.tokens();
        assert!(estimated >= 100);
        gauge.counted(&TurnUsage {
            input_tokens: 5000,
            cache_read_input_tokens: 1000,
            ..TurnUsage::default()
        });
        assert_eq!(gauge.tokens(), 6000);
        gauge.add(&Message::user("x".repeat(400)));
        assert_eq!(gauge.tokens(), 6000 + estimated);
        gauge.counted(&TurnUsage::default());
        assert_eq!(gauge.tokens(), 6000 + estimated, "a model that counts nothing corrects nothing");
        assert_eq!(gauge.in_estimates(6000 + estimated), estimated * 2, "all of it is all that was weighed");
        gauge.counted(&TurnUsage { input_tokens: 900_000, ..TurnUsage::default() });
        gauge.restart(&[]);
        assert!(gauge.tokens() <= 16 * 1024);
    }
}
