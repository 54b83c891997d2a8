//! A session as one JSON document that proves itself: what was recorded, and that it stands in the chain.
//!
//! ```text
//! {"manifest": {format, chain, session_id, exported_at, count, head, redaction_rules, rules_applied},
//!  "records":  [the lines as they stand in the log | {n, digest, redacted, entry}],
//!  "proof":    [{"header": a segment's header, "after": {number, hash}, "links": [17, "<digest>", 19, …]}, …]}
//! ```
//!
//! Records were redacted when they were made, and are redacted again by the rules of today. One that today's rules change
//! cannot stand as it was written; its digest stands in its place, and the chain goes through that.
//!
//! The proof goes from the first record of the session to the head. In a segment that holds a record of the session, and
//! in the last one, every record is a link: by its number if the bundle holds it, else by its digest, which gives
//! nothing away. Of other segments the header is enough. If segments in between were purged, the record of the purge is in
//! the bundle too.
//!
//! It proves that what is in it was recorded so, not that nothing was left out; and of a record that is not as it was
//! written it proves the place, not the words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::Kind;
use super::hash::ChainHash;
use super::line::RawRecord;
use super::lines::Lines;
use super::log::Head;
use super::moment::Moment;
use super::read::{AuditReadError, AuditReader, Beginning};
use super::record::Record;

/// What a bundle says it is.
pub(super) const BUNDLE_FORMAT: &str = "switchboard.audit.bundle/1";

/// The rules that a bundle is redacted by.
pub trait Redaction {
    /// The names of all of them. A bundle is refused if there are none.
    fn rules(&self) -> Vec<String>;
    /// Takes the secrets out of a value and names the rules that found some.
    fn redact(&self, value: &mut Value) -> Vec<String>;
}

/// What a bundle says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the bundle.
    pub format: String,
    /// The log it is from.
    pub chain: String,
    /// The session.
    pub session_id: String,
    /// When it was made.
    pub exported_at: Moment,
    /// How many records of the session it holds.
    pub count: u64,
    /// How many of them are not as they were written, because the rules of today found something in them.
    pub altered: u64,
    /// The end of the log that the proof leads to.
    pub head: Head,
    /// The rules it was redacted by.
    pub redaction_rules: Vec<String>,
    /// The rules that found something, now or when a record was made.
    pub rules_applied: Vec<String>,
}

/// Where a part of the proof begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct After {
    pub(super) number: u64,
    pub(super) hash: ChainHash,
}

/// A record that is not as it was written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Altered {
    pub(super) n: u64,
    pub(super) digest: ChainHash,
    pub(super) redacted: Vec<String>,
    pub(super) entry: Value,
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There are no rules of redaction.
    #[error("no rules of redaction are loaded, and nothing leaves without them")]
    NoRules,
    /// The log holds no record of the session.
    #[error("the audit log holds no record of session {0}")]
    NoRecords(String),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] AuditReadError),
    /// The bundle could not be written.
    #[error("cannot write the bundle")]
    Write(#[source] io::Error),
}

/// Writes the bundle of a session, and returns its manifest.
pub fn export(
    reader: &AuditReader,
    session_id: &str,
    redaction: &dyn Redaction,
    now: Moment,
    out: &mut dyn Write,
) -> Result<Manifest, ExportError> {
    let redaction_rules = redaction.rules();
    if redaction_rules.is_empty() {
        return Err(ExportError::NoRules);
    }
    let none = || ExportError::NoRecords(session_id.to_owned());
    let head = reader.head()?.ok_or_else(none)?;
    let found = find(reader, session_id, head.number, redaction)?;
    if found.session == 0 {
        return Err(none());
    }
    let manifest = Manifest {
        format: BUNDLE_FORMAT.to_owned(),
        chain: head.chain.clone(),
        session_id: session_id.to_owned(),
        exported_at: now,
        count: found.session,
        altered: found.altered.len() as u64,
        head,
        redaction_rules,
        rules_applied: found.rules.iter().cloned().collect(),
    };
    let mut bundle = Bundle { reader, out, found: &found };
    bundle.write(&manifest)?;
    Ok(manifest)
}

/// What belongs into a bundle.
#[derive(Default)]
struct Found {
    /// How many records of the session.
    session: u64,
    /// The numbers of records that the bundle holds.
    numbers: BTreeSet<u64>,
    /// Those of them that the rules change.
    altered: BTreeMap<u64, Altered>,
    rules: BTreeSet<String>,
    /// Segments whose records are links.
    segments: BTreeSet<u64>,
}

fn find(
    reader: &AuditReader,
    session_id: &str,
    last: u64,
    redaction: &dyn Redaction,
) -> Result<Found, ExportError> {
    let mut found = Found::default();
    let mut purge = None;
    // As it stands in a line; most lines need no closer look.
    let quoted = serde_json::to_string(session_id).expect("text serialises into memory");
    let needle = memchr::memmem::Finder::new(&quoted);
    let mut records = reader.records_after(0)?;
    while let Some(line) = records.next_line()? {
        if line.raw.place.number > last {
            break;
        }
        if line.raw.kind == b"purge" {
            purge = Some((line.segment, line.parse()?, line.raw.digest()));
        }
        if needle.find(line.text).is_none() {
            continue;
        }
        let record = line.parse()?;
        if record.entry.session_id.as_deref() == Some(session_id) {
            found.session += 1;
            found.take(line.segment, record, line.raw.digest(), redaction);
        }
    }
    if let Some((segment, record, digest)) = purge {
        found.take(segment, record, digest, redaction);
    }
    Ok(found)
}

impl Found {
    fn take(&mut self, segment: u64, record: Record, digest: ChainHash, redaction: &dyn Redaction) {
        self.segments.insert(segment);
        self.rules.extend(record.entry.redacted.iter().cloned());
        self.numbers.insert(record.number);
        let before = serde_json::to_value(&record.entry).expect("an entry serialises into memory");
        let mut entry = before.clone();
        let redacted = redaction.redact(&mut entry);
        // A purge holds no word of a command, and its hashes must stay what they are.
        if entry != before && record.entry.kind != Kind::Purge {
            self.rules.extend(redacted.iter().cloned());
            let altered = Altered { n: record.number, digest, redacted, entry };
            self.altered.insert(record.number, altered);
        }
    }
}

/// Writing, piece by piece: a session may be larger than memory.
struct Bundle<'a> {
    reader: &'a AuditReader,
    out: &'a mut dyn Write,
    found: &'a Found,
}

impl Bundle<'_> {
    fn write(&mut self, manifest: &Manifest) -> Result<(), ExportError> {
        self.text("{\"manifest\":")?;
        self.json(manifest)?;
        self.text(",\n\"records\":[")?;
        self.records()?;
        self.text("\n],\n\"proof\":[")?;
        self.proof(manifest.head.number)?;
        self.text("\n]}\n")?;
        self.out.flush().map_err(ExportError::Write)
    }

    fn records(&mut self) -> Result<(), ExportError> {
        let found = self.found;
        for (at, number) in found.numbers.iter().enumerate() {
            self.text(if at == 0 { "\n" } else { ",\n" })?;
            if let Some(altered) = found.altered.get(number) {
                self.json(altered)?;
                continue;
            }
            let mut records = self.reader.records_after(number - 1)?;
            if let Some(line) = records.next_line()? {
                self.out.write_all(line.text).map_err(ExportError::Write)?;
            }
        }
        Ok(())
    }

    fn proof(&mut self, last: u64) -> Result<(), ExportError> {
        let segments = self.reader.segments()?;
        let first = self.found.segments.first().copied().unwrap_or(0);
        let last_segment =
            segments.iter().rev().find(|segment| segment.first <= last).map_or(0, |it| it.segment);
        let wanted = segments.iter().filter(|segment| (first..=last_segment).contains(&segment.segment));
        for (at, segment) in wanted.enumerate() {
            let Some(Beginning { file, hash, header, length }) = Beginning::of(segment)? else {
                return Err(AuditReadError::Damaged { segment: segment.segment, offset: 0 }.into());
            };
            self.text(if at == 0 { "\n{\"header\":" } else { ",\n{\"header\":" })?;
            let mut line = Vec::new();
            header.push(&mut line);
            line.pop();
            self.out.write_all(&line).map_err(ExportError::Write)?;
            if segment.segment == last_segment || self.found.segments.contains(&segment.segment) {
                let header = After { number: header.first - 1, hash };
                let io = |error| AuditReadError::io(&segment.path, error);
                let is_last = segment.segment == last_segment;
                let mut lines = Lines::new(file, length);
                let mut links =
                    Links { begun: is_last && !self.found.segments.contains(&segment.segment), first: true };
                if links.begun {
                    self.after(header)?;
                }
                while let Some((offset, line)) = lines.next_line().map_err(io)? {
                    let record = RawRecord::parse(line).filter(RawRecord::is_intact);
                    let damaged = AuditReadError::Damaged { segment: segment.segment, offset };
                    let record = record.ok_or(damaged)?;
                    if record.place.number > last {
                        break;
                    }
                    self.link(&mut links, &record)?;
                }
                self.text("]")?;
            }
            self.text("}")?;
        }
        Ok(())
    }

    fn after(&mut self, after: After) -> Result<(), ExportError> {
        self.text(",\"after\":")?;
        self.json(&after)?;
        self.text(",\"links\":[")
    }

    fn link(&mut self, links: &mut Links, record: &RawRecord<'_>) -> Result<(), ExportError> {
        let number = record.place.number;
        let held = self.found.numbers.contains(&number);
        if !links.begun {
            // What stands before the first record of the session proves nothing about it.
            if !held {
                return Ok(());
            }
            links.begun = true;
            self.after(After { number: number - 1, hash: record.place.prev })?;
        }
        if !std::mem::take(&mut links.first) {
            self.text(",")?;
        }
        if held { self.json(&number) } else { self.json(&record.digest()) }
    }

    fn text(&mut self, text: &str) -> Result<(), ExportError> {
        self.out.write_all(text.as_bytes()).map_err(ExportError::Write)
    }

    fn json(&mut self, value: &impl Serialize) -> Result<(), ExportError> {
        serde_json::to_writer(&mut *self.out, value).map_err(|error| ExportError::Write(error.into()))
    }
}

/// Where we are in the links of a segment.
struct Links {
    begun: bool,
    first: bool,
}
