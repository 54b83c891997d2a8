//! Which segments a purge may remove.
//!
//! The age of a record is what its clock said, or what any clock before it said, whichever is later: a clock that was
//! set back makes nothing old.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::hold::{Hold, Holds};
use super::moment::Moment;
use super::purge::{PurgeError, PurgedSpan};
use super::record::Record;
use super::segment::{SegmentFile, list};
use super::verify::{Checked, check_segment, verify};
use super::{AuditReader, Verdict};

/// What a purge does.
#[derive(Debug)]
pub(super) struct Plan {
    /// The files to remove, in the order in which to do it.
    pub(super) remove: Vec<PathBuf>,
    /// Everything that is gone afterwards.
    pub(super) spans: Vec<PurgedSpan>,
    pub(super) records: u64,
    /// Segments that are old and stay.
    pub(super) kept: usize,
    pub(super) holds: Vec<Hold>,
    /// Files that an earlier purge was to remove.
    pub(super) left_over: Vec<PathBuf>,
}

/// Looks through a log whose segment `current` is being written and whose commands `open` have not ended.
pub(super) fn plan(
    folder: &Path,
    current: u64,
    open: &[u64],
    older_than: Moment,
) -> Result<Plan, PurgeError> {
    let report = verify(folder, &[]).map_err(PurgeError::Read)?;
    if report.verdict == Verdict::Damaged {
        return Err(PurgeError::Damaged);
    }
    let holds = holds_of(&AuditReader::new(folder)).map_err(PurgeError::Read)?;
    let open: BTreeSet<u64> = open.iter().copied().collect();
    let mut plan =
        Plan { remove: Vec::new(), spans: report.purged, records: 0, kept: 0, holds, left_over: Vec::new() };
    let mut newest = Moment::from_unix_millis(i64::MIN);
    for segment in list(folder).map_err(PurgeError::Read)? {
        if segment.segment >= current {
            break;
        }
        if plan.spans.iter().any(|span| (span.from_segment..=span.to_segment).contains(&segment.segment)) {
            plan.left_over.push(segment.path);
            continue;
        }
        let seen = look(&segment, &plan.holds, &open, &mut newest)?;
        if newest >= older_than {
            break;
        }
        match seen {
            Seen { held: true, .. } => plan.kept += 1,
            Seen { span: Some(span), records, .. } => {
                plan.records += records;
                plan.remove.push(segment.path);
                plan.add(span);
            }
            Seen { span: None, .. } => return Err(PurgeError::Damaged),
        }
    }
    Ok(plan)
}

impl Plan {
    fn add(&mut self, span: PurgedSpan) {
        self.spans.push(span);
        self.spans.sort_by_key(|span| span.from_segment);
        self.spans.dedup_by(|next, before| before.join(next));
    }
}

struct Seen {
    held: bool,
    records: u64,
    span: Option<PurgedSpan>,
}

fn look(
    segment: &SegmentFile,
    holds: &[Hold],
    open: &BTreeSet<u64>,
    newest: &mut Moment,
) -> Result<Seen, PurgeError> {
    let mut held = false;
    let mut readable = true;
    let checked = check_segment(segment, None, &[], &mut |_, line| match Record::parse(line) {
        Some(record) => {
            *newest = record.entry.at.max(*newest);
            held |= holds.iter().any(|hold| hold.scope.keeps(&record.entry));
            held |= open.contains(&record.number);
        }
        // Nobody knows how old it is.
        None => readable = false,
    });
    let checked = checked.map_err(PurgeError::Read)?;
    let span = span_of(&checked, *newest);
    Ok(Seen { held: held || !readable, records: checked.records, span })
}

fn span_of(checked: &Checked, newest_at: Moment) -> Option<PurgedSpan> {
    let (header, header_hash) = checked.header.as_ref().filter(|_| checked.is_sound())?;
    Some(PurgedSpan {
        from_segment: header.segment,
        to_segment: header.segment,
        first: header.first,
        last: checked.end.0,
        prev: header.prev,
        last_hash: checked.end.1,
        header: *header_hash,
        newest_at,
    })
}

/// The holds in force at the end of a log.
pub(super) fn holds_of(reader: &AuditReader) -> std::io::Result<Vec<Hold>> {
    let mut holds = Holds::default();
    let mut records = reader.records_after(0).map_err(std::io::Error::other)?;
    while let Some(line) = records.next_line().map_err(std::io::Error::other)? {
        if matches!(line.raw.kind, b"hold" | b"release" | b"purge") {
            holds.note(&line.parse().map_err(std::io::Error::other)?.entry);
        }
    }
    Ok(holds.into_vec())
}

impl AuditReader {
    /// The holds that are in force. Reads the whole log.
    pub fn holds(&self) -> std::io::Result<Vec<Hold>> {
        holds_of(self)
    }
}
