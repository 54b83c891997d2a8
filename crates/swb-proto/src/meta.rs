//! What stands around a command: who acts, where, and as part of what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Actor;
use crate::id::{CorrelationId, LaneId, SessionId, TerminalId, WorkspaceId};

/// The context of a call. In an envelope these are its top-level fields; in JSON-RPC they stand in `params._meta`, and
/// what is missing there comes from the connection's `bus.hello`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// Who acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// In which workspace.
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
    /// How long the caller is willing to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Meta {
    /// This context, with what it lacks taken from `other`.
    #[must_use]
    pub fn or(self, other: &Meta) -> Meta {
        Meta {
            actor: self.actor.or_else(|| other.actor.clone()),
            workspace_id: self.workspace_id.or_else(|| other.workspace_id.clone()),
            lane_id: self.lane_id.or_else(|| other.lane_id.clone()),
            session_id: self.session_id.or_else(|| other.session_id.clone()),
            terminal_id: self.terminal_id.or_else(|| other.terminal_id.clone()),
            correlation_id: self.correlation_id.or_else(|| other.correlation_id.clone()),
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
        }
    }
}
