//! The bodies of responses. Fields stand in alphabetical order, which is the order of the wire.

use serde::Serialize;
use serde_json::Value;
use swb_proto::agent::{Event, Message};

use super::{Agent, Gone};
use crate::model::catalogue::Entry;
use crate::tools::Ran;

/// A response with a typed body.
#[derive(Serialize)]
struct Response<'a, B> {
    r#type: &'static str,
    id: &'a str,
    command: &'static str,
    #[serde(flatten)]
    body: &'a B,
}

impl Agent {
    /// The one answer to a command.
    pub(super) async fn respond(
        &self,
        id: &str,
        command: &'static str,
        body: &(impl Serialize + Sync),
    ) -> Result<(), Gone> {
        self.output.send(&Response { r#type: "response", id, command, body }).await
    }

    /// Says what went wrong.
    pub(super) async fn fail(&self, id: Option<String>, message: impl Into<String>) -> Result<(), Gone> {
        self.output.send(&Event::Error { id, message: message.into() }).await
    }
}

/// How a turn ended.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    ok: bool,
}

impl Outcome {
    pub(super) fn done() -> Self {
        Outcome { cancelled: None, error: None, ok: true }
    }

    pub(super) fn cancelled() -> Self {
        Outcome { cancelled: Some(true), error: None, ok: true }
    }

    pub(super) fn failed(message: String) -> Self {
        Outcome { cancelled: None, error: Some(message), ok: false }
    }
}

/// It worked, and there is nothing to say about it.
#[derive(Serialize)]
pub(super) struct Nothing {
    ok: bool,
}

impl Default for Nothing {
    fn default() -> Self {
        Nothing { ok: true }
    }
}

/// What one tool did.
#[derive(Serialize)]
pub(super) struct ToolRan {
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
}

impl ToolRan {
    pub(super) fn new(ran: Ran, cancelled: Option<bool>) -> Self {
        let Ran { result, failed } = ran;
        let (error, result) = if failed { (Some(result), None) } else { (None, Some(result)) };
        ToolRan { cancelled, error, ok: !failed, result }
    }
}

#[derive(Serialize)]
pub(super) struct Compacted {
    pub(super) context_tokens: u64,
    pub(super) message_count: usize,
    pub(super) ok: bool,
    pub(super) summary: String,
}

#[derive(Serialize)]
pub(super) struct Session<'a> {
    pub(super) ok: bool,
    pub(super) session_id: &'a str,
}

#[derive(Serialize)]
pub(super) struct Messages<'a> {
    pub(super) messages: Vec<&'a Message>,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct ModelSet<'a> {
    pub(super) model: &'a str,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct Models {
    pub(super) models: Vec<Entry>,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct Tools {
    pub(super) ok: bool,
    pub(super) tools: Value,
}

/// A figure that is not known is not there.
#[derive(Serialize)]
pub(super) struct Stats {
    pub(super) cache_creation_input_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) context_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) estimated: bool,
    pub(super) input_tokens: u64,
    pub(super) message_count: usize,
    pub(super) model: String,
    pub(super) ok: bool,
    pub(super) output_tokens: u64,
    pub(super) session_id: String,
}

#[derive(Serialize)]
pub(super) struct State {
    pub(super) compacting: bool,
    pub(super) context_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_window: Option<u64>,
    pub(super) message_count: usize,
    pub(super) model: String,
    pub(super) ok: bool,
    pub(super) queued: usize,
    pub(super) session_id: String,
    pub(super) streaming: bool,
    pub(super) thinking_level: &'static str,
    pub(super) tool_mode: &'static str,
}

#[derive(Serialize)]
pub(super) struct Queued {
    pub(super) ok: bool,
    pub(super) queue: Vec<QueuedItem>,
}

#[derive(Serialize)]
pub(super) struct QueuedItem {
    pub(super) command: &'static str,
    pub(super) id: String,
    pub(super) message: String,
}

#[derive(Serialize)]
pub(super) struct Cleared {
    pub(super) cleared: usize,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct Lent {
    /// How many tools are lent now.
    pub(super) lent: usize,
    pub(super) ok: bool,
    pub(super) refused: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct ThinkingSet<'a> {
    pub(super) level: &'a str,
    pub(super) ok: bool,
}

#[derive(Serialize)]
pub(super) struct ModeSet<'a> {
    pub(super) mode: &'a str,
    pub(super) ok: bool,
}
