//! A prompt in the form that `genai` takes, with what each dialect is particular about.
//!
//! A conversation may have been held with several models. What only its maker can read is given to that maker alone:
//! a thought is sent back with its seal or not at all, and seals of Google's are marked as such. Blank texts, which some
//! providers refuse for as long as they stand in the history, are filled or left out.

use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, CustomPart, MessageContent, Tool,
    ToolCall, ToolName, ToolResponse,
};
use serde_json::{Value, json};
use swb_proto::agent::{Block, Content, Message, Role, Source};

use super::tap::REDACTED;
use crate::model::provider::Dialect;
use crate::model::{FileBody, Files, Inputs, Prompt};

/// What marks a seal of Google's.
pub(super) const GOOGLE_SEAL: &str = "google:";
/// What is said for a user who said nothing.
const NOTHING: &str = "(no message)";
/// The longest id of a call that every provider takes.
const LONGEST_ID: usize = 40;

/// Builds the request.
pub(super) fn build(dialect: Dialect, inputs: Inputs, prompt: &Prompt) -> ChatRequest {
    let writer = Writer { dialect, inputs, files: &prompt.files, with_tools: !prompt.tools.is_empty() };
    let mut messages: Vec<ChatMessage> =
        prompt.messages.iter().filter_map(|message| writer.message(message)).collect();
    let system = (!prompt.system.trim().is_empty()).then(|| ChatMessage::system(prompt.system.to_string()));
    if dialect == Dialect::Anthropic {
        mark_for_cache(&mut messages);
    }
    let cached = |system: ChatMessage| match dialect {
        Dialect::Anthropic => system.with_options(CacheControl::Ephemeral),
        Dialect::OpenAi | Dialect::Gemini => system,
    };
    messages.splice(0..0, system.map(cached));
    let mut request = ChatRequest::new(messages);
    if !prompt.tools.is_empty() {
        request.tools = Some(prompt.tools.iter().map(tool).collect());
    }
    request
}

/// The last two things said to the model: what was sent before is then found in the cache, whatever came since.
fn mark_for_cache(messages: &mut [ChatMessage]) {
    let said = messages.iter_mut().rev().filter(|message| message.role != ChatRole::Assistant);
    for message in said.take(2) {
        *message = message.clone().with_options(CacheControl::Ephemeral);
    }
}

fn tool(tool: &crate::model::ToolSpec) -> Tool {
    Tool {
        name: ToolName::Custom(tool.name.clone()),
        description: Some(tool.description.clone()),
        schema: Some(tool.input_schema.clone()),
        custom_format: None,
        strict: None,
        config: None,
        cache_control: None,
        eager_input_streaming: None,
    }
}

struct Writer<'a> {
    dialect: Dialect,
    inputs: Inputs,
    files: &'a Files,
    /// Providers refuse a conversation with calls in it if no tools are offered.
    with_tools: bool,
}

impl Writer<'_> {
    fn message(&self, message: &Message) -> Option<ChatMessage> {
        match (message.role, &message.content) {
            (Role::User, Content::Text(text)) => Some(ChatMessage::user(said(text))),
            (Role::Assistant, Content::Text(text)) => {
                (!text.trim().is_empty()).then(|| ChatMessage::assistant(text.clone()))
            }
            (Role::User, Content::Blocks(blocks)) => self.user(blocks),
            (Role::Assistant, Content::Blocks(blocks)) => self.assistant(blocks),
        }
    }

    /// What tools returned, or what a user wrote with files.
    fn user(&self, blocks: &[Block]) -> Option<ChatMessage> {
        let results = self.with_tools && blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        let parts: Vec<ContentPart> = blocks.iter().filter_map(|block| self.user_part(block)).collect();
        if parts.is_empty() {
            return None;
        }
        let content = MessageContent::from_parts(parts);
        Some(if results { ChatMessage::tool(content) } else { ChatMessage::user(content) })
    }

    fn user_part(&self, block: &Block) -> Option<ContentPart> {
        Some(match block {
            Block::Text { text } => ContentPart::Text(said(text)),
            Block::Image { title, source } => self.file(title, source, self.inputs.images),
            Block::Document { title, source } => self.file(title, source, self.inputs.pdf),
            Block::ToolResult { content, .. } if !self.with_tools => {
                ContentPart::Text(format!("[the tool returned]\n{content}"))
            }
            Block::ToolResult { tool_use_id, content, is_error } => {
                self.result(&self.call_id(tool_use_id), content, *is_error)
            }
            Block::Thinking { .. } | Block::ToolUse { .. } => return None,
        })
    }

    fn result(&self, call_id: &str, content: &str, is_error: bool) -> ContentPart {
        if self.dialect == Dialect::Anthropic && is_error {
            // The library has no word for a failure, but passes on what it does not know.
            let data = json!({
                "type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": true,
            });
            return ContentPart::Custom(CustomPart { model_iden: None, data });
        }
        ContentPart::ToolResponse(ToolResponse::new(call_id, content))
    }

    fn file(&self, title: &str, source: &Source, readable: bool) -> ContentPart {
        let Source::File { media_type, .. } = source;
        match self.files.get(source) {
            Some(FileBody::Text(text)) => {
                ContentPart::Text(format!("<file name={}>\n{text}\n</file>", Value::from(title)))
            }
            Some(FileBody::Base64(bytes)) if readable => ContentPart::Binary(Binary::from_base64(
                media_type.clone(),
                std::sync::Arc::clone(bytes),
                Some(title.to_owned()),
            )),
            Some(FileBody::Base64(_)) => {
                ContentPart::Text(format!("[the attached file {title:?} is of a kind that you cannot read]"))
            }
            None => ContentPart::Text(format!("[the attached file {title:?} is not kept any more]")),
        }
    }

    fn assistant(&self, blocks: &[Block]) -> Option<ChatMessage> {
        let mut parts = Vec::new();
        let mut seal: Option<&str> = None;
        for block in blocks {
            match block {
                Block::Thinking { thinking, signature } => {
                    self.thought(thinking, signature, &mut parts);
                    seal = signature.strip_prefix(GOOGLE_SEAL).or(seal);
                }
                Block::Text { text } if text.trim().is_empty() => {}
                Block::Text { text } => {
                    parts.push(ContentPart::Text(text.clone()));
                    seal = None;
                }
                Block::ToolUse { name, input, .. } if !self.with_tools => {
                    parts.push(ContentPart::Text(format!("[called the tool {name} with {input}]")));
                }
                Block::ToolUse { id, name, input } => parts.push(ContentPart::ToolCall(ToolCall {
                    call_id: self.call_id(id),
                    fn_name: name.clone(),
                    fn_arguments: input.clone(),
                    thought_signatures: seal
                        .take()
                        .filter(|_| self.dialect == Dialect::Gemini)
                        .map(|seal| vec![seal.to_owned()]),
                })),
                Block::ToolResult { .. } | Block::Image { .. } | Block::Document { .. } => {}
            }
        }
        // Thoughts alone are no message.
        let speaks = parts.iter().any(|part| matches!(part, ContentPart::Text(_) | ContentPart::ToolCall(_)));
        speaks.then(|| ChatMessage::assistant(MessageContent::from_parts(parts)))
    }

    /// A thought goes back to the provider that sealed it.
    fn thought(&self, thinking: &str, signature: &str, parts: &mut Vec<ContentPart>) {
        let google = signature.strip_prefix(GOOGLE_SEAL);
        match self.dialect {
            Dialect::Gemini => {
                parts.extend(google.map(|seal| ContentPart::ThoughtSignature(seal.to_owned())));
            }
            Dialect::Anthropic if google.is_some() || signature.is_empty() => {}
            Dialect::Anthropic => match signature.strip_prefix(REDACTED) {
                Some(data) => {
                    let data = json!({ "type": "redacted_thinking", "data": data });
                    parts.push(ContentPart::Custom(CustomPart { model_iden: None, data }));
                }
                None => {
                    parts.push(ContentPart::ThoughtSignature(signature.to_owned()));
                    parts.push(ContentPart::ReasoningContent(thinking.to_owned()));
                }
            },
            Dialect::OpenAi => {}
        }
    }

    /// The id of a call, in letters that the provider takes. The same for the call and its answer.
    fn call_id(&self, id: &str) -> String {
        if self.dialect == Dialect::Gemini {
            return id.to_owned();
        }
        let plain: String = id
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
            .collect();
        // The end is what tells ids apart.
        plain[plain.len().saturating_sub(LONGEST_ID)..].to_owned()
    }
}

fn said(text: &str) -> String {
    if text.trim().is_empty() { NOTHING.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
