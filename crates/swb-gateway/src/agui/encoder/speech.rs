//! What is said, thought, and said to the run: one message or one thought is open at a time.

use super::super::wire::Event;
use super::{Encoder, pieces};

impl Encoder {
    /// A piece of what the model says. `id` is that of the message, if it begins one.
    pub(in crate::agui) fn say(&mut self, id: impl FnOnce() -> String, delta: &str) {
        if !self.is_open() || delta.is_empty() {
            return;
        }
        self.end_thought();
        let (message, frames) = (&mut self.message, &mut self.frames);
        let message_id = message.get_or_insert_with(|| {
            let id = id();
            frames.push(&Event::TextMessageStart { message_id: &id, role: "assistant" });
            id
        });
        for delta in pieces(delta) {
            frames.push(&Event::TextMessageContent { message_id, delta });
        }
    }

    /// A piece of what the model thinks.
    pub(in crate::agui) fn think(&mut self, id: impl FnOnce() -> String, delta: &str) {
        if !self.is_open() || delta.is_empty() {
            return;
        }
        self.end_message();
        self.said = None;
        let (thought, frames) = (&mut self.thought, &mut self.frames);
        let message_id = thought.get_or_insert_with(|| {
            let id = id();
            frames.push(&Event::ReasoningStart { message_id: &id });
            frames.push(&Event::ReasoningMessageStart { message_id: &id, role: "reasoning" });
            id
        });
        for delta in pieces(delta) {
            frames.push(&Event::ReasoningMessageContent { message_id, delta });
        }
    }

    /// Whatever is being said or thought is complete.
    pub(in crate::agui) fn end_speech(&mut self) {
        self.end_message();
        self.end_thought();
    }

    fn end_message(&mut self) {
        if let Some(message_id) = self.message.take() {
            self.frames.push(&Event::TextMessageEnd { message_id: &message_id });
            self.said = Some(message_id);
        }
    }

    fn end_thought(&mut self) {
        if let Some(message_id) = &self.thought.take() {
            self.frames.push(&Event::ReasoningMessageEnd { message_id });
            self.frames.push(&Event::ReasoningEnd { message_id });
        }
    }

    /// Somebody has said something to the run.
    pub(in crate::agui) fn hear(&mut self, message_id: &str, text: &str) {
        self.end_speech();
        self.said = None;
        if self.is_open() && !text.is_empty() {
            self.frames.push(&Event::TextMessageStart { message_id, role: "user" });
            for delta in pieces(text) {
                self.frames.push(&Event::TextMessageContent { message_id, delta });
            }
            self.frames.push(&Event::TextMessageEnd { message_id });
        }
    }
}
