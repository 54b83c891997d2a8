//! A record as it is read back.

use serde::Serialize;

use super::entry::Entry;
use super::hash::ChainHash;
use super::line::RawRecord;

/// A record: an entry with its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Its number. Numbers rise by one.
    #[serde(rename = "n")]
    pub number: u64,
    /// The hash of the record before, or of the segment's header.
    pub prev: ChainHash,
    /// Its own hash.
    pub hash: ChainHash,
    /// The highest place of an event up to here.
    pub seq: u64,
    /// What was recorded.
    #[serde(flatten)]
    pub entry: Entry,
}

impl Record {
    /// Reads a line without its newline; none if it is not as it was written.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let raw = RawRecord::parse(line).filter(RawRecord::is_intact)?;
        Self::from_raw(&raw, line)
    }

    pub(super) fn from_raw(raw: &RawRecord<'_>, line: &[u8]) -> Option<Self> {
        let entry = serde_json::from_slice(line).ok()?;
        let RawRecord { place, hash, .. } = *raw;
        Some(Record { number: place.number, prev: place.prev, hash, seq: place.seq, entry })
    }
}
