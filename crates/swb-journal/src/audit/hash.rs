//! The hashes of the chain: BLAKE3, 32 bytes, written as 64 lowercase hexadecimal digits.
//!
//! A record is hashed in two steps. Its *digest* covers its fields, its *hash* covers the hash before it, its number and
//! its digest. So a record that must not be shown can still be passed by its digest in the proof of another one.
//!
//! ```text
//! digest = BLAKE3(fields as they stand in the line)
//! hash   = BLAKE3("r" | hash before | number as 8 bytes, little endian | digest)      of a record
//! hash   = BLAKE3(the line up to its own hash)                                         of a segment's header
//! ```
//!
//! The two kinds cannot be taken for each other: a header begins with a brace. Only lowercase digits are read: one value
//! must have one spelling, or a change of spelling would be a change that nothing notices.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many digits a hash is written with.
pub(super) const HEX_BYTES: usize = 64;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A place in the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ChainHash([u8; 32]);

/// The text is not a hash of 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a hash of 64 lowercase hexadecimal digits")]
pub struct InvalidHash;

impl ChainHash {
    /// What the first header of a log names as the one before it.
    pub const NONE: ChainHash = ChainHash([0; 32]);

    /// The digest of a record's fields.
    pub(super) fn of_fields(fields: &[u8]) -> Self {
        ChainHash(blake3::hash(fields).into())
    }

    /// The hash of a record.
    pub(super) fn of_record(before: ChainHash, number: u64, digest: ChainHash) -> Self {
        let mut input = [0; 73];
        input[0] = b'r';
        input[1..33].copy_from_slice(&before.0);
        input[33..41].copy_from_slice(&number.to_le_bytes());
        input[41..].copy_from_slice(&digest.0);
        ChainHash(blake3::hash(&input).into())
    }

    /// The hash of a header.
    pub(super) fn of_header(text: &[u8]) -> Self {
        ChainHash(blake3::hash(text).into())
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn push_hex(self, out: &mut Vec<u8>) {
        push_hex(&self.0, out);
    }

    pub(super) fn from_hex(text: &[u8]) -> Option<Self> {
        let text: &[u8; HEX_BYTES] = text.try_into().ok()?;
        let mut bytes = [0; 32];
        let mut wrong = 0;
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let (high, low) = (value(pair[0]), value(pair[1]));
            wrong |= high | low;
            *byte = high << 4 | low & 0xf;
        }
        (wrong & 0xf0 == 0).then_some(ChainHash(bytes))
    }
}

pub(super) fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + 2 * bytes.len(), 0);
    for (pair, byte) in out[from..].chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// The value of a digit, or 0xff.
fn value(digit: u8) -> u8 {
    const VALUES: [u8; 256] = {
        let mut values = [0xff; 256];
        let mut at = 0;
        while at < DIGITS.len() {
            #[expect(clippy::cast_possible_truncation, reason = "sixteen digits")]
            {
                values[DIGITS[at] as usize] = at as u8;
            }
            at += 1;
        }
        values
    };
    VALUES[usize::from(digit)]
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

impl From<ChainHash> for String {
    fn from(hash: ChainHash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for ChainHash {
    type Error = InvalidHash;
    fn try_from(text: String) -> Result<Self, InvalidHash> {
        text.parse()
    }
}

impl FromStr for ChainHash {
    type Err = InvalidHash;
    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        ChainHash::from_hex(text.as_bytes()).ok_or(InvalidHash)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_part_of_a_record_changes_its_hash() {
        let [one, two] = [ChainHash::of_fields(b"1"), ChainHash::of_fields(b"2")];
        let base = ChainHash::of_record(one, 7, two);
        assert_ne!(base, ChainHash::of_record(two, 7, two));
        assert_ne!(base, ChainHash::of_record(one, 8, two));
        assert_ne!(base, ChainHash::of_record(one, 7, one));
    }

    proptest! {
        #[test]
        fn a_hash_has_exactly_one_spelling(bytes in any::<[u8; 32]>(), at in 0..HEX_BYTES, other in any::<u8>()) {
            let hash = ChainHash(bytes);
            let mut text = Vec::new();
            hash.push_hex(&mut text);
            prop_assert_eq!(hash.to_string().into_bytes(), text.clone());
            prop_assert_eq!(ChainHash::from_hex(&text), Some(hash));
            let before = std::mem::replace(&mut text[at], other);
            prop_assert_eq!(ChainHash::from_hex(&text) == Some(hash), other == before);
            prop_assert_eq!(ChainHash::from_hex(&text).is_some(), other.is_ascii_digit() || (b'a'..=b'f').contains(&other));
        }
    }
}
