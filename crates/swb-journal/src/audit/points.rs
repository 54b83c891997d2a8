//! Single records by the place where an index says they stand.
//!
//! The index may be wrong; what is returned is read from the file, whole and as it was written, or it is nothing.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::line::MAX_LINE_BYTES;
use super::read::{AuditReadError, AuditReader};
use super::record::Record;
use super::segment::SegmentFile;

const FIRST_READ_BYTES: usize = 2 << 10;
/// How many segments are kept open at a time.
const OPEN_FILES: usize = 64;

#[derive(Debug)]
pub(crate) struct Points {
    segments: HashMap<u64, SegmentFile>,
    files: HashMap<u64, File>,
    buffer: Vec<u8>,
}

impl Points {
    pub(crate) fn new(reader: &AuditReader) -> Result<Self, AuditReadError> {
        let segments = reader.segments()?.into_iter().map(|segment| (segment.segment, segment)).collect();
        Ok(Points { segments, files: HashMap::new(), buffer: Vec::new() })
    }

    /// Whether the segment is there.
    pub(crate) fn has(&self, segment: u64) -> bool {
        self.segments.contains_key(&segment)
    }

    /// The record whose line begins there.
    pub(crate) fn read(&mut self, segment: u64, offset: u64) -> Result<Option<Record>, AuditReadError> {
        let Some(name) = self.segments.get(&segment) else { return Ok(None) };
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(&segment) {
            self.files.clear();
        }
        let opened = match self.files.entry(segment) {
            std::collections::hash_map::Entry::Occupied(file) => Ok(file.into_mut()),
            std::collections::hash_map::Entry::Vacant(place) => name.open().map(|file| place.insert(file)),
        };
        let read = opened.and_then(|file| read_line(file, offset, &mut self.buffer));
        match read {
            Ok(Some(length)) => Ok(Record::parse(&self.buffer[..length])),
            Ok(None) => Ok(None),
            // It was purged after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuditReadError::io(&name.path, error)),
        }
    }
}

/// Reads a line into the buffer and says how long it is.
fn read_line(file: &File, offset: u64, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let mut filled = 0;
    loop {
        let wanted = (filled * 2).max(FIRST_READ_BYTES);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let count = match file.read_at(&mut buffer[filled..wanted], offset + filled as u64) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if let Some(at) = memchr::memchr(b'\n', &buffer[filled..filled + count]) {
            return Ok(Some(filled + at));
        }
        filled += count;
        if count == 0 || filled > MAX_LINE_BYTES {
            return Ok(None);
        }
    }
}
