//! What the library makes of a stream, as pieces of an answer.
//!
//! An answer is whole only if the provider says why it ended. The library calls a stream finished that merely stopped
//! (Gemini), or one that was closed in good form without a reason; both are cut off here.

use std::collections::VecDeque;

use genai::chat::{ChatStreamEvent, StopReason, StreamEnd};

use super::calls::Calls;
use super::request::GOOGLE_SEAL;
use crate::model::provider::{Dialect, Provider};
use crate::model::{Delta, ModelError};

/// An answer that is longer than this is none. The longest that models give are a hundredth of it.
const LONGEST: usize = 32 * 1024 * 1024;

/// The pieces of one answer, in the making.
#[derive(Debug)]
pub(super) struct Events {
    dialect: Dialect,
    calls: Calls,
    /// Seals of Google's that belong to the next piece.
    seals: Vec<String>,
    /// How much there was so far.
    length: usize,
    /// Whether anything was said that cannot be taken back.
    pub(super) spoken: bool,
}

impl Events {
    pub(super) fn new(dialect: Dialect) -> Self {
        Events { dialect, calls: Calls::default(), seals: Vec::new(), length: 0, spoken: false }
    }

    /// Takes an event; what it means is put behind what waits already.
    pub(super) fn take(
        &mut self,
        provider: &Provider,
        event: ChatStreamEvent,
        into: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let waiting = into.len();
        self.understand(provider, event, into)?;
        self.length += into.iter().skip(waiting).map(length).sum::<usize>();
        if self.length > LONGEST {
            let message = format!("an answer of more than {LONGEST} bytes");
            return Err(ModelError::Malformed { provider: provider.name.clone(), message });
        }
        Ok(())
    }

    fn understand(
        &mut self,
        provider: &Provider,
        event: ChatStreamEvent,
        into: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        match event {
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => {}
            ChatStreamEvent::Chunk(chunk) if chunk.content.is_empty() => {}
            ChatStreamEvent::Chunk(chunk) => {
                self.seal(into);
                self.say(Delta::Text(chunk.content), into);
            }
            ChatStreamEvent::ReasoningChunk(chunk) if chunk.content.is_empty() => {}
            ChatStreamEvent::ReasoningChunk(chunk) => self.say(Delta::Thinking(chunk.content), into),
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => match self.dialect {
                Dialect::Gemini => self.seals.push(chunk.content),
                Dialect::Anthropic | Dialect::OpenAi => self.say(Delta::Signature(chunk.content), into),
            },
            ChatStreamEvent::ToolCallChunk(chunk) => {
                if let Some(own) = &chunk.tool_call.thought_signatures {
                    self.seals.retain(|seal| !own.contains(seal));
                    let own = own.clone();
                    self.seal(into);
                    self.seals.extend(own);
                }
                self.seal(into);
                self.spoken = true;
                self.calls.take(self.dialect, chunk.tool_call, into).map_err(|_| ModelError::Malformed {
                    provider: provider.name.clone(),
                    message: "more tool calls than anybody could want".to_owned(),
                })?;
            }
            ChatStreamEvent::End(end) => {
                self.seal(into);
                whole(provider, &end)?;
                into.push_back(Delta::Stop);
            }
        }
        Ok(())
    }

    fn say(&mut self, delta: Delta, into: &mut VecDeque<Delta>) {
        self.spoken = true;
        into.push_back(delta);
    }

    fn seal(&mut self, into: &mut VecDeque<Delta>) {
        for seal in self.seals.drain(..) {
            into.extend([Delta::ThoughtStart, Delta::Signature(format!("{GOOGLE_SEAL}{seal}"))]);
        }
    }
}

fn length(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Thinking(text) | Delta::Signature(text) => text.len(),
        Delta::CallInput { delta, .. } => delta.len(),
        Delta::CallStart { id, name } => id.len() + name.len(),
        Delta::ThoughtStart | Delta::Usage(_) | Delta::Retry(_) | Delta::Stop => 0,
    }
}

/// Whether this is the end of a whole answer.
fn whole(provider: &Provider, end: &StreamEnd) -> Result<(), ModelError> {
    match &end.captured_stop_reason {
        None => Err(ModelError::CutOff),
        Some(StopReason::MaxTokens(reason)) => Err(ModelError::OutputLimit { reason: reason.clone() }),
        Some(StopReason::ContentFilter(reason)) => {
            Err(ModelError::Declined { provider: provider.name.clone(), reason: reason.clone() })
        }
        Some(StopReason::Other(reason)) if reason == "MALFORMED_FUNCTION_CALL" => {
            Err(ModelError::Malformed { provider: provider.name.clone(), message: reason.clone() })
        }
        Some(_) => Ok(()),
    }
}
