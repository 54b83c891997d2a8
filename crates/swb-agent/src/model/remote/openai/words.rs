//! What an event of an OpenAI-style stream says.
//!
//! Nearly all of them carry one piece of text and nothing else. Those are read without building a tree of values, which
//! would cost more than everything else that happens to the piece; all others are read as a tree, as `genai` reads
//! them. Which of the two it was makes no difference to the outcome.

use std::borrow::Cow;

use genai::chat::{ChatStreamEvent, StreamChunk, ToolCall, ToolChunk};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// An event with one choice that says nothing but a piece of text.
#[derive(Deserialize)]
struct Plain<'a> {
    #[serde(borrow)]
    choices: (Choice<'a>,),
    usage: Option<IgnoredAny>,
    x_groq: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Words<'a>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Words<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    tool_calls: Option<IgnoredAny>,
}

/// The text of an event that carries nothing else.
pub(super) fn text(event: &str) -> Option<Cow<'_, str>> {
    let Plain { choices: (choice,), usage: None, x_groq: None, error: None } =
        serde_json::from_str(event).ok()?
    else {
        return None;
    };
    let Choice { delta, finish_reason: None } = choice else { return None };
    let Words { content, reasoning_content: None, reasoning: None, tool_calls: None } = delta else {
        return None;
    };
    (!content.is_empty()).then_some(content)
}

/// Why the first choice ended, if it did.
pub(super) fn finish_reason(event: &Value) -> Option<&str> {
    event.pointer("/choices/0/finish_reason")?.as_str()
}

/// What the first choice says: thoughts, then text, then calls.
pub(super) fn events(event: &Value) -> Vec<ChatStreamEvent> {
    let Some(delta) = event.pointer("/choices/0/delta") else { return Vec::new() };
    let (text, thought) = match &delta["content"] {
        Value::String(text) => (text.clone(), None),
        Value::Array(parts) => parted(parts),
        _ => (String::new(), None),
    };
    let told = |name: &str| delta[name].as_str().map(str::to_owned);
    let thought =
        thought.or_else(|| told("reasoning_content")).or_else(|| told("reasoning")).unwrap_or_default();
    let mut events = Vec::new();
    if !thought.is_empty() {
        events.push(ChatStreamEvent::ReasoningChunk(StreamChunk { content: thought }));
    }
    if !text.is_empty() {
        events.push(ChatStreamEvent::Chunk(StreamChunk { content: text }));
    }
    events.extend(delta["tool_calls"].as_array().into_iter().flatten().filter_map(call));
    events
}

/// Mistral's way: the content is a list of texts and thoughts.
fn parted(parts: &[Value]) -> (String, Option<String>) {
    let (mut text, mut thought) = (String::new(), String::new());
    for part in parts {
        match part["type"].as_str() {
            Some("text") => text.push_str(part["text"].as_str().unwrap_or_default()),
            Some("thinking") => match &part["thinking"] {
                Value::String(words) => thought.push_str(words),
                Value::Array(inner) => {
                    thought.extend(inner.iter().filter_map(|part| part["text"].as_str()));
                }
                _ => {}
            },
            _ => {}
        }
    }
    (text, Some(thought).filter(|thought| !thought.is_empty()))
}

/// A fragment of a call. One without an id goes by its index.
fn call(fragment: &Value) -> Option<ChatStreamEvent> {
    let index = u32::try_from(fragment["index"].as_u64()?).ok()?;
    let function = fragment.get("function")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(ChatStreamEvent::ToolCallChunk(ToolChunk {
        tool_call: ToolCall {
            call_id: text(&fragment["id"]).unwrap_or_else(|| format!("call_{index}")),
            fn_name: text(&function["name"]).unwrap_or_default(),
            fn_arguments: Value::String(text(&function["arguments"]).unwrap_or_default()),
            thought_signatures: None,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_nothing_but_text_is_read_the_short_way() {
        let plain = [
            (r#"{"choices":[{"delta":{"content":"a"}}]}"#, "a"),
            (
                r#"{"id":"1","usage":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"\u00e9\n","tool_calls":null},"logprobs":null,"finish_reason":null}]}"#,
                "é\n",
            ),
        ];
        for (event, said) in plain {
            assert_eq!(text(event).as_deref(), Some(said), "{event}");
        }
        for event in [
            r#"{"choices":[{"delta":{"content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":["a"]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning_content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"x_groq":{"usage":{}}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"error":{"message":"b"}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]} "#.trim_end_matches("} "),
            "[DONE]",
        ] {
            assert_eq!(text(event), None, "{event}");
        }
    }
}
