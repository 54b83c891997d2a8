//! Who acts.

use serde::{Deserialize, Serialize};

/// The one who acts, as the gate has found out (never as the caller claims).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// A person.
    User {
        /// Their name.
        id: String,
    },
    /// An agent.
    Agent {
        /// Its session.
        id: String,
        /// The workspace it works in.
        workspace: String,
        /// The agents above it, the root first; none if it is the root itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ancestry: Vec<Ancestor>,
    },
    /// A program that is neither.
    Service {
        /// Its name.
        id: String,
    },
}

/// An agent above another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ancestor {
    /// Its session.
    pub id: String,
    /// The workspace it works in.
    pub workspace: String,
}

/// The three kinds, without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person.
    User,
    /// An agent.
    Agent,
    /// Another program.
    Service,
}

impl ActorKind {
    pub(super) const ALL: [ActorKind; 3] = [Self::User, Self::Agent, Self::Service];

    /// Its name in rules.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Agent => "Agent",
            Self::Service => "Service",
        }
    }
}

impl Actor {
    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> ActorKind {
        match self {
            Self::User { .. } => ActorKind::User,
            Self::Agent { .. } => ActorKind::Agent,
            Self::Service { .. } => ActorKind::Service,
        }
    }

    /// Its own name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User { id } | Self::Agent { id, .. } | Self::Service { id } => id,
        }
    }

    /// The agent at the top of its tree; itself if nothing is above it.
    #[must_use]
    pub fn root(&self) -> &str {
        match self {
            Self::Agent { ancestry, id, .. } => ancestry.first().map_or(id, |root| &root.id),
            _ => self.id(),
        }
    }

    /// Whether it is an agent.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.kind() == ActorKind::Agent
    }

    /// How many agents stand above it.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Agent { ancestry, .. } => ancestry.len(),
            _ => 0,
        }
    }
}
