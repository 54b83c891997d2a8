//! Names of things. An id of ours is `<prefix>_<ULID>`; an id made by somebody else is an opaque string of safe bytes.
//!
//! Every kind is a type of its own, so a session can never be passed where a terminal is meant. [`IdMint`] makes the
//! unique part: it never goes back, neither within a millisecond nor when the clock does.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// The longest opaque id that is accepted.
pub const MAX_ID_BYTES: usize = 80;

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// Nothing, or only white space.
    #[error("an id may not be blank")]
    Blank,
    /// More than [`MAX_ID_BYTES`].
    #[error("an id has at most 80 bytes")]
    TooLong,
    /// A byte outside `[A-Za-z0-9._-]`.
    #[error("an id consists of letters, digits, '.', '_' and '-'")]
    BadByte,
}

/// Checks the grammar every id shares: `[A-Za-z0-9._-]{1,80}`.
pub fn check(text: &str) -> Result<(), InvalidId> {
    let good_bytes = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    match text.len() {
        1..=MAX_ID_BYTES if good_bytes => Ok(()),
        _ if text.trim().is_empty() => Err(InvalidId::Blank),
        1..=MAX_ID_BYTES => Err(InvalidId::BadByte),
        _ => Err(InvalidId::TooLong),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String")]
        pub struct $name(#[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,80}$"))] String);

        impl $name {
            /// What ids of this kind begin with when Switchboard makes them.
            pub const PREFIX: &'static str = $prefix;
            /// An id of this kind with the given unique part.
            pub fn from_ulid(unique: Ulid) -> Self { $name(prefixed($prefix, unique)) }
            /// The id as text.
            pub fn as_str(&self) -> &str { &self.0 }
            /// The text itself.
            pub fn into_string(self) -> String { self.0 }
        }
        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> { check(&text)?; Ok($name(text)) }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )*};
}

ids! {
    /// A workspace.
    WorkspaceId = "ws_";
    /// A project of a workspace.
    ProjectId = "proj_";
    /// How an agent is set up.
    ProfileId = "profile_";
    /// A session of work in a project.
    SessionId = "sess_";
    /// A piece of work of an agent.
    RunId = "run_";
    /// A terminal.
    TerminalId = "term_";
    /// A lane of work (optional everywhere).
    LaneId = "lane_";
    /// What ties a command to everything it caused.
    CorrelationId = "cor_";
    /// One event.
    EventId = "evt_";
    /// One subscription of one connection.
    SubscriptionId = "sub_";
    /// A question that a person answers.
    ApprovalId = "apr_";
    /// A standing answer.
    GrantId = "grant_";
    /// What the gate decided.
    DecisionId = "dec_";
    /// Who acts.
    ActorId = "user_";
}

fn prefixed(prefix: &str, unique: Ulid) -> String {
    let mut buffer = [0u8; ulid::ULID_LEN];
    let unique = unique.array_to_str(&mut buffer);
    let mut text = String::with_capacity(prefix.len() + unique.len());
    text.push_str(prefix);
    text.push_str(unique);
    text
}

/// Makes ULIDs that only ever grow: within one millisecond the random part is counted up, a clock that goes back keeps
/// the last millisecond, and a random part that would overflow moves to the next one.
#[derive(Debug, Default)]
pub struct IdMint {
    last: Option<Ulid>,
}

impl IdMint {
    /// The next ULID at `now_ms`, with 80 random bits taken from `entropy` when a new millisecond begins.
    pub fn next(&mut self, now_ms: u64, entropy: impl FnOnce() -> u128) -> Ulid {
        let next = match self.last {
            Some(last) if last.timestamp_ms() >= now_ms => {
                last.increment().unwrap_or_else(|_| Ulid::from_parts(last.timestamp_ms() + 1, entropy()))
            }
            // The top bit stays clear, so that a millisecond has room for 2^79 more.
            _ => Ulid::from_parts(now_ms, entropy() & (u128::MAX >> 49)),
        };
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_ids_are_opaque_but_safe() {
        for good in ["ws_123", "a", "x.y-z_9", &"a".repeat(80)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(""), Err(InvalidId::Blank));
        assert_eq!(check("  "), Err(InvalidId::Blank));
        assert_eq!(check(&"a".repeat(81)), Err(InvalidId::TooLong));
        for bad in ["a/b", "a b", "ä", "a\0", "..\n"] {
            assert_eq!(check(bad), Err(InvalidId::BadByte), "{bad:?}");
        }
    }

    #[test]
    fn our_ids_carry_their_kind() {
        let id = EventId::from_ulid(Ulid::from_parts(1, 2));
        assert_eq!(id.as_str(), "evt_00000000010000000000000002");
        assert_eq!(check(id.as_str()), Ok(()));
    }

    #[test]
    fn an_overflowing_millisecond_moves_on() {
        let mut mint = IdMint { last: Some(Ulid::from_parts(7, u128::MAX >> 48)) };
        assert_eq!(mint.next(7, || 0).timestamp_ms(), 8);
    }

    proptest! {
        #[test]
        fn a_mint_never_goes_back_whatever_the_clock_does(clock in proptest::collection::vec(0u64..1000, 1..200)) {
            let mut mint = IdMint::default();
            let mut seed = 1u128;
            let ids: Vec<_> = clock.iter().map(|now| mint.next(*now, || { seed = seed.wrapping_mul(0x2545_F491_4F6C_DD1D); seed })).collect();
            prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1] && pair[0].to_string() < pair[1].to_string()));
        }
    }
}
