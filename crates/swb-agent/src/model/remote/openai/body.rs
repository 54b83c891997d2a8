//! A request as OpenAI's chat API takes it, and with it nearly every server there is.
//!
//! The order of the keys is on purpose: servers find the beginning of a request in their caches. The newest of OpenAI's
//! own models can be told what to cache; nothing is said about it here, so they choose themselves.

use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, MessageContent, ReasoningEffort,
};
use serde_json::{Value, json};

/// Names of models that want the newer word for the limit of an answer.
const COUNT_COMPLETION: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Builds the body.
pub(super) fn build(model: &str, request: ChatRequest, options: &ChatOptions) -> Value {
    let mut body = json!({ "model": model, "stream": true });
    if let Some(effort) = options.reasoning_effort.as_ref().and_then(effort) {
        body["reasoning_effort"] = effort.into();
    }
    if let Some(tools) = request.tools {
        let tools = tools.into_iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": false,
            }})
        });
        body["tools"] = tools.collect();
    }
    body["messages"] = request.messages.into_iter().flat_map(message).collect();
    body["stream_options"] = json!({ "include_usage": true });
    if let Some(limit) = options.max_tokens {
        let newer = COUNT_COMPLETION.iter().any(|name| model.starts_with(name));
        body[if newer { "max_completion_tokens" } else { "max_tokens" }] = limit.into();
    }
    body
}

/// `None` for what has no word.
fn effort(effort: &ReasoningEffort) -> Option<&'static str> {
    Some(match effort {
        ReasoningEffort::Zero => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::XHigh => "xhigh",
        ReasoningEffort::Max => "max",
        ReasoningEffort::Budget(_) => return None,
    })
}

/// The answers of tools are messages of their own.
fn message(message: ChatMessage) -> Vec<Value> {
    match message.role {
        ChatRole::System => {
            let text = message.content.into_joined_texts();
            text.map(|text| json!({ "role": "system", "content": text })).into_iter().collect()
        }
        ChatRole::User => vec![json!({ "role": "user", "content": user(message.content) })],
        ChatRole::Assistant => vec![assistant(message.content)],
        ChatRole::Tool => message.content.into_parts().into_iter().filter_map(answer).collect(),
    }
}

fn user(content: MessageContent) -> Value {
    if content.is_text_only() {
        return content.into_joined_texts().unwrap_or_default().into();
    }
    content.into_parts().into_iter().filter_map(user_part).collect()
}

fn user_part(part: ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text(text) => Some(json!({ "type": "text", "text": text })),
        ContentPart::Binary(file) if file.is_image() => {
            Some(json!({ "type": "image_url", "image_url": { "url": file.into_url() } }))
        }
        ContentPart::Binary(mut file) => {
            let name = file.name.take();
            Some(json!({ "type": "file", "file": { "filename": name, "file_data": file.into_url() } }))
        }
        _ => None,
    }
}

fn assistant(content: MessageContent) -> Value {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for part in content.into_parts() {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::ToolCall(call) => calls.push(json!({
                "type": "function", "id": call.call_id,
                "function": { "name": call.fn_name, "arguments": call.fn_arguments.to_string() },
            })),
            _ => {}
        }
    }
    let mut said = json!({ "role": "assistant", "content": texts.join("\n\n") });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    said
}

fn answer(part: ContentPart) -> Option<Value> {
    let ContentPart::ToolResponse(answer) = part else { return None };
    Some(json!({ "role": "tool", "content": answer.content, "tool_call_id": answer.call_id }))
}
