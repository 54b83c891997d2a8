//! What a call has used, as the provider tells it in a frame of its stream.
//!
//! Read from the raw frames, because a turn that is aborted has used what had been told by then. The three dialects
//! count differently: our `input_tokens` never contain those of a cache, and our `output_tokens` contain the thinking.

use serde_json::Value;
use swb_proto::agent::TurnUsage;

use crate::model::provider::Dialect;

/// Takes what this frame tells into what was told before. Returns whether it told anything.
pub(super) fn take(dialect: Dialect, frame: &str, usage: &mut TurnUsage) -> bool {
    // Most frames are text; those are not looked at twice.
    let word = match dialect {
        Dialect::Gemini => "\"usageMetadata\"",
        Dialect::Anthropic | Dialect::OpenAi => "\"usage\"",
    };
    let Some(at) = memchr::memmem::find(frame.as_bytes(), word.as_bytes()) else { return false };
    let rest = frame[at + word.len()..].trim_start_matches([':', ' ']);
    if !rest.starts_with('{') {
        return false;
    }
    let Ok(frame) = serde_json::from_str::<Value>(frame) else { return false };
    match dialect {
        Dialect::Anthropic => anthropic(&frame, usage),
        Dialect::OpenAi => openai(&frame, usage),
        Dialect::Gemini => gemini(&frame, usage),
    }
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// `message_start` has the input, `message_delta` the output; some gateways tell all of it in the latter.
fn anthropic(frame: &Value, usage: &mut TurnUsage) -> bool {
    let Some(told) = frame.pointer("/message/usage").or_else(|| frame.get("usage")) else { return false };
    let take = |pointer: &str, into: &mut u64| {
        if let Some(tokens) = number(told, pointer) {
            *into = tokens;
        }
    };
    take("/input_tokens", &mut usage.input_tokens);
    take("/output_tokens", &mut usage.output_tokens);
    take("/cache_read_input_tokens", &mut usage.cache_read_input_tokens);
    take("/cache_creation_input_tokens", &mut usage.cache_creation_input_tokens);
    let parted = |pointer: &str, before: Option<u64>| number(told, pointer).or(before);
    usage.cache_creation_5m = parted("/cache_creation/ephemeral_5m_input_tokens", usage.cache_creation_5m);
    usage.cache_creation_1h = parted("/cache_creation/ephemeral_1h_input_tokens", usage.cache_creation_1h);
    true
}

/// One frame tells all; what came from a cache is part of the prompt.
fn openai(frame: &Value, usage: &mut TurnUsage) -> bool {
    let Some(told) = frame.get("usage").or_else(|| frame.pointer("/x_groq/usage")) else { return false };
    let prompt = number(told, "/prompt_tokens").unwrap_or(0);
    let read = number(told, "/prompt_tokens_details/cached_tokens")
        .or_else(|| number(told, "/prompt_cache_hit_tokens"))
        .unwrap_or(0);
    let written = number(told, "/prompt_tokens_details/cache_write_tokens").unwrap_or(0);
    usage.input_tokens = prompt.saturating_sub(read).saturating_sub(written);
    usage.output_tokens = number(told, "/completion_tokens").unwrap_or(0);
    usage.cache_read_input_tokens = read;
    usage.cache_creation_input_tokens = written;
    true
}

/// Every frame tells all so far; thinking is not part of the candidates.
fn gemini(frame: &Value, usage: &mut TurnUsage) -> bool {
    let Some(told) = frame.get("usageMetadata") else { return false };
    let prompt = number(told, "/promptTokenCount").unwrap_or(0)
        + number(told, "/toolUsePromptTokenCount").unwrap_or(0);
    let read = number(told, "/cachedContentTokenCount").unwrap_or(0);
    usage.input_tokens = prompt.saturating_sub(read);
    usage.output_tokens =
        number(told, "/candidatesTokenCount").unwrap_or(0) + number(told, "/thoughtsTokenCount").unwrap_or(0);
    usage.cache_read_input_tokens = read;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(dialect: Dialect, frames: &[&str]) -> TurnUsage {
        let mut usage = TurnUsage::default();
        for frame in frames {
            take(dialect, frame, &mut usage);
        }
        usage
    }

    #[test]
    fn anthropic_tells_in_two_frames() {
        let usage = after(
            Dialect::Anthropic,
            &[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":15,"ephemeral_1h_input_tokens":5},"output_tokens":1}}}"#,
                r#"{"type":"message_delta","usage":{"output_tokens":42}}"#,
            ],
        );
        assert_eq!((usage.input_tokens, usage.output_tokens), (10, 42));
        assert_eq!((usage.cache_read_input_tokens, usage.cache_creation_input_tokens), (100, 20));
        assert_eq!((usage.cache_creation_5m, usage.cache_creation_1h), (Some(15), Some(5)));
    }

    #[test]
    fn openai_counts_the_cache_into_the_prompt() {
        let usage = after(
            Dialect::OpenAi,
            &[
                r#"{"choices":[{"delta":{"content":"x"}}],"usage":null}"#,
                r#"{"choices":[], "usage": {"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}}"#,
            ],
        );
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens), (40, 7, 60));
    }

    #[test]
    fn gemini_counts_thinking_apart() {
        let usage = after(
            Dialect::Gemini,
            &[
                r#"{"usageMetadata":{"promptTokenCount":9}}"#,
                r#"{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":5}}"#,
            ],
        );
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens), (5, 8, 4));
    }

    #[test]
    fn text_that_speaks_of_usage_tells_nothing() {
        let mut usage = TurnUsage::default();
        for frame in [
            r#"{"choices":[{"delta":{"content":"the \"usage\": {"}}]}"#,
            r#"{"choices":[{"delta":{"content":"plain"}}]}"#,
            r#"{"usage":{"prompt_tokens":-1"#,
        ] {
            assert!(!take(Dialect::OpenAi, frame, &mut usage), "{frame}");
        }
        assert_eq!(usage, TurnUsage::default());
    }
}
