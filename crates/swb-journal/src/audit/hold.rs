//! Legal hold: records that no purge removes until the hold is released.
//!
//! A hold is a record like any other, so that nobody can place or lift one unseen. A purge carries those that are still
//! in force over into its own record, because the one that placed them may lie in a segment that goes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entry::{Entry, Kind, RecordedActor};
use super::moment::Moment;

/// A hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// By which it is released.
    pub id: String,
    /// What it keeps.
    #[serde(flatten)]
    pub scope: HoldScope,
    /// Why.
    pub reason: String,
}

/// What a hold keeps: the segments in which such a record stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum HoldScope {
    /// All of them.
    Everything,
    /// Those of a workspace.
    Workspace {
        /// The workspace.
        workspace_id: String,
    },
    /// Those of a session.
    Session {
        /// The session.
        session_id: String,
    },
}

impl HoldScope {
    /// Whether it keeps this entry.
    #[must_use]
    pub fn keeps(&self, entry: &Entry) -> bool {
        match self {
            HoldScope::Everything => true,
            HoldScope::Workspace { workspace_id } => entry.workspace_id.as_ref() == Some(workspace_id),
            HoldScope::Session { session_id } => entry.session_id.as_ref() == Some(session_id),
        }
    }
}

impl Entry {
    /// A hold is placed.
    #[must_use]
    pub fn hold(at: Moment, by: RecordedActor, hold: Hold) -> Self {
        Entry { actor: Some(by), hold: Some(hold), ..Self::bare(Kind::Hold, at) }
    }

    /// A hold is released.
    #[must_use]
    pub fn release(at: Moment, by: RecordedActor, id: impl Into<String>) -> Self {
        Entry { actor: Some(by), release: Some(id.into()), ..Self::bare(Kind::Release, at) }
    }
}

/// The holds in force after some records.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds(BTreeMap<String, Hold>);

impl Holds {
    /// Goes on over an entry.
    pub(super) fn note(&mut self, entry: &Entry) {
        if let Some(hold) = &entry.hold {
            self.0.insert(hold.id.clone(), hold.clone());
        }
        if let Some(id) = &entry.release {
            self.0.remove(id);
        }
        for hold in entry.purge.iter().flat_map(|proof| &proof.holds) {
            self.0.insert(hold.id.clone(), hold.clone());
        }
    }

    pub(super) fn into_vec(self) -> Vec<Hold> {
        self.0.into_values().collect()
    }
}
