//! Streams as OpenAI writes them, and most others after it.

use serde_json::{Value, json};

/// A frame.
pub fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// The last frame.
pub const DONE: &str = "data: [DONE]\n\n";

/// A frame with this delta.
pub fn delta(delta: &Value) -> String {
    frame(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": null,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": null }],
    }))
}

/// A frame with a piece of text.
pub fn text(piece: &str) -> String {
    delta(&json!({ "content": piece }))
}

/// A frame with a piece of thinking.
pub fn thinking(piece: &str) -> String {
    delta(&json!({ "reasoning_content": piece }))
}

/// A frame that begins a call.
pub fn call(index: u64, id: &str, name: &str) -> String {
    delta(&json!({ "tool_calls": [{
        "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" },
    }]}))
}

/// A frame with a piece of a call's arguments.
pub fn arguments(index: u64, piece: &str) -> String {
    delta(&json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }))
}

/// The frame that says why it ended.
pub fn finish(reason: &str) -> String {
    frame(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "usage": null,
        "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
}

/// The frame that says what was used.
pub fn usage(prompt: u64, cached: u64, completion: u64) -> String {
    frame(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": cached },
    }}))
}

/// A whole answer of text.
pub fn answer(pieces: &[&str]) -> Vec<String> {
    let mut frames = vec![delta(&json!({ "role": "assistant", "content": "" }))];
    frames.extend(pieces.iter().map(|piece| text(piece)));
    frames.extend([finish("stop"), usage(10, 0, 5), DONE.to_owned()]);
    frames
}
