//! The first page of an index: which file it is of, and how far it goes.
//!
//! Layout, little endian: `magic 8 | device 8 | inode 8 | covered 8 | count 8 | slots 8 | tail 64 | marks n 8 | marks
//! 8 × n … | crc32 4` in 1024 bytes.

use std::io;
use std::os::unix::fs::FileExt;

use super::found::Found;
use crate::message_bus::identity::FileIdentity;
use crate::message_bus::segment::Segment;

const MAGIC: &[u8; 8] = b"SWBIDX\x001";
pub(super) const PAGE: usize = 1024;
const TAIL: usize = 64;
const MAX_MARKS: usize = 64;
const MARKS_AT: usize = 56 + TAIL;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    identity: FileIdentity,
    pub(super) covered: u64,
    pub(super) count: u64,
    pub(super) slots: u64,
    tail: [u8; TAIL],
    pub(super) marks: Vec<u64>,
}

impl Header {
    /// The header of an index that covers nothing yet.
    pub(super) fn new(identity: FileIdentity, slots: u64) -> Self {
        Header { identity, covered: 0, count: 0, slots, tail: [0; TAIL], marks: Vec::new() }
    }

    /// Whether the file up to the covered end is the one that was indexed.
    pub(super) fn fits(&self, segment: &Segment) -> io::Result<bool> {
        Ok(self.identity == segment.identity && self.tail == tail_before(segment, self.covered)?)
    }

    /// Goes as far as what was found.
    pub(super) fn advance(&mut self, segment: &Segment, found: &Found) -> io::Result<()> {
        self.covered = found.covered;
        self.count += found.entries.len() as u64;
        self.tail = tail_before(segment, self.covered)?;
        self.marks.extend(&found.marks);
        let surplus = self.marks.len().saturating_sub(MAX_MARKS);
        self.marks.drain(..surplus);
        Ok(())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
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

    pub(super) fn decode(page: &[u8]) -> Option<Self> {
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

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
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
