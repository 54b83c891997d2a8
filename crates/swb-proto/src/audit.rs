//! What changes the record: holds, releases, purges. Reading it needs no daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;

/// `audit.hold`. One of the three says what to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldParams {
    /// Everything about this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Everything about this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Everything.
    #[serde(default)]
    pub everything: bool,
    /// Why.
    pub reason: String,
}

/// A hold is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// By which it is released.
    pub hold_id: String,
    /// The record that says so.
    pub audit_id: String,
}

/// `audit.release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseParams {
    /// Which hold.
    pub hold_id: String,
    /// Why.
    pub reason: String,
}

/// A hold is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Which one.
    pub hold_id: String,
    /// The record that says so.
    pub audit_id: String,
}

/// `audit.purge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeParams {
    /// How many days of records stay: 30 or more. Absent: as the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// Why.
    pub reason: String,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    /// How many records are gone.
    pub records: u64,
    /// How many segments.
    pub segments: u64,
    /// How many old segments stay, because of a hold or an open command.
    pub kept_segments: u64,
    /// The record that proves it; absent if there was nothing to remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<String>,
}

body! {
    /// Words of `audit/*`.
    AuditBody in Audit {
        /// What to keep.
        Hold(HoldParams),
        /// It is kept.
        Held(Held),
        /// Which hold shall end.
        Release(ReleaseParams),
        /// It has.
        Released(Released),
        /// What shall go.
        Purge(PurgeParams),
        /// It is gone.
        Purged(Purged),
    }
}

/// `audit/hold`.
#[derive(Debug)]
pub enum Hold {}
impl Method for Hold {
    const NAME: &'static str = "audit/hold";
    const SUMMARY: &'static str = "Keep records from being purged";
    type Params = HoldParams;
    type Response = Held;
}

/// `audit/release`.
#[derive(Debug)]
pub enum Release {}
impl Method for Release {
    const NAME: &'static str = "audit/release";
    const SUMMARY: &'static str = "End a hold on records";
    type Params = ReleaseParams;
    type Response = Released;
}

/// `audit/purge`.
#[derive(Debug)]
pub enum Purge {}
impl Method for Purge {
    const NAME: &'static str = "audit/purge";
    const SUMMARY: &'static str = "Remove old records and prove what was removed";
    type Params = PurgeParams;
    type Response = Purged;
}
