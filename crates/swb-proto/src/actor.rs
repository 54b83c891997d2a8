//! Who acts: a kind and an id. What a line claims here is a claim; the daemon's gate decides who it really is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{self, ActorId, InvalidId};

/// The originator of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    /// What sort of actor: `user`, `agent`, `system` or a kind of somebody else's.
    pub kind: ActorKind,
    /// Which one.
    pub id: ActorId,
}

/// The sort of an actor. Open, because bridges bring kinds of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct ActorKind(#[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,80}$"))] String);

impl ActorKind {
    /// The kind as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ActorKind {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        id::check(&text)?;
        Ok(ActorKind(text))
    }
}

impl Actor {
    /// An actor from its two parts, if both are well formed.
    pub fn new(kind: &str, id: &str) -> Result<Self, InvalidId> {
        Ok(Actor { kind: ActorKind::try_from(kind.to_owned())?, id: ActorId::try_from(id.to_owned())? })
    }

    /// The person at this machine, as the seed names them.
    pub fn local_user() -> Self {
        Actor::new("user", "user_local").expect("a constant that matches the grammar")
    }

    /// The daemon itself.
    pub fn system() -> Self {
        Actor::new("system", "system_daemon").expect("a constant that matches the grammar")
    }
}
