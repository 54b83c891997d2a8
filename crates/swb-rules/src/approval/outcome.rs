//! How an approval ends.

use serde::{Deserialize, Serialize};

/// What can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Yes, this once.
    Allow,
    /// Yes, and calls like it for this session.
    AllowForSession,
    /// No.
    Deny,
}

/// The end states of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Somebody agreed.
    Approved,
    /// Somebody did not, or whoever asked has ended.
    Denied,
    /// Nobody answered in time.
    TimedOut,
}

/// The one outcome of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Who answered, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// In whose words, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub resolved_at: u64,
    /// The grant that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<String>,
}

impl Outcome {
    /// Whether the call may go on.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.status == Status::Approved
    }
}
