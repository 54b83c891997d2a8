//! The lines of one segment: each as it was written, each after the one before it.

use std::io;

use super::super::hash::ChainHash;
use super::super::header::Header;
use super::super::line::RawRecord;
use super::super::lines::Lines;
use super::super::log::Head;
use super::super::purge::PurgeProof;
use super::super::record::Record;
use super::super::recover::fits;
use super::super::segment::SegmentFile;
use super::report::{Finding, FindingKind, LISTED};

/// What is known of a segment after it was read.
#[derive(Debug)]
pub(in super::super) struct Checked {
    pub(in super::super) file: SegmentFile,
    pub(in super::super) header: Option<(Header, ChainHash)>,
    /// The number and the hash at its end.
    pub(in super::super) end: (u64, ChainHash),
    pub(in super::super) records: u64,
    /// The last purge it records.
    pub(in super::super) purge: Option<PurgeProof>,
    /// The hashes of those records that anchors are about.
    pub(super) anchored: Vec<(u64, ChainHash)>,
    pub(super) findings: Vec<Finding>,
    pub(super) finding_count: usize,
}

impl Checked {
    pub(in super::super) fn is_sound(&self) -> bool {
        self.finding_count == 0
    }

    pub(super) fn find(&mut self, offset: Option<u64>, kind: FindingKind) {
        self.finding_count += 1;
        if self.findings.len() < LISTED {
            self.findings.push(Finding { segment: self.file.segment, offset, kind });
        }
    }
}

/// Reads a segment, up to `end` if that is given, and shows each record that is as it was written.
pub(in super::super) fn check_segment(
    segment: &SegmentFile,
    end: Option<u64>,
    anchors: &[Head],
    visit: &mut dyn FnMut(&RawRecord<'_>, &[u8]),
) -> io::Result<Checked> {
    let mut checked = Checked {
        file: segment.clone(),
        header: None,
        end: (segment.first.saturating_sub(1), ChainHash::NONE),
        records: 0,
        purge: None,
        anchored: Vec::new(),
        findings: Vec::new(),
        finding_count: 0,
    };
    let mut lines = Lines::new(segment.open()?, 0);
    let within = |offset: u64| end.is_none_or(|end| offset < end);
    if end == Some(0) {
        return Ok(checked);
    }
    let mut walk = Walk { broken: 0, resync: false };
    match lines.next_line() {
        Ok(Some((_, line))) => match Header::parse(line) {
            Some((header, hash)) => {
                if !fits(&header, segment) {
                    checked.find(Some(0), FindingKind::Renamed);
                }
                checked.end = (header.first.saturating_sub(1), hash);
                checked.header = Some((header, hash));
            }
            None => {
                checked.find(Some(0), FindingKind::HeaderChanged);
                walk.resync = true;
            }
        },
        other => {
            other.map(drop).or_else(only_endless)?;
            checked.find(Some(0), FindingKind::HeaderChanged);
            return Ok(checked);
        }
    }
    loop {
        match lines.next_line() {
            Ok(Some((offset, line))) if within(offset) => {
                walk.line(&mut checked, offset, line, anchors, visit);
            }
            Ok(Some(_)) => break,
            Ok(None) => {
                if !lines.rest().is_empty() && within(lines.offset()) {
                    checked.find(Some(lines.offset()), FindingKind::Changed { number: None });
                }
                break;
            }
            Err(error) => {
                only_endless(error)?;
                checked.find(Some(lines.offset()), FindingKind::Changed { number: None });
                break;
            }
        }
    }
    Ok(checked)
}

/// A line without an end is a finding; other errors mean that the file cannot be read.
fn only_endless(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::InvalidData { Ok(()) } else { Err(error) }
}

/// Where we are between two lines.
struct Walk {
    /// Lines that are broken since the last good record: each may have been one.
    broken: u64,
    /// The place of the next record cannot be foretold.
    resync: bool,
}

impl Walk {
    fn line(
        &mut self,
        checked: &mut Checked,
        offset: u64,
        line: &[u8],
        anchors: &[Head],
        visit: &mut dyn FnMut(&RawRecord<'_>, &[u8]),
    ) {
        let record = RawRecord::parse(line);
        let Some(record) = record.filter(RawRecord::is_intact) else {
            checked.find(Some(offset), FindingKind::Changed { number: record.map(|it| it.place.number) });
            self.broken += 1;
            return;
        };
        let (last, hash) = checked.end;
        let number = record.place.number;
        if number <= last && !self.resync {
            return checked.find(Some(offset), FindingKind::OutOfPlace { number });
        }
        if !self.resync {
            let unaccounted = number - last - 1;
            if unaccounted > self.broken {
                checked.find(Some(offset), FindingKind::Missing { from: last + 1, to: number - 1 });
            } else if unaccounted == 0 && record.place.prev != hash {
                checked.find(Some(offset), FindingKind::Relinked { number });
            }
        }
        *self = Walk { broken: 0, resync: false };
        checked.end = (number, record.hash);
        checked.records += 1;
        if anchors.iter().any(|anchor| anchor.number == number) {
            checked.anchored.push((number, record.hash));
        }
        if record.kind == b"purge" {
            checked.purge = Record::parse(line).and_then(|record| record.entry.purge).map(|proof| *proof);
        }
        visit(&record, line);
    }
}
