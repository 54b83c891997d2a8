//! Grants: standing answers to questions that would be asked again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;
use crate::approval::Risk;
use crate::id::GrantId;
use crate::method::Method;
use crate::payload::body;

/// A standing answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// Its id.
    pub grant_id: GrantId,
    /// The agent it was given to; it holds for those below it too.
    pub agent: String,
    /// What may be done.
    pub action: String,
    /// How far it goes.
    pub scope: Map<String, Value>,
    /// Nothing worse than this.
    pub risk: Risk,
    /// Who gave it.
    pub granted_by: String,
    /// When.
    pub granted_at: Timestamp,
    /// When it ends, if its session does not end before.
    pub expires_at: Timestamp,
}

/// `grant.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListGrantsParams {
    /// Those of this agent. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Grants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantList {
    /// The oldest first.
    pub grants: Vec<Grant>,
}

/// `grant.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokeParams {
    /// Which one.
    pub grant_id: GrantId,
}

/// A grant holds no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantRevoked {
    /// Which one.
    pub grant_id: GrantId,
}

body! {
    /// Words of `grant/*`.
    GrantBody in Grant {
        /// Which ones are meant.
        WhichOnes(ListGrantsParams),
        /// Many.
        List(GrantList),
        /// Which one shall end.
        Revoke(RevokeParams),
        /// It has.
        Revoked(GrantRevoked),
    }
}

/// `grant/list`.
#[derive(Debug)]
pub enum List {}
impl Method for List {
    const NAME: &'static str = "grant/list";
    const SUMMARY: &'static str = "List what was allowed for a session";
    type Params = ListGrantsParams;
    type Response = GrantList;
}

/// `grant/revoke`.
#[derive(Debug)]
pub enum Revoke {}
impl Method for Revoke {
    const NAME: &'static str = "grant/revoke";
    const SUMMARY: &'static str = "Take back what was allowed for a session";
    type Params = RevokeParams;
    type Response = GrantRevoked;
}
