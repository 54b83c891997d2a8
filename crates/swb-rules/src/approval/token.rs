//! `approval_token`s: proof that a share was agreed to, good once, for one thing, for a short time.
//!
//! Only the hash is kept, so a token cannot be read out of the record. The randomness is handed in.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How long a token is good for.
pub const TOKEN_LIFE: Duration = Duration::from_secs(5 * 60);

/// What a token is good for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The method, by its wire name.
    pub method: String,
    /// The terminal.
    pub terminal_id: String,
    /// Who may use it: kind and id.
    pub actor: String,
    /// The workspace.
    pub workspace_id: String,
}

/// Why a token is worth nothing. Whoever shows it is told only that: see [`TokenError::message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It was never issued, or too long ago to be remembered.
    #[error("the token is not known")]
    Unknown,
    /// It was used before.
    #[error("the token was used before")]
    Spent,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// It is good for something else.
    #[error("the token was issued for something else")]
    Foreign,
}

impl TokenError {
    /// What a caller is told: nothing that helps to guess.
    #[must_use]
    pub const fn message(self) -> &'static str {
        "the approval token is not valid for this call"
    }
}

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    pub(super) binding: Binding,
    pub(super) expires_at: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) spent: bool,
}

/// The text of the token that is made of these random bytes.
#[must_use]
pub fn token_text(random: &[u8; 32]) -> String {
    let mut text = String::with_capacity(4 + 64);
    text.push_str("apt_");
    for byte in random {
        text.push(hex_digit(byte >> 4));
        text.push(hex_digit(byte & 15));
    }
    text
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

/// What is kept of a token.
pub(super) fn hash_of(token: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("switchboard 2026 approval token");
    hasher.update(token.as_bytes());
    hasher.finalize().to_hex().to_string()
}
