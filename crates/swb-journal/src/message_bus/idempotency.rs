//! Idempotency keys: posting twice under one key gives one message.
//!
//! The key travels inside the record, in a reserved `meta` entry, so that message and key become durable in the same
//! write; there is no second file to fall out of step. Looking a key up goes through the index (see
//! [`super::index`]) and is done under the writer's lock, so two posters cannot both be first.

use std::fmt;

use thiserror::Error;

const MAX_LEN: usize = 200;

/// A poster's own name for one act of posting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Accepts 1–200 bytes of printable text.
    ///
    /// # Errors
    /// If the text is empty, too long or holds control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, IdempotencyKeyError> {
        let text = text.into();
        if text.is_empty() || text.len() > MAX_LEN {
            return Err(IdempotencyKeyError::Length { len: text.len(), max: MAX_LEN });
        }
        match text.chars().find(|c| c.is_control()) {
            Some(found) => Err(IdempotencyKeyError::Control { found }),
            None => Ok(Self(text)),
        }
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdempotencyKeyError {
    /// Empty or too long.
    #[error("an idempotency key has 1 to {max} bytes, not {len}")]
    Length {
        /// Bytes given.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// Holds a control character.
    #[error("an idempotency key must not contain {found:?}")]
    Control {
        /// The first offender.
        found: char,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_printable_text() {
        assert!(IdempotencyKey::new("deploy 42 → prod").is_ok());
        assert!(matches!(IdempotencyKey::new(""), Err(IdempotencyKeyError::Length { len: 0, .. })));
        assert!(matches!(IdempotencyKey::new("x".repeat(201)), Err(IdempotencyKeyError::Length { .. })));
        assert!(matches!(IdempotencyKey::new("a\nb"), Err(IdempotencyKeyError::Control { found: '\n' })));
    }
}
