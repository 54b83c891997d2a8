//! What happened at the desk, in the form in which it is kept.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::request::{Announced, Approval};
use super::token::Binding;
use crate::policy::Grant;

/// One thing that happened. The desk is what these make of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalEvent {
    /// A question was put.
    Requested {
        /// The question.
        approval: Box<Approval>,
    },
    /// It got its outcome.
    Resolved {
        /// Which.
        id: String,
        /// What.
        outcome: Outcome,
    },
    /// A standing approval was given.
    Granted {
        /// The approval it came of.
        approval_id: String,
        /// The grant.
        grant: Grant,
    },
    /// A standing approval was taken back, or what it was for has ended.
    Revoked {
        /// Which.
        grant_id: String,
        /// By whom; none if its session ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// When.
        at: u64,
    },
    /// A token was made.
    TokenIssued {
        /// The approval it came of.
        approval_id: String,
        /// The hash of the token.
        hash: String,
        /// What it is good for.
        binding: Binding,
        /// When it ends.
        expires_at: u64,
    },
    /// A token was used; it is good for nothing from here on.
    TokenSpent {
        /// The hash of the token.
        hash: String,
        /// When.
        at: u64,
    },
    /// What is written together with this is told next, behind this place in the order of all that is told.
    Telling {
        /// The place.
        after: u64,
    },
    /// Whoever listens was told of the question, or of its outcome.
    Announced {
        /// Which.
        id: String,
        /// What they know now.
        known: Announced,
    },
    /// The daemon came back.
    Restarted {
        /// When.
        at: u64,
    },
}
