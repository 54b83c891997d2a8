//! The index beside each bus file: where a message id or an idempotency key was first seen.
//!
//! A hash table of eight-byte slots (24 bits of hash, 40 bits of offset + 1) behind a short header, in
//! `.<bus>.swb/<file>.idx`. It covers the file up to an offset that is a record's opener; what lies behind is scanned.
//! Readers extend it when that rest grows; a table that gets too full is built anew and renamed into place.
//!
//! It is never trusted over the file. The header names the file's identity and repeats the bytes before the covered
//! end, so an edited, truncated or replaced file is noticed and the index built anew. Every hit is checked against the
//! record it points to. A miss is final only for keys, where the slots are synced before the header claims them; a
//! cursor that is not found is searched for in the whole file before anyone is told so.
//!
//! The header also keeps the offsets of the newest openers, one per 64 KiB: starting points for reading the last
//! records of files whose bodies all look like headers (see [`super::parse::synchronise`]).
//!
//! Layout, little endian: `magic 8 | device 8 | inode 8 | covered 8 | count 8 | slots 8 | tail 64 | marks n 8 | marks
//! 8 × n … | crc32 4` in 1024 bytes, then the slots.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use super::lock;
use super::place::{FileIdentity, Folder};
use super::record::Record;
use super::segment::{self, Patience, Position, Segment};

const MAGIC: &[u8; 8] = b"SWBIDX\x001";
const PAGE: usize = 1024;
const TAIL: usize = 64;
const MARK_SPACING: u64 = 64 << 10;
const MAX_MARKS: usize = 64;
const MARKS_AT: usize = 56 + TAIL;
const OFFSET_BITS: u32 = 40;
const MIN_SLOTS: u64 = 1 << 12;
/// Slots read at once while probing.
const PROBE: usize = 16;
/// Files and rests up to this size are scanned rather than indexed.
pub(super) const WORTH_INDEXING: u64 = 64 << 10;

/// The index file of a bus file.
pub(super) fn file_name(segment: &str) -> String {
    format!("{segment}.idx")
}

/// What is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key<'a> {
    Id(&'a str),
    Idempotency(&'a str),
}

impl Key<'_> {
    pub(super) fn matches(self, record: &Record<'_>) -> bool {
        match self {
            Self::Id(id) => record.id == id,
            Self::Idempotency(key) => record.idempotency_key.as_deref() == Some(key),
        }
    }

    /// FNV-1a, with the kind of key mixed in and the bits stirred at the end.
    fn hash(self) -> u64 {
        let (kind, text) = match self {
            Self::Id(id) => (b'i', id),
            Self::Idempotency(key) => (b'k', key),
        };
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in std::iter::once(kind).chain(text.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash ^= hash >> 29;
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 32)
    }
}

/// An index that fits its file.
#[derive(Debug)]
pub(super) struct Index {
    file: File,
    header: Header,
    /// The header as it is in the file.
    page: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    identity: FileIdentity,
    covered: u64,
    count: u64,
    slots: u64,
    tail: [u8; TAIL],
    marks: Vec<u64>,
}

impl Index {
    /// The index of a file, extended if the rest is worth it. `None` if there is none and none can be made.
    pub(super) fn open(folder: &Folder, side: &str, segment: &Segment) -> io::Result<Option<Self>> {
        let len = segment.opened_len;
        let current = Self::load(folder, &format!("{side}/{}", file_name(&segment.name)), segment, len)?;
        match current {
            Some(index) if len - index.header.covered <= WORTH_INDEXING => Ok(Some(index)),
            // Whoever holds the lock is doing the same work; the old index, if any, still helps.
            current => {
                let Ok(side) = folder.side(side, true) else { return Ok(current) };
                Ok(Self::extend(&side, segment, len)?.or(current))
            }
        }
    }

    /// Whether a file of this size has an index at all.
    pub(super) fn is_worth_having(len: u64) -> bool {
        len > WORTH_INDEXING
    }

    /// Whether it still is as good as one opened now: nobody has touched it, and it fits the file.
    pub(super) fn serves(&self, segment: &Segment) -> io::Result<bool> {
        let rest = segment.opened_len.checked_sub(self.header.covered);
        if rest.is_none_or(|rest| rest > WORTH_INDEXING) {
            return Ok(false);
        }
        let mut page = [0; PAGE];
        let untouched = self.file.read_at(&mut page, 0)? == PAGE && self.page == page;
        Ok(untouched && self.header.fits(segment)?)
    }

    /// Up to where the file is indexed: an opener.
    pub(super) fn covered(&self) -> u64 {
        self.header.covered
    }

    /// The last known opener at or before an offset.
    pub(super) fn mark_before(&self, offset: u64) -> Option<u64> {
        let marks = &self.header.marks;
        marks.iter().rev().copied().find(|mark| *mark <= offset)
    }

    /// Offsets where the key may have been seen, in no order; the caller checks them.
    pub(super) fn candidates(&self, key: Key<'_>) -> io::Result<Vec<u64>> {
        let hash = key.hash();
        let mut found = Vec::new();
        self.probe(hash, |_, slot| {
            if slot == 0 {
                return ControlFlow::Break(());
            }
            if slot >> OFFSET_BITS == fingerprint(hash) {
                found.push((slot & ((1 << OFFSET_BITS) - 1)) - 1);
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Visits slots from a hash's home on, until told to stop.
    fn probe(&self, hash: u64, mut visit: impl FnMut(u64, u64) -> ControlFlow<()>) -> io::Result<()> {
        let mut position = home(hash, self.header.slots);
        let mut seen = 0;
        let mut block = [0; PROBE * 8];
        while seen < self.header.slots {
            let in_block = (self.header.slots - position).min(PROBE as u64);
            let bytes = &mut block[..usize::try_from(in_block).unwrap_or(PROBE) * 8];
            self.file.read_exact_at(bytes, slot_offset(position))?;
            for (index, slot) in bytes.chunks_exact(8).enumerate() {
                if visit(position + index as u64, u64_at(slot, 0)).is_break() {
                    return Ok(());
                }
            }
            seen += in_block;
            position = (position + in_block) % self.header.slots;
        }
        Ok(())
    }

    fn load(folder: &Folder, path: &str, segment: &Segment, len: u64) -> io::Result<Option<Self>> {
        let Ok(file) = folder.open_file(path, OFlags::RDWR) else { return Ok(None) };
        let mut page = Vec::new();
        segment::read_at(&file, &mut page, 0, PAGE)?;
        let Some(header) = Header::decode(&page) else { return Ok(None) };
        let fits = header.covered <= len && header.fits(segment)?;
        Ok(fits.then_some(Self { file, header, page }))
    }

    /// Adds everything up to the last closed record; builds the table anew if it does not fit the file or is too
    /// full. `None` if someone else is at it or the folder cannot be written.
    fn extend(side: &Folder, segment: &Segment, len: u64) -> io::Result<Option<Self>> {
        let name = file_name(&segment.name);
        let Ok(file) = side.open_file(&name, OFlags::RDWR | OFlags::CREATE) else { return Ok(None) };
        if !lock::try_exclusive(&file)? {
            return Ok(None);
        }
        if let Some(mut index) = Self::load(side, &name, segment, len)? {
            let found = collect(segment, index.header.covered)?;
            let total = index.header.count + found.entries.len() as u64;
            if total * 2 <= index.header.slots {
                index.insert(&found)?;
                index.header.advance(segment, &found)?;
                // The header may claim only what is on the disk.
                index.file.sync_data()?;
                index.page = index.header.encode();
                index.file.write_all_at(&index.page, 0)?;
                return Ok(Some(index));
            }
        }
        Self::build(side, segment, &name)
    }

    fn build(side: &Folder, segment: &Segment, name: &str) -> io::Result<Option<Self>> {
        let found = collect(segment, 0)?;
        let slots = (found.entries.len() as u64 * 4).next_power_of_two().max(MIN_SLOTS);
        let mut table = vec![0_u64; usize::try_from(slots).unwrap_or(0)];
        for (hash, offset) in &found.entries {
            let mut position = home(*hash, slots);
            loop {
                let slot = &mut table[usize::try_from(position).unwrap_or(0)];
                if *slot == 0 {
                    *slot = slot_of(*hash, *offset);
                    break;
                }
                position = (position + 1) % slots;
            }
        }
        let mut header = Header {
            identity: segment.identity,
            covered: 0,
            count: 0,
            slots,
            tail: [0; TAIL],
            marks: Vec::new(),
        };
        header.advance(segment, &found)?;
        let page = header.encode();
        let mut bytes = page.clone();
        bytes.extend(table.iter().flat_map(|slot| slot.to_le_bytes()));
        let fresh = format!("{name}.{}", std::process::id());
        let Ok(file) = side.open_file(&fresh, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC) else {
            return Ok(None);
        };
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        rustix::fs::renameat(side, &fresh, side, name)?;
        Ok(Some(Self { file, header, page }))
    }

    fn insert(&self, found: &Collected) -> io::Result<()> {
        for (hash, offset) in &found.entries {
            let wanted = slot_of(*hash, *offset);
            let mut free = None;
            self.probe(*hash, |position, slot| {
                // A crash between slots and header leaves entries that are met again here.
                if slot == 0 || slot == wanted {
                    free = Some(position);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            if let Some(position) = free {
                self.file.write_all_at(&wanted.to_le_bytes(), slot_offset(position))?;
            }
        }
        Ok(())
    }
}

/// Keys of closed records and the opener behind the last of them.
struct Collected {
    entries: Vec<(u64, u64)>,
    marks: Vec<u64>,
    covered: u64,
}

fn collect(segment: &Segment, from: u64) -> io::Result<Collected> {
    let start = if from == 0 { Position::START } else { Position::between(from) };
    let (mut entries, mut marks) = (Vec::new(), Vec::new());
    let mut next_mark = from;
    let end =
        segment::scan(segment, start, segment.opened_len, Patience::ClosedOnly, &mut |offset, record| {
            // Legacy lines are found by their number, and what cannot be addressed needs no entry.
            if offset >> OFFSET_BITS == 0 && !record.id.is_empty() && !record.id.starts_with("LEGACY-LINE-") {
                entries.push((Key::Id(&record.id).hash(), offset));
                if let Some(key) = &record.idempotency_key {
                    entries.push((Key::Idempotency(key).hash(), offset));
                }
                if offset >= next_mark {
                    marks.push(offset);
                    next_mark = offset + MARK_SPACING;
                }
            }
            ControlFlow::Continue(())
        })?;
    // Within legacy lines there is no opener to resume from yet.
    let covered = if end.resume.state == super::parse::State::Between { end.resume.offset } else { 0 };
    Ok(Collected { entries, marks, covered })
}

impl Header {
    /// Whether the file up to the covered end is the one that was indexed.
    fn fits(&self, segment: &Segment) -> io::Result<bool> {
        Ok(self.identity == segment.identity && self.tail == tail_before(segment, self.covered)?)
    }

    fn advance(&mut self, segment: &Segment, found: &Collected) -> io::Result<()> {
        self.covered = found.covered;
        self.count += found.entries.len() as u64;
        self.tail = tail_before(segment, self.covered)?;
        self.marks.extend(&found.marks);
        let surplus = self.marks.len().saturating_sub(MAX_MARKS);
        self.marks.drain(..surplus);
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(PAGE);
        page.extend_from_slice(MAGIC);
        for value in [self.identity.device, self.identity.inode, self.covered, self.count, self.slots] {
            page.extend_from_slice(&value.to_le_bytes());
        }
        page.extend_from_slice(&self.tail);
        page.extend_from_slice(&(self.marks.len() as u64).to_le_bytes());
        for mark in &self.marks {
            page.extend_from_slice(&mark.to_le_bytes());
        }
        page.resize(PAGE - 4, 0);
        let crc = crc32fast::hash(&page);
        page.extend_from_slice(&crc.to_le_bytes());
        page
    }

    fn decode(page: &[u8]) -> Option<Self> {
        let (content, crc) = page.split_at_checked(PAGE - 4)?;
        if &content[..8] != MAGIC || crc32fast::hash(content).to_le_bytes() != crc {
            return None;
        }
        let marks = usize::try_from(u64_at(content, MARKS_AT - 8)).ok()?.min(MAX_MARKS);
        Some(Self {
            identity: FileIdentity { device: u64_at(content, 8), inode: u64_at(content, 16) },
            covered: u64_at(content, 24),
            count: u64_at(content, 32),
            slots: u64_at(content, 40).max(1),
            tail: content[48..48 + TAIL].try_into().ok()?,
            marks: (0..marks).map(|index| u64_at(content, MARKS_AT + index * 8)).collect(),
        })
    }
}

/// The bytes before an offset, as evidence that the file up to there is the one that was indexed.
fn tail_before(segment: &Segment, offset: u64) -> io::Result<[u8; TAIL]> {
    let mut tail = [0; TAIL];
    let start = offset.saturating_sub(TAIL as u64);
    let wanted = usize::try_from(offset - start).unwrap_or(TAIL);
    match segment.file.read_exact_at(&mut tail[..wanted], start) {
        Ok(()) => Ok(tail),
        // A file that has become shorter is no longer the one that was indexed.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok([0; TAIL]),
        Err(error) => Err(error),
    }
}

fn home(hash: u64, slots: u64) -> u64 {
    hash % slots
}

fn fingerprint(hash: u64) -> u64 {
    hash >> OFFSET_BITS
}

fn slot_of(hash: u64, offset: u64) -> u64 {
    (fingerprint(hash) << OFFSET_BITS) | (offset + 1)
}

fn slot_offset(position: u64) -> u64 {
    PAGE as u64 + position * 8
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_page_and_damage_is_noticed() {
        let header = Header {
            identity: FileIdentity { device: 1, inode: 2 },
            covered: 3,
            count: 4,
            slots: 8,
            tail: [7; TAIL],
            marks: (0..MAX_MARKS as u64).collect(),
        };
        let mut page = header.encode();
        assert_eq!(page.len(), PAGE);
        assert_eq!(Header::decode(&page), Some(header));
        page[30] ^= 1;
        assert_eq!(Header::decode(&page), None);
        assert_eq!(Header::decode(&page[..100]), None);
    }
}
