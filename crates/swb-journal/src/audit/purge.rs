//! Removing old segments, with a proof of what was removed.
//!
//! Only whole segments go: those whose records are all older than the retention, that no hold keeps and in which no
//! command is still open. The record of the purge is written and synced before the first file is removed. It says which
//! spans of the chain are gone, in all purges so far: where each began and where it ended. A copy of what was removed can
//! be proven against that, and `verify` goes on over the gap; a segment that is missing and in no span is a finding.
//!
//! A log that is damaged is not purged. A purge that was interrupted is finished by the next one.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::append::AppendError;
use super::entry::{Entry, Kind, RecordedActor};
use super::hash::ChainHash;
use super::hold::Hold;
use super::log::AuditLog;
use super::moment::Moment;
use super::retention::{Plan, plan};
use super::segment::sync_folder;

/// Records are kept at least this long.
pub const MIN_RETENTION_DAYS: u32 = 30;

/// What was removed, in this purge and all before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeProof {
    /// How long records were kept.
    pub retention_days: u32,
    /// Why.
    pub reason: String,
    /// How many records this purge removed.
    pub records: u64,
    /// Everything that is gone, the oldest first.
    pub spans: Vec<PurgedSpan>,
    /// The holds that were in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
}

/// Consecutive segments that were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgedSpan {
    /// The first segment.
    pub from_segment: u64,
    /// The last one.
    pub to_segment: u64,
    /// The number of the first record.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// The hash before the first.
    pub prev: ChainHash,
    /// The hash of the last. Together with `prev` it commits to every record in between.
    pub last_hash: ChainHash,
    /// The hash of the last header.
    pub header: ChainHash,
    /// The time of the newest record.
    pub newest_at: Moment,
}

impl PurgedSpan {
    /// Takes in the span that follows.
    pub(super) fn join(&mut self, next: &PurgedSpan) -> bool {
        if next.from_segment != self.to_segment + 1 || next.prev != self.last_hash {
            return false;
        }
        self.to_segment = next.to_segment;
        self.last = next.last;
        self.last_hash = next.last_hash;
        self.header = next.header;
        self.newest_at = self.newest_at.max(next.newest_at);
        true
    }
}

/// A purge that somebody has signed off.
#[derive(Debug, Clone)]
pub struct PurgeOrder {
    /// Who.
    pub by: RecordedActor,
    /// Why.
    pub reason: String,
    /// How long records are kept: 30 days or longer.
    pub retention_days: u32,
    /// The wall clock.
    pub now: Moment,
}

/// What a purge did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// How many records are gone.
    pub records: u64,
    /// How many segments.
    pub segments: usize,
    /// How many old segments were kept, because of a hold or an open command.
    pub kept: usize,
    /// The number of the record that proves it; none if there was nothing to remove.
    pub proof: Option<u64>,
}

/// Why nothing was purged, or not everything.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// The retention is too short.
    #[error("records are kept at least {MIN_RETENTION_DAYS} days; {days} were asked for")]
    TooShort {
        /// What was asked for.
        days: u32,
    },
    /// The log is damaged, and a purge would remove evidence.
    #[error("the audit log is damaged: `verify` says where")]
    Damaged,
    /// The log could not be read.
    #[error("cannot read the audit log")]
    Read(#[source] io::Error),
    /// The purge could not be recorded; nothing was removed.
    #[error("the purge cannot be recorded")]
    Append(#[source] AppendError),
    /// The purge is recorded; a file could not be removed. The next purge removes it.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

impl AuditLog {
    /// Removes segments that are older than the retention, and records that.
    pub fn purge(&self, order: &PurgeOrder) -> Result<Purged, PurgeError> {
        if order.retention_days < MIN_RETENTION_DAYS {
            return Err(PurgeError::TooShort { days: order.retention_days });
        }
        let older_than = order.now.days_before(order.retention_days);
        let (current, open) = self.current();
        let Plan { remove, spans, records, kept, holds, left_over } =
            plan(self.folder(), current, &open, older_than)?;
        let mut proof = None;
        if !remove.is_empty() {
            let entry = Entry {
                actor: Some(order.by.clone()),
                purge: Some(Box::new(PurgeProof {
                    retention_days: order.retention_days,
                    reason: order.reason.clone(),
                    records,
                    spans,
                    holds,
                })),
                ..Entry::bare(Kind::Purge, order.now)
            };
            proof = Some(self.append_now(&entry).map_err(PurgeError::Append)?.number);
            self.sync().map_err(PurgeError::Append)?;
        }
        for path in remove.iter().chain(&left_over) {
            std::fs::remove_file(path).map_err(|source| PurgeError::Remove { path: path.clone(), source })?;
        }
        sync_folder(self.folder()).map_err(PurgeError::Read)?;
        Ok(Purged { records, segments: remove.len(), kept, proof })
    }
}
