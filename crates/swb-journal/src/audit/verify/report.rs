//! What a verification found.

use std::fmt;

use serde::Serialize;

use super::super::hash::ChainHash;
use super::super::log::Head;
use super::super::purge::PurgedSpan;

/// How many findings are listed; all are counted.
pub(super) const LISTED: usize = 1000;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What it comes to.
    pub verdict: Verdict,
    /// The end of the log; none if there is no log.
    pub head: Option<Head>,
    /// How many records were checked.
    pub records: u64,
    /// In how many segments.
    pub segments: usize,
    /// What earlier purges have removed, by their proof.
    pub purged: Vec<PurgedSpan>,
    /// Bytes at the very end that are no whole line: being written just now, or left by a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn_tail: Option<TornTail>,
    /// What became of each anchor.
    pub anchors: Vec<AnchorSeen>,
    /// What is wrong, the first thousand.
    pub findings: Vec<Finding>,
    /// How many things are wrong.
    pub finding_count: usize,
}

/// What a verification comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong, and the log is the one whose head was kept in another place.
    Anchored,
    /// Nothing is wrong; whether the end was cut off or everything written anew, nobody can tell.
    Consistent,
    /// Something is wrong.
    Damaged,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Anchored => "consistent and anchored",
            Verdict::Consistent => "consistent, not anchored",
            Verdict::Damaged => "damaged",
        })
    }
}

/// Bytes at the end that are no whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TornTail {
    /// The segment.
    pub segment: u64,
    /// Where they begin.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// What became of an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnchorSeen {
    /// The number it is about.
    pub number: u64,
    /// What became of it.
    pub state: AnchorState,
}

/// What became of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnchorState {
    /// The log has that record with that hash.
    Matched,
    /// Its record was purged, so it proves nothing any more.
    Purged,
    /// It speaks against the log; there is a finding.
    Failed,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// In which segment.
    pub segment: u64,
    /// At which byte of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What it is.
    #[serde(flatten)]
    pub kind: FindingKind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A line is not as it was written, or is none of ours.
    Changed {
        /// The number the line claims, if it can be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
    },
    /// Records are missing where they should stand.
    Missing {
        /// The first one.
        from: u64,
        /// The last one.
        to: u64,
    },
    /// A record stands where it does not belong: put in, put in again, or moved.
    OutOfPlace {
        /// Its number.
        number: u64,
    },
    /// A record was written after another one than the one that stands before it.
    Relinked {
        /// Its number.
        number: u64,
    },
    /// The segment has no header that is as it was written.
    HeaderChanged,
    /// The segment's name does not say what its header says.
    Renamed,
    /// The segment belongs to another log.
    ForeignSegment {
        /// The log it belongs to.
        chain: String,
    },
    /// The segment does not hang on the end of the one before.
    Unlinked,
    /// Segments are missing, and no purge has removed them.
    MissingSegments {
        /// The first one.
        from: u64,
        /// The last one.
        to: u64,
    },
    /// What a purge says about a gap does not fit what stands around it.
    PurgeMismatch,
    /// The damage of the segment before was known when this one was begun.
    WentOnAfterDamage,
    /// The log ends before the record of an anchor: its end was cut off.
    CutOff {
        /// The number of the anchor.
        anchor: u64,
        /// The last number there is.
        last: u64,
    },
    /// The record of an anchor is another one: the chain was written anew.
    Rewritten {
        /// The number of the anchor.
        anchor: u64,
        /// The hash the anchor has.
        expected: ChainHash,
    },
    /// The anchor belongs to another log.
    ForeignAnchor {
        /// The number of the anchor.
        anchor: u64,
        /// The log it belongs to.
        chain: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}", self.segment)?;
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindingKind::Changed { number: Some(number) } => {
                write!(f, "record {number} is not as it was written")
            }
            FindingKind::Changed { number: None } => f.write_str("a line is not as any record was written"),
            FindingKind::Missing { from, to } if from == to => write!(f, "record {from} is missing here"),
            FindingKind::Missing { from, to } => write!(f, "records {from} to {to} are missing here"),
            FindingKind::OutOfPlace { number } => write!(f, "record {number} does not belong here"),
            FindingKind::Relinked { number } => {
                write!(f, "record {number} was written after another record than the one before it")
            }
            FindingKind::HeaderChanged => f.write_str("the header is not as it was written"),
            FindingKind::Renamed => f.write_str("the name of the file does not fit its header"),
            FindingKind::ForeignSegment { chain } => write!(f, "it belongs to the log {chain}"),
            FindingKind::Unlinked => f.write_str("it does not hang on the end of the segment before"),
            FindingKind::MissingSegments { from, to } => {
                write!(f, "segments {from} to {to} are missing, and no purge has removed them")
            }
            FindingKind::PurgeMismatch => f.write_str("the proof of the purge before it does not fit"),
            FindingKind::WentOnAfterDamage => {
                f.write_str("it was begun although the segment before was known to be damaged")
            }
            FindingKind::CutOff { anchor, last } => {
                write!(f, "the log ends at record {last}, but record {anchor} was anchored")
            }
            FindingKind::Rewritten { anchor, .. } => {
                write!(f, "record {anchor} is not the one that was anchored")
            }
            FindingKind::ForeignAnchor { anchor, chain } => {
                write!(f, "the anchor at {anchor} belongs to the log {chain}")
            }
        }
    }
}
