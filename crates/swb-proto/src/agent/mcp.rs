//! What is told about MCP servers: how they are, and each call that was made of them (seed 004, section 7).
//!
//! Both are events beyond the contract. A call is told when it is over, whatever became of it; its arguments appear
//! redacted and as a keyed hash, by which two calls can be compared without knowing what was said.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ErrorCode;

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    /// Its tools can be called.
    Ready,
    /// Its tools are others than before.
    Changed,
    /// It did not start.
    Failed,
    /// It was ready and is not any more. The next call of one of its tools starts it again.
    Down,
    /// It is named in a place that is not trusted, and was not started.
    Inert,
}

/// Something about a server has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name in the configuration.
    pub server: String,
    /// How it is now.
    pub state: McpState,
    /// How many tools it has, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// What there is to say about it, for people; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpOutcome {
    /// The server did it.
    Ok,
    /// The server said that it failed, or could not say anything.
    Failed,
    /// It may not be done, and the server never heard of it.
    Denied,
    /// Nobody wants it any more. The server was told so.
    Cancelled,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpCallError {
    /// `MCP_CALL_FAILED`; `POLICY_DENIED` for a call that was denied.
    pub code: ErrorCode,
    /// For people; redacted.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// A call is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    /// The tool, as the model knows it: `server__tool`.
    pub tool: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The `tool_id` of its `toolcall_start`, or the id of the command `tool_call`.
    pub tool_id: String,
    /// The session whose turn it was.
    pub session_id: String,
    /// The names of the subagents that lead to the one whose call it was; absent if it was the agent itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// A hash of the arguments, keyed with a secret of this installation.
    pub args_hash: String,
    /// The arguments, redacted and shortened.
    pub args: Value,
    /// When it began, in RFC 3339.
    pub started_at: String,
    /// How long it took, approvals included, in milliseconds.
    pub duration_ms: u64,
    /// What became of it.
    pub outcome: McpOutcome,
    /// Why it did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<McpCallError>,
}
