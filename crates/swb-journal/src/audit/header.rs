//! The first line of a segment: which log it belongs to, which segment it is, and how it hangs on the ones before.
//!
//! ```text
//! {"segment":3,"format":1,"chain":"<32 digits>","first":2001,"seq":870,"prev":"<hash>","header":"<hash>",
//!  "open":[1998],"at":"…","hash":"<hash>"}⏎
//! ```
//!
//! `prev` is the hash of the last record before the segment, `header` that of the header before this one: a proof that
//! needs nothing from a whole segment goes from header to header. `open` are the commands that had begun and not ended
//! when the segment was begun, so that an opening finds the unfinished ones in the last segment alone.

use serde::{Deserialize, Serialize};

use super::hash::ChainHash;
use super::line::{push_hash, split_hash};
use super::moment::Moment;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// The header of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) segment: u64,
    pub(super) format: u32,
    /// Which log this is: made at random when the first segment was.
    pub(super) chain: String,
    /// The number of its first record.
    pub(super) first: u64,
    /// The highest place of an event before it.
    pub(super) seq: u64,
    pub(super) prev: ChainHash,
    pub(super) header: ChainHash,
    pub(super) open: Vec<u64>,
    pub(super) at: Moment,
    /// The segment before is damaged, and somebody has decided to go on all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after_damage: Option<Damage>,
}

/// Where a segment stops being readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The segment.
    pub segment: u64,
    /// The byte from which on it does not hang together.
    pub offset: u64,
    /// The last number before that.
    pub last_good: u64,
}

impl Header {
    /// Appends the line.
    pub(super) fn push(&self, out: &mut Vec<u8>) -> ChainHash {
        let from = out.len();
        // Numbers, hashes and plain text always serialise.
        let _ = serde_json::to_writer(&mut *out, self);
        out.pop();
        let hash = ChainHash::of_header(&out[from..]);
        push_hash(hash, out);
        hash
    }

    /// Reads a line without its newline, if it is a header that is as it was written.
    pub(super) fn parse(line: &[u8]) -> Option<(Self, ChainHash)> {
        let (text, hash) = split_hash(line)?;
        if !text.starts_with(b"{\"segment\":") || ChainHash::of_header(text) != hash {
            return None;
        }
        let header: Header = serde_json::from_slice(line).ok()?;
        Some((header, hash))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            segment: 3,
            format: FORMAT,
            chain: "c".repeat(32),
            first: 2001,
            seq: 870,
            prev: ChainHash::of_fields(b"p"),
            header: ChainHash::of_fields(b"h"),
            open: vec![1998],
            at: Moment::from_unix_millis(7),
            after_damage: None,
        }
    }

    proptest! {
        #[test]
        fn a_header_reads_back_and_any_changed_byte_is_seen(at in 0usize..1000, byte in any::<u8>()) {
            let mut line = Vec::new();
            let hash = header().push(&mut line);
            line.pop();
            prop_assert_eq!(Header::parse(&line), Some((header(), hash)));
            let at = at % line.len();
            let before = std::mem::replace(&mut line[at], byte);
            prop_assert_eq!(Header::parse(&line).is_some(), byte == before);
        }
    }
}
