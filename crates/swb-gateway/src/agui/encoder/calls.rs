//! Calls of tools: begun once, their arguments sent once, their results told whenever they come.

use super::super::wire::Event;
use super::{Encoder, MOST, pieces, shortened};

/// A call whose arguments are being written.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    /// Some were sent already.
    streamed: bool,
}

impl Encoder {
    /// An earlier stream told of these calls: only their results are left to tell.
    pub(in crate::agui) fn knows_calls(&mut self, calls: Vec<String>) {
        self.unanswered = calls;
    }

    /// Whether the arguments of a call are not complete.
    pub(in crate::agui) fn is_writing_a_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Calls that have no result yet.
    pub(in crate::agui) fn unanswered(&self) -> &[String] {
        &self.unanswered
    }

    /// The model begins to write a call.
    pub(in crate::agui) fn call(&mut self, id: &str, name: &str) {
        self.end_speech();
        if !self.is_open() || self.unanswered.iter().any(|told| told == id) {
            return;
        }
        if self.unanswered.len() >= MOST {
            self.unanswered.remove(0);
        }
        self.unanswered.push(id.to_owned());
        if self.calls.len() >= MOST {
            let forgotten = self.calls.remove(0);
            self.frames.push(&Event::ToolCallEnd { tool_call_id: &forgotten.id });
        }
        self.frames.push(&Event::ToolCallStart {
            tool_call_id: id,
            tool_call_name: name,
            parent_message_id: self.said.as_deref(),
        });
        self.calls.push(Call { id: id.to_owned(), streamed: false });
    }

    /// A piece of a call's arguments. One of a call that is not open has nowhere to go.
    pub(in crate::agui) fn arguments(&mut self, id: &str, delta: &str) {
        self.end_speech();
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            for delta in pieces(delta) {
                call.streamed = true;
                self.frames.push(&Event::ToolCallArgs { tool_call_id: id, delta });
            }
        }
    }

    /// A call's arguments are complete.
    pub(in crate::agui) fn called(&mut self, id: &str, name: &str, arguments: Option<&str>) {
        self.call(id, name);
        if self.calls.iter().any(|call| call.id == id && !call.streamed) {
            self.arguments(id, arguments.unwrap_or_default());
        }
        self.end_call(id);
    }

    fn end_call(&mut self, id: &str) {
        if let Some(at) = self.calls.iter().position(|call| call.id == id) {
            self.calls.remove(at);
            self.frames.push(&Event::ToolCallEnd { tool_call_id: id });
        }
    }

    /// What came of a call.
    pub(in crate::agui) fn result(&mut self, id: &str, message_id: &str, content: &str) {
        self.end_speech();
        if self.is_open() {
            self.end_call(id);
            self.unanswered.retain(|told| told != id);
            self.said = None;
            let content = &shortened(content);
            self.frames.push(&Event::ToolCallResult { message_id, tool_call_id: id, content, role: "tool" });
        }
    }
}
