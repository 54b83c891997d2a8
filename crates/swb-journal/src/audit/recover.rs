//! Finding the end of a log when it is opened: the last segment is read and checked, and a torn tail is cut.
//!
//! A write that was under way when the process or the machine ended leaves a beginning of what it was to be: bytes after
//! the last newline, or, after a power cut, a stretch that was never written (zeros). That is a torn tail; nobody was
//! told that it is there, and it is cut. Everything else that does not hang together is damage: a whole line that is not
//! as it was written, or anything with a record that is intact behind it. Damage is never cut.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use serde::{Deserialize, Serialize};

use super::hash::ChainHash;
use super::header::{Damage, FORMAT, Header};
use super::line::RawRecord;
use super::lines::Lines;
use super::segment::SegmentFile;

/// A torn tail that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The segment.
    pub segment: u64,
    /// Where it was cut.
    pub offset: u64,
    /// How many bytes were there.
    pub bytes: u64,
}

/// The end of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tip {
    /// The number of the last record.
    pub(super) number: u64,
    /// Its hash, or the header's if there is none in the segment.
    pub(super) hash: ChainHash,
    /// The highest place of an event so far.
    pub(super) seq: u64,
    /// Where the next line goes.
    pub(super) offset: u64,
    /// Commands that have begun and not ended.
    pub(super) open: BTreeSet<u64>,
}

impl Tip {
    fn before_records(header: &Header, hash: ChainHash, offset: u64) -> Self {
        let open = header.open.iter().copied().collect();
        Tip { number: header.first - 1, hash, seq: header.seq, offset, open }
    }

    /// Goes on over a record, if it is the next one and as it was written.
    pub(super) fn advance(&mut self, record: &RawRecord<'_>, line_bytes: usize) -> bool {
        let place = &record.place;
        let next = place.number == self.number + 1 && place.prev == self.hash && place.seq >= self.seq;
        if !next || !record.is_intact() {
            return false;
        }
        self.number = place.number;
        self.hash = record.hash;
        self.seq = place.seq;
        self.offset += line_bytes as u64 + 1;
        match record.kind {
            b"start" => drop(self.open.insert(self.number)),
            b"end" => drop(record.of().map(|of| self.open.remove(&of))),
            _ => {}
        }
        true
    }
}

/// The highest number and the highest place of an event that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Highest {
    pub(super) number: u64,
    pub(super) seq: u64,
}

impl Highest {
    fn or(self, number: u64, seq: u64) -> Self {
        Highest { number: self.number.max(number), seq: self.seq.max(seq) }
    }
}

/// What a segment looks like when it is opened.
#[derive(Debug)]
pub(super) enum Examined {
    /// It can be written on.
    Sound { header: Header, header_hash: ChainHash, tip: Tip, torn_bytes: u64 },
    /// Not even its header was written to the end.
    Unborn { bytes: u64 },
    /// It is damaged. `highest` is the place of the last intact record in it, before or behind the damage.
    Damaged { damage: Damage, header: Option<(Header, ChainHash)>, tip: Option<Tip>, highest: Highest },
    /// It is of a version that this one does not know.
    Foreign { format: u32 },
}

/// Reads a segment to its end.
pub(super) fn examine(segment: &SegmentFile) -> io::Result<Examined> {
    let file = segment.open()?;
    let length = file.metadata()?.len();
    let mut lines = Lines::new(file.try_clone()?, 0);
    let damaged = |offset, header: Option<(Header, ChainHash)>, tip: Option<Tip>, highest| {
        let last_good = tip.as_ref().map_or(segment.first.saturating_sub(1), |tip| tip.number);
        let damage = Damage { segment: segment.segment, offset, last_good };
        Examined::Damaged { damage, tip, header, highest }
    };
    let (header, header_hash, after) = match next(&mut lines)? {
        None => {
            let behind = behind(&file, 0)?;
            return Ok(match behind.is_torn() {
                true => Examined::Unborn { bytes: length },
                false => damaged(0, None, None, behind.highest),
            });
        }
        Some(line) => match Header::parse(line) {
            Some((header, _)) if header.format != FORMAT => {
                return Ok(Examined::Foreign { format: header.format });
            }
            Some((header, hash)) if fits(&header, segment) => (header, hash, line.len() as u64 + 1),
            _ => return Ok(damaged(0, None, None, behind(&file, 0)?.highest)),
        },
    };
    let mut tip = Tip::before_records(&header, header_hash, after);
    while let Some(line) = next(&mut lines)? {
        let bytes = line.len();
        if !RawRecord::parse(line).is_some_and(|record| tip.advance(&record, bytes)) {
            break;
        }
    }
    let behind = behind(&file, tip.offset)?;
    if behind.is_torn() {
        let torn_bytes = length.saturating_sub(tip.offset);
        return Ok(Examined::Sound { header, header_hash, tip, torn_bytes });
    }
    let highest = behind.highest.or(tip.number, tip.seq);
    Ok(damaged(tip.offset, Some((header, header_hash)), Some(tip), highest))
}

/// Whether the name says what the header says.
pub(super) fn fits(header: &Header, segment: &SegmentFile) -> bool {
    header.segment == segment.segment && header.first == segment.first && header.first > 0
}

/// The next line; one that never ends counts as none, and is noted.
fn or_endless<T>(next: io::Result<Option<T>>, endless: &mut bool) -> io::Result<Option<T>> {
    match next {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            *endless = true;
            Ok(None)
        }
        next => next,
    }
}

fn next(lines: &mut Lines) -> io::Result<Option<&[u8]>> {
    Ok(or_endless(lines.next_line(), &mut false)?.map(|(_, line)| line))
}

/// What stands behind the last good line.
struct Behind {
    whole_lines: u64,
    /// A stretch without a newline that is longer than any write.
    endless: bool,
    zeros: bool,
    intact: bool,
    /// Of those records that are intact.
    highest: Highest,
}

impl Behind {
    fn is_torn(&self) -> bool {
        !self.intact && !self.endless && (self.whole_lines == 0 || self.zeros)
    }
}

fn behind(file: &File, offset: u64) -> io::Result<Behind> {
    let mut lines = Lines::new(file.try_clone()?, offset);
    let mut behind =
        Behind { whole_lines: 0, endless: false, zeros: false, intact: false, highest: Highest::default() };
    while let Some((_, line)) = or_endless(lines.next_line(), &mut behind.endless)? {
        behind.whole_lines += 1;
        behind.zeros |= line.contains(&0);
        if let Some(record) = RawRecord::parse(line).filter(RawRecord::is_intact) {
            behind.intact = true;
            behind.highest = behind.highest.or(record.place.number, record.place.seq);
        }
    }
    behind.zeros |= lines.rest().contains(&0);
    Ok(behind)
}
