//! Commands and responses in the envelope dialect (seed 004, section 2), as types for clients and for schemas.
//!
//! The daemon reads commands with [`crate::line`], which keeps the payload as text, and writes responses piece by piece;
//! these types say what the result of both looks like and are what the golden frames are checked against.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ErrorEnvelope;
use crate::id::{CorrelationId, LaneId, SessionId, TerminalId, WorkspaceId};
use crate::{Actor, Timestamp};

/// A command, from a client to the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnvelope {
    /// Chosen by the client; the response carries the same.
    #[schemars(length(min = 1, max = 256))]
    pub id: String,
    /// Always `command`.
    pub r#type: CommandType,
    /// Dotted or slashed.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_$]+([./][A-Za-z0-9_]+)*$"))]
    pub method: String,
    /// When it was sent.
    pub ts: Timestamp,
    /// Who acts.
    pub actor: Actor,
    /// In which workspace; not needed for `bus.*`, `events.*`, `rpc.*`, `$/*`, `workspace.create` and `workspace.list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// In which lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane_id: Option<LaneId>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// On which terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_id: Option<TerminalId>,
    /// As part of what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Typed by the method.
    pub payload: Map<String, Value>,
}

/// The `type` of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommandType {
    /// A command.
    Command,
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseEnvelope {
    /// The command's id; null if the line was too broken to tell.
    pub id: Option<String>,
    /// Always `response`.
    pub r#type: ResponseType,
    /// Whether it worked.
    pub status: ResponseStatus,
    /// When it was answered.
    pub ts: Timestamp,
    /// The command's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Typed by the method; null when it failed.
    pub result: Option<Map<String, Value>>,
    /// Null when it worked.
    pub error: Option<ErrorEnvelope>,
}

/// The `type` of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseType {
    /// A response.
    Response,
}

/// Whether a command worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseStatus {
    /// It did.
    Ok,
    /// It did not.
    Error,
}
