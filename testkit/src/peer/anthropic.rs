//! Streams as Anthropic writes them.

use serde_json::{Value, json};

/// A frame with its event.
pub fn frame(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// An answer in the making.
#[derive(Debug, Default)]
pub struct Answer {
    frames: Vec<Value>,
    blocks: u64,
    usage: Value,
}

impl Answer {
    /// An answer to so many tokens.
    pub fn new(input_tokens: u64) -> Self {
        Answer { usage: json!({ "input_tokens": input_tokens, "output_tokens": 1 }), ..Self::default() }
    }

    /// Says of the input what came from a cache and what went into it.
    #[must_use]
    pub fn cache(mut self, read: u64, written: u64) -> Self {
        self.usage["cache_read_input_tokens"] = json!(read);
        self.usage["cache_creation_input_tokens"] = json!(written);
        self.usage["cache_creation"] =
            json!({ "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 });
        self
    }

    /// A text in these pieces.
    #[must_use]
    pub fn text(self, pieces: &[&str]) -> Self {
        let deltas = pieces.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
        self.block(json!({ "type": "text", "text": "" }), deltas)
    }

    /// A thought in these pieces, and its seal.
    #[must_use]
    pub fn thinking(self, pieces: &[&str], signature: &str) -> Self {
        let mut deltas: Vec<Value> =
            pieces.iter().map(|piece| json!({ "type": "thinking_delta", "thinking": piece })).collect();
        deltas.push(json!({ "type": "signature_delta", "signature": signature }));
        self.block(json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas)
    }

    /// A thought that only Anthropic can read.
    #[must_use]
    pub fn redacted_thinking(self, data: &str) -> Self {
        self.block(json!({ "type": "redacted_thinking", "data": data }), Vec::new())
    }

    /// A call whose arguments come in these pieces.
    #[must_use]
    pub fn call(self, id: &str, name: &str, pieces: &[&str]) -> Self {
        let deltas =
            pieces.iter().map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect();
        self.block(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), deltas)
    }

    fn block(mut self, start: Value, deltas: Vec<Value>) -> Self {
        let index = self.blocks;
        self.blocks += 1;
        self.frames.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for delta in deltas {
            self.frames.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        self.frames.push(json!({ "type": "content_block_stop", "index": index }));
        self
    }

    /// The frames of an answer that breaks off here.
    pub fn unfinished(self) -> Vec<String> {
        let start = json!({ "type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m",
            "stop_reason": null, "stop_sequence": null, "usage": self.usage,
        }});
        let ping = json!({ "type": "ping" });
        [start, ping].iter().chain(&self.frames).map(frame).collect()
    }

    /// The frames of the whole answer.
    pub fn stop(self, reason: &str, output_tokens: u64) -> Vec<String> {
        let mut frames = self.unfinished();
        frames.push(frame(&json!({
            "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": output_tokens },
        })));
        frames.push(frame(&json!({ "type": "message_stop" })));
        frames
    }
}

/// An error in the place of a frame.
pub fn error(kind: &str, message: &str) -> String {
    frame(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
}
