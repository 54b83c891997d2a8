//! Frames of Server-Sent Events: one `data` line each, ended by two line feeds and never by anything else.

use std::io::Write;

use swb_proto::EventEnvelope;

use super::provenance::Provenance;
use super::ui;
use super::wire::Event;

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    pub(super) provenance: Provenance,
}

impl Frames {
    pub(super) fn push(&mut self, event: &Event<'_>) {
        self.bytes.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut self.bytes, event)
            .expect("words of this interface have string keys, and a Vec takes every byte");
        // Its closing brace comes behind where it comes from.
        self.bytes.pop();
        self.end();
    }

    /// An event of the bus under its name for front ends.
    pub(super) fn custom(&mut self, name: &str, event: &EventEnvelope) {
        self.custom_with(name, |out| ui::write(out, name, event));
    }

    /// The same with any value.
    pub(super) fn custom_with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        let _ = write!(self.bytes, "data: {{\"type\":\"CUSTOM\",\"name\":\"{name}\",\"value\":");
        value(&mut self.bytes);
        self.end();
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(self.provenance.tail());
        self.bytes.extend_from_slice(b"}\n\n");
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}
