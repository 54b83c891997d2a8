//! What goes beyond the contract: commands a parent may use, events a parent may ignore.
//!
//! A word that is added here keeps protocol version 1: no parent is forced to know it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lend::{LentCall, LentTool};
use super::mcp::{McpCall, McpServer};
use super::plan::PlanUpdate;
use super::task::TaskUpdate;

/// Commands that are not in the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AddedCommand {
    /// Say something to the turn that is running, before its next model call. Answered once it has been said.
    Steer {
        /// Echoed in the response.
        id: String,
        /// What the user says.
        message: String,
    },
    /// What waits: steering messages and follow-ups.
    Queue {
        /// Echoed in the response.
        id: String,
    },
    /// Forget what waits; each of them is answered as cancelled.
    ClearQueue {
        /// Echoed in the response.
        id: String,
    },
    /// Run one tool without a model. A missing id is answered as `""`.
    ToolCall {
        /// Echoed in the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool.
        name: String,
        /// Its arguments.
        #[serde(default)]
        args: Value,
    },
    /// How much the model shall think, from the next turn on.
    SetThinkingLevel {
        /// Echoed in the response.
        id: String,
        /// `off`, `low`, `medium` or `high`.
        level: String,
    },
    /// What tools may do, from the next tool call on.
    SetToolMode {
        /// Echoed in the response.
        id: String,
        /// `read-only`, `workspace` or `full`.
        mode: String,
    },
    /// The answer to an `ask`.
    Answer {
        /// Echoed in the response.
        id: String,
        /// Which ask.
        ask_id: String,
        /// One of its options.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        /// Words, for an ask that takes free text; beside an option or in its place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Nobody will answer: a no where a permission was asked for, and an answer that is missing elsewhere.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        declined: bool,
    },
    /// Lend tools, from the next model call on. What was lent before is taken back, unless these are added to it: a frame
    /// has a limit. Answered with `lent`, how many there are now, and `refused`, the names that cannot be lent.
    Lend {
        /// Echoed in the response.
        id: String,
        /// The tools.
        tools: Vec<LentTool>,
        /// These come on top of those that were lent before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        add: bool,
    },
    /// What became of a `lent_call`.
    LentResult {
        /// Echoed in the response.
        id: String,
        /// Which call.
        call_id: String,
        /// Always text; failures too.
        result: String,
        /// Whether it failed, or was not allowed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

/// Events that are not in the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AddedEvent {
    /// A running tool has printed something.
    ToolOutput {
        /// The `tool_id` of its `toolcall_start`.
        tool_id: String,
        /// What it printed.
        delta: String,
    },
    /// The conversation is being made shorter, inside a turn.
    CompactionStart {
        /// `threshold` if the context is nearly full, `overflow` if the model says that it is.
        reason: String,
        /// About how many tokens the conversation has.
        context_tokens: u64,
        /// How many fit into the model, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// It has become shorter, or not.
    CompactionEnd {
        /// Whether it was aborted; only said if it was, and then nothing has changed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cancelled: bool,
        /// About how many tokens it has now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
        /// How many messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_count: Option<usize>,
        /// What stands for the messages that were replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Why the model wrote no part of the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A call of the model has failed before it said anything, and is repeated after a while.
    ModelRetry {
        /// How many attempts have failed.
        attempt: u32,
        /// How many repetitions there are at most.
        retries: u32,
        /// How long until the next, in milliseconds.
        wait_ms: u64,
        /// Why it failed, for people.
        reason: String,
    },
    /// Somebody has to decide. Only sent to a parent that said it would answer.
    Ask {
        /// What `answer` names.
        ask_id: String,
        /// What it is about, in a form for programs: `session_id`, `tool`, `arguments`, and in `agents` the names of the
        /// subagents that lead to the one that asks. Secrets are taken out.
        subject: Value,
        /// `low`, `medium`, `high` or `critical`.
        risk: String,
        /// What may be answered.
        options: Vec<String>,
        /// Whether other words will do as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        free_text: bool,
        /// Until when, in RFC 3339; after it the answer is no, or none.
        deadline: String,
        /// Why it is asked, or the question itself, for people.
        reason: String,
    },
    /// Something about a subagent, or a subagent of one, in more detail than the contract's own events.
    TaskUpdate(TaskUpdate),
    /// The agent, or a subagent, has a plan or has come further with it. Sent when the tool `plan` did what it was called
    /// for, before its result.
    Plan(PlanUpdate),
    /// The model calls a tool that was lent.
    LentCall(LentCall),
    /// Nobody waits for the result of a `lent_call` any more.
    LentCancel {
        /// Which call.
        call_id: String,
    },
    /// An ask cannot be answered any more. Not sent when it was answered.
    AskClosed {
        /// Which ask.
        ask_id: String,
        /// `expired` or `cancelled`.
        outcome: String,
    },
    /// Something about an MCP server has changed.
    McpServer(McpServer),
    /// A call of an MCP server's tool is over: the record of it.
    McpCall(McpCall),
}
