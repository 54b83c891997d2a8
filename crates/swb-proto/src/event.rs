//! What happened: the event envelope of seed 004 with its two places in the order of things.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::{CorrelationId, EventId, LaneId, SessionId, SubscriptionId, TerminalId, WorkspaceId};
use crate::{Actor, Timestamp, Topic};

/// An event on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventEnvelope {
    /// Which subscription of the connection this copy belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<SubscriptionId>,
    /// The event.
    pub id: EventId,
    /// Always `event`.
    pub r#type: EventType,
    /// What it is about.
    pub topic: Topic,
    /// When it was published.
    pub ts: Timestamp,
    /// Its place among all events. Resume with `after` set to the last one you saw.
    pub seq: u64,
    /// Its place within its topic. A `bus.gap` has none: it is not part of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Who caused it.
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
    /// The facts, an object typed by the topic.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub payload: Box<RawValue>,
}

/// The `type` of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventType {
    /// An event.
    Event,
}

impl PartialEq for EventEnvelope {
    fn eq(&self, other: &Self) -> bool {
        // Two envelopes are the same if they say the same, payload text included.
        serde_json::to_string(self).ok() == serde_json::to_string(other).ok()
    }
}

/// The payload of `bus.gap`: a range of events that this subscriber does not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The first `seq` that is missing.
    pub from: u64,
    /// The last `seq` that is missing. The stream goes on after it.
    pub to: u64,
    /// Why.
    pub reason: GapReason,
}

/// Why a range is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapReason {
    /// It is no longer kept.
    Trimmed,
    /// The subscriber was too slow.
    Lagged,
    /// A daemon ended without warning; part of the range may never have been used.
    Crash,
}
