//! Reading a log: after a number, after an event, a range, the last ones. Needs no lock and changes nothing.
//!
//! Records come in order of their numbers, each checked against its own hash, so that whoever reads is not told anything
//! that was changed. The end of the log is where it was when it was asked for; asking again goes on from there.
//! What was purged is not there: numbers then jump.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::hash::ChainHash;
use super::header::Header;
use super::line::RawRecord;
use super::lines::Lines;
use super::log::Head;
use super::record::Record;
use super::records::{Events, Reached, Records};
use super::seek;
use super::segment::{SegmentFile, list};

/// A log that is read.
#[derive(Debug, Clone)]
pub struct AuditReader {
    folder: PathBuf,
}

/// Why a log cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditReadError {
    /// A line is not as it was written.
    #[error("segment {segment} of the audit log is damaged at byte {offset}")]
    Damaged {
        /// The segment.
        segment: u64,
        /// Where the line begins.
        offset: u64,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

impl AuditReadError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        AuditReadError::Io { path: path.to_owned(), source }
    }
}

impl AuditReader {
    /// A reader of the log in a folder. A folder that is not there is an empty log.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        AuditReader { folder: folder.into() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The records after a number.
    pub fn records_after(&self, number: u64) -> Result<Records, AuditReadError> {
        let segments = self.segments()?;
        let at = segments.partition_point(|segment| segment.first <= number.saturating_add(1));
        let mut records = Records::new(self.clone(), Reached::Number(number));
        if let Some(segment) = segments.get(at.saturating_sub(1)) {
            records.enter(segment)?;
        }
        Ok(records)
    }

    /// The records of events after a place among all events. Not every event is recorded, so places may be missing.
    pub fn events_after(&self, seq: u64) -> Result<Events, AuditReadError> {
        let segments = self.segments()?;
        // The last segment whose header has not reached it yet; one that cannot be read is looked into.
        let (mut low, mut high) = (0, segments.len());
        while high - low > 1 {
            let middle = low.midpoint(high);
            match Beginning::of(&segments[middle])? {
                Some(beginning) if beginning.header.seq > seq => high = middle,
                _ => low = middle,
            }
        }
        let mut records = Records::new(self.clone(), Reached::Seq(seq));
        if let Some(segment) = segments.get(low) {
            records.enter(segment)?;
        }
        Ok(Events { records, after: seq })
    }

    /// One record; none if it was purged or is not there yet.
    pub fn get(&self, number: u64) -> Result<Option<Record>, AuditReadError> {
        let mut records = self.records_after(number.saturating_sub(1))?;
        Ok(records.next().transpose()?.filter(|record| record.number == number))
    }

    /// The last records, the oldest of them first.
    pub fn last(&self, count: usize) -> Result<Vec<Record>, AuditReadError> {
        let Some(head) = self.head()? else { return Ok(Vec::new()) };
        self.records_after(head.number.saturating_sub(count as u64))?.take(count).collect()
    }

    /// The number of the oldest record that is kept; none if there is none.
    pub fn oldest(&self) -> Result<Option<u64>, AuditReadError> {
        Ok(self.records_after(0)?.next().transpose()?.map(|record| record.number))
    }

    /// The end of the log, read from its last lines; none if there is no log. `verify` tells whether it deserves trust.
    pub fn head(&self) -> Result<Option<Head>, AuditReadError> {
        for segment in self.segments()?.iter().rev() {
            let Some(Beginning { file, header, hash, length }) = Beginning::of(segment)? else { continue };
            let io = |error| AuditReadError::io(&segment.path, error);
            let at = seek::near(&file, length, |_| false).map_err(io)?;
            let mut head = Head { chain: header.chain, number: header.first - 1, hash };
            let mut lines = Lines::new(file, at);
            while let Some((_, line)) = lines.next_line().map_err(io)? {
                if let Some(record) = RawRecord::parse(line).filter(RawRecord::is_intact) {
                    (head.number, head.hash) = (record.place.number, record.hash);
                }
            }
            return Ok(Some(head));
        }
        Ok(None)
    }

    pub(super) fn segments(&self) -> Result<Vec<SegmentFile>, AuditReadError> {
        list(&self.folder).map_err(|error| AuditReadError::io(&self.folder, error))
    }
}

/// An opened segment whose header has been read.
pub(super) struct Beginning {
    pub(super) file: File,
    pub(super) header: Header,
    pub(super) hash: ChainHash,
    /// How long the header is: where the first record begins.
    pub(super) length: u64,
}

impl Beginning {
    /// Opens a segment; none if its header is not there, or not as it was written.
    pub(super) fn of(segment: &SegmentFile) -> Result<Option<Self>, AuditReadError> {
        let io = |error| AuditReadError::io(&segment.path, error);
        let file = segment.open().map_err(io)?;
        let mut lines = Lines::new(file.try_clone().map_err(io)?, 0);
        let header = match lines.next_line() {
            Ok(line) => line.and_then(|(_, line)| Header::parse(line)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(io(error)),
        };
        let length = lines.offset();
        Ok(header.map(|(header, hash)| Beginning { file, header, hash, length }))
    }
}
