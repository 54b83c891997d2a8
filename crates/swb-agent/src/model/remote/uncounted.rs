//! What an answer has used when its server does not say: some servers at home count nothing in a stream.
//!
//! A guess that is called one is better than a zero: the context still fills up, and a price still means something.

use swb_proto::agent::TurnUsage;

use crate::compaction::estimate;
use crate::model::{Delta, Prompt, ToolSpec};

/// What came that was not counted.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    /// Tokens of the answer, by rule of thumb.
    said: u64,
    counted: bool,
}

impl Uncounted {
    /// Looks at a piece of the answer.
    pub(super) fn see(&mut self, delta: &Delta) {
        match delta {
            // Most pieces are one token, which the rule of thumb knows too.
            Delta::Text(said) | Delta::Thinking(said) => self.said += estimate::text(said),
            Delta::CallInput { delta, .. } => self.said += estimate::text(delta),
            Delta::CallStart { name, .. } => self.said += estimate::text(name),
            Delta::Usage(_) => self.counted = true,
            Delta::ThoughtStart | Delta::Signature(_) | Delta::Retry(_) | Delta::Stop => {}
        }
    }

    /// The guess, once, if something was said and nothing counted.
    pub(super) fn take(&mut self, prompt: &Prompt) -> Option<TurnUsage> {
        if self.counted || self.said == 0 {
            return None;
        }
        self.counted = true;
        let tool = |tool: &ToolSpec| {
            estimate::text(&tool.name)
                + estimate::text(&tool.description)
                + estimate::text(&tool.input_schema.to_string())
        };
        let messages: u64 = prompt.messages.iter().map(|message| estimate::message(message)).sum();
        let input_tokens =
            estimate::text(&prompt.system) + messages + prompt.tools.iter().map(tool).sum::<u64>();
        Some(TurnUsage { input_tokens, output_tokens: self.said, estimated: true, ..TurnUsage::default() })
    }
}
