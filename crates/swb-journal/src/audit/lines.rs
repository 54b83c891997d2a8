//! Lines of a segment, from any offset on, in bounded memory.
//!
//! Only whole lines are handed out: what has no newline yet is being written, or is torn. A reader that has come to the
//! end may ask again later and goes on where it was. A line longer than any record is an error, not a reason to read on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::line::MAX_LINE_BYTES;

const CHUNK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Lines {
    file: File,
    /// Where the next line begins in the file.
    offset: u64,
    buffer: Vec<u8>,
    /// The part of the buffer that has not been handed out.
    from: usize,
    to: usize,
    /// How much of that part is known to hold no newline.
    searched: usize,
    /// The end was reached: what has no newline is read again, because it may have been cut and written anew.
    ended: bool,
    /// Where the line handed out last stands in the buffer.
    last: (usize, usize),
}

/// A line that cannot be one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than any record")]
pub(super) struct TooLong;

impl Lines {
    pub(super) fn new(file: File, offset: u64) -> Self {
        Lines { file, offset, buffer: Vec::new(), from: 0, to: 0, searched: 0, ended: false, last: (0, 0) }
    }

    /// Where the next line begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line without its newline, and where it begins; none at the end.
    pub(super) fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        if std::mem::take(&mut self.ended) {
            self.to = self.from;
            self.searched = 0;
        }
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.from + self.searched..self.to]) {
                let (from, length) = (self.from, self.searched + at);
                let offset = self.offset;
                self.from += length + 1;
                self.offset += length as u64 + 1;
                self.searched = 0;
                self.last = (from, from + length);
                return Ok(Some((offset, self.last())));
            }
            self.searched = self.to - self.from;
            if self.searched >= MAX_LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, TooLong));
            }
            if self.fill()? == 0 {
                self.ended = true;
                return Ok(None);
            }
        }
    }

    /// Whether there is another line. It is not taken.
    pub(super) fn peek(&mut self) -> io::Result<bool> {
        let found = self.next_line()?.is_some();
        if found {
            let (from, to) = self.last;
            self.from = from;
            self.offset -= (to - from) as u64 + 1;
        }
        Ok(found)
    }

    /// The line that was handed out last; only before the next one is asked for.
    pub(super) fn last(&self) -> &[u8] {
        &self.buffer[self.last.0..self.last.1]
    }

    /// What stands after the last whole line; only right after `next_line` found none.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        let wanted = self.to + CHUNK_BYTES;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        loop {
            match self.file.read_at(&mut self.buffer[self.to..], self.offset + self.to as u64) {
                Ok(count) => {
                    self.to += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::NamedTempFile, File) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let reader = file.reopen().unwrap();
        (file, reader)
    }

    #[test]
    fn a_reader_at_the_end_goes_on_when_there_is_more() {
        let (mut file, reader) = file_of(b"one\ntw");
        let mut lines = Lines::new(reader, 0);
        assert!(lines.peek().unwrap());
        assert_eq!(lines.next_line().unwrap(), Some((0, &b"one"[..])));
        assert!(!lines.peek().unwrap());
        assert_eq!(lines.next_line().unwrap(), None);
        assert_eq!(lines.rest(), b"tw");
        file.write_all(b"o\n").unwrap();
        assert_eq!(lines.next_line().unwrap(), Some((4, &b"two"[..])));
        assert_eq!(lines.next_line().unwrap(), None);
        assert_eq!(lines.offset(), 8);
    }

    #[test]
    fn a_tail_that_is_cut_and_written_anew_is_read_anew() {
        let (mut file, reader) = file_of(b"one\nto");
        let mut lines = Lines::new(reader, 4);
        assert_eq!(lines.next_line().unwrap(), None);
        file.as_file_mut().set_len(4).unwrap();
        std::os::unix::fs::FileExt::write_all_at(file.as_file(), b"three\n", 4).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some((4, &b"three"[..])));
        file.flush().unwrap();
    }

    #[test]
    fn a_line_that_never_ends_is_an_error_and_memory_is_bounded() {
        let (_file, reader) = file_of(&vec![b'x'; 3 * MAX_LINE_BYTES]);
        let mut lines = Lines::new(reader, 0);
        assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(lines.buffer.len() <= MAX_LINE_BYTES + 2 * CHUNK_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
        #[test]
        fn all_lines_come_whole_and_in_order(lengths in prop::collection::vec(0usize..200_000, 0..12)) {
            let texts: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(n, length)| vec![b"abcdefghijkl"[n]; *length]).collect();
            let bytes: Vec<u8> = texts.iter().flat_map(|text| text.iter().copied().chain([b'\n'])).collect();
            let (_file, reader) = file_of(&bytes);
            let mut lines = Lines::new(reader, 0);
            let mut at = 0;
            for text in &texts {
                prop_assert_eq!(lines.next_line().unwrap(), Some((at, &text[..])));
                at += text.len() as u64 + 1;
            }
            prop_assert_eq!(lines.next_line().unwrap(), None);
        }
    }
}
