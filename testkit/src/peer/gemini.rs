//! Streams as Google writes them.

use serde_json::{Value, json};

/// A frame with these parts.
pub fn parts(parts: &[Value]) -> String {
    chunk(parts, None)
}

/// The last frame, with these parts and the reason it ended for.
pub fn finish(parts: &[Value], reason: &str) -> String {
    chunk(parts, Some(reason))
}

fn chunk(parts: &[Value], reason: Option<&str>) -> String {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    let data = json!({ "candidates": [candidate], "modelVersion": "m", "usageMetadata": {
        "promptTokenCount": 20, "cachedContentTokenCount": 8, "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3, "totalTokenCount": 27,
    }});
    format!("data: {data}\r\n\r\n")
}

/// A part with text.
pub fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// A part with a thought.
pub fn thought(text: &str) -> Value {
    json!({ "text": text, "thought": true })
}

/// A part with a call, and the seal of the thought behind it.
pub fn call(name: &str, arguments: &Value, seal: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": arguments }, "thoughtSignature": seal })
}
