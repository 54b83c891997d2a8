//! The words of AG-UI 1.0 that are sent: one type per event, absent optionals left out.

use serde::Serialize;
use serde_json::Value;
use swb_proto::run::RunUsage;

/// What both clients read and neither takes for its own.
pub(crate) const NAMESPACE: &str = "helios.agui.v1";

/// An event of AG-UI, without its time and where it comes from.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<&'a str>,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a str>,
        outcome: Outcome<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<[Usage<'a>; 1]>,
    },
    RunError {
        message: &'a str,
        code: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<[Usage<'a>; 1]>,
    },
    StepStarted {
        step_name: &'a str,
    },
    StepFinished {
        step_name: &'a str,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<&'a str>,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: &'static str,
    },
    SubagentStarted {
        subagent_run_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<&'a str>,
    },
    SubagentFinished {
        subagent_run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a str>,
        outcome: SubagentOutcome<'a>,
    },
    SubagentError {
        subagent_run_id: &'a str,
        message: &'a str,
    },
    StateSnapshot {
        snapshot: &'a Value,
    },
    ActivitySnapshot {
        message_id: &'a str,
        activity_type: &'static str,
        content: &'a Value,
        replace: bool,
        /// A word of 1.0.
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<&'a str>,
    },
    ActivityDelta {
        message_id: &'a str,
        activity_type: &'static str,
        patch: &'a Value,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Outcome<'a> {
    Success,
    Interrupt { interrupts: &'a [Interrupt<'a>] },
    Cancelled,
}

/// How an agent below the run ended.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SubagentOutcome<'a> {
    Success,
    #[serde(rename_all = "camelCase")]
    Suspended {
        interrupt_ids: &'a [&'a str],
    },
}

/// A question that the client puts to its user.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt<'a> {
    pub(super) id: &'a str,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<&'a str>,
    pub(super) response_schema: &'a Value,
    pub(super) expires_at: &'a str,
    pub(super) metadata: Value,
}

/// What a run has used.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    cached_input_tokens: u64,
    /// A word of 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_input_tokens: Option<u64>,
}

impl<'a> Usage<'a> {
    /// Counts beyond what a client's numbers hold are cut to it.
    pub(super) fn new(usage: &RunUsage, model: Option<&'a str>, with_cache_writes: bool) -> Self {
        let fits = |count: u64| count.min((1 << 53) - 1);
        Usage {
            model,
            input_tokens: fits(usage.input_tokens),
            output_tokens: fits(usage.output_tokens),
            total_tokens: fits(usage.input_tokens.saturating_add(usage.output_tokens)),
            cached_input_tokens: fits(usage.cache_read_tokens),
            cache_write_input_tokens: with_cache_writes.then(|| fits(usage.cache_write_tokens)),
        }
    }
}
