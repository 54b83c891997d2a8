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
//! The file is a page with the `header`, then the slots; `key` says where something belongs, `found` what a file has.

mod found;
mod header;
mod key;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use super::folder::Folder;
use super::lock;
use super::segment::{self, Segment};
use found::Found;
use header::{Header, PAGE, u64_at};
pub(super) use key::Key;
use key::{OFFSET_BITS, fingerprint, home, slot_of};

const MIN_SLOTS: u64 = 1 << 12;
/// Slots read at once while probing.
const PROBE: usize = 16;
/// Files and rests up to this size are scanned rather than indexed.
pub(super) const WORTH_INDEXING: u64 = 64 << 10;

/// The index file of a bus file.
pub(super) fn file_name(segment: &str) -> String {
    format!("{segment}.idx")
}

/// An index that fits its file.
#[derive(Debug)]
pub(super) struct Index {
    file: File,
    header: Header,
    /// The header as it is in the file.
    page: Vec<u8>,
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
            let found = Found::behind(segment, index.header.covered)?;
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
        let found = Found::behind(segment, 0)?;
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
        let mut header = Header::new(segment.identity, slots);
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

    fn insert(&self, found: &Found) -> io::Result<()> {
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

fn slot_offset(position: u64) -> u64 {
    PAGE as u64 + position * 8
}
