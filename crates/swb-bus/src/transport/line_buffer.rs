//! Bytes of a stream, cut into lines, with a bound on what is kept.
//!
//! A line longer than the limit is dropped while it streams in: its beginning is kept (somebody may want to know whose
//! it was), the rest is counted and forgotten, and the line after it is read as if nothing had happened.
//! Pure: no socket in here. Proof: `any_chunking_gives_the_same_lines`.

use std::ops::Range;

/// How much of an oversized line is kept.
const HEAD_BYTES: usize = 4096;
/// A buffer that grew for a large line is given back once it is empty again.
const KEEP_CAPACITY: usize = 16 * 1024;

/// A line, or what is left of one.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The line without its newline (and without a carriage return before it).
    Whole(&'a [u8]),
    /// The beginning of a line that was too long.
    Oversized(&'a [u8]),
}

/// Collects bytes and gives out lines.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Lines before this place were given out.
    start: usize,
    /// There is no newline between `start` and this place.
    scanned: usize,
    limit: usize,
    /// Inside an oversized line: its head is at the front of `bytes`, the rest is being dropped.
    dropping: bool,
}

impl LineBuffer {
    /// A buffer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        LineBuffer { bytes: Vec::new(), start: 0, scanned: 0, limit, dropping: false }
    }

    /// Where to read into. Call [`LineBuffer::next`] until it is empty before reading more.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            (self.start, self.scanned) = (0, 0);
            if self.bytes.capacity() > KEEP_CAPACITY {
                self.bytes.shrink_to(KEEP_CAPACITY);
            }
        } else if self.start > 0 {
            self.bytes.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        &mut self.bytes
    }

    /// The next line, if a whole one has come in. Empty lines are skipped.
    #[expect(clippy::should_implement_trait, reason = "the line borrows from the buffer")]
    pub fn next(&mut self) -> Option<Line<'_>> {
        loop {
            let (range, oversized) = self.cut()?;
            if oversized {
                return Some(Line::Oversized(&self.bytes[range]));
            }
            let end = range.end - usize::from(self.bytes[range.clone()].ends_with(b"\r"));
            if end > range.start {
                return Some(Line::Whole(&self.bytes[range.start..end]));
            }
        }
    }

    /// Finds the next newline and moves past it: the range of its line, and whether that is only the head of one.
    fn cut(&mut self) -> Option<(Range<usize>, bool)> {
        let head = self.start..self.start + HEAD_BYTES.min(self.limit);
        let Some(end) = memchr::memchr(b'\n', &self.bytes[self.scanned..]).map(|at| self.scanned + at) else {
            if self.dropping || self.bytes.len() - self.start > self.limit {
                self.dropping = true;
                self.bytes.truncate(head.end);
            }
            self.scanned = self.bytes.len();
            return None;
        };
        let oversized = std::mem::take(&mut self.dropping) || end - self.start > self.limit;
        let range = if oversized { head } else { self.start..end };
        (self.start, self.scanned) = (end + 1, end + 1);
        Some((range, oversized))
    }

    /// Bytes that wait for the rest of their line.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines_of(limit: usize, chunks: &[&[u8]]) -> Vec<(bool, Vec<u8>)> {
        let mut buffer = LineBuffer::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            buffer.space().extend_from_slice(chunk);
            while let Some(line) = buffer.next() {
                lines.push(match line {
                    Line::Whole(line) => (true, line.to_vec()),
                    Line::Oversized(head) => (false, head.to_vec()),
                });
            }
        }
        lines
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        assert_eq!(
            lines_of(100, &[b"a", b"b\nc\r\n", b"\n\n", b"d"]),
            [(true, b"ab".to_vec()), (true, b"c".to_vec())]
        );
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_is_reported() {
        assert_eq!(
            lines_of(3, &[b"abc\nabcd\nx\n"]),
            [(true, b"abc".to_vec()), (false, b"abc".to_vec()), (true, b"x".to_vec())]
        );
    }

    #[test]
    fn an_endless_line_is_dropped_while_it_streams() {
        let mut buffer = LineBuffer::new(100_000);
        for _ in 0..1000 {
            buffer.space().extend_from_slice(&[b'x'; 65_536]); // 64 MiB in all
            assert_eq!(buffer.next(), None);
            assert!(buffer.pending() <= 165_536, "never more than the limit and one read");
        }
        assert!(buffer.pending() <= HEAD_BYTES);
        buffer.space().extend_from_slice(b"\nnext\n");
        assert_eq!(buffer.next(), Some(Line::Oversized(&[b'x'; HEAD_BYTES])));
        assert_eq!(buffer.next(), Some(Line::Whole(b"next")));
        buffer.space();
        assert!(buffer.bytes.capacity() <= KEEP_CAPACITY, "the room for a large line is given back");
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(text in proptest::collection::vec(proptest::sample::select(b"ab\r\n".to_vec()), 0..200), cuts in proptest::collection::vec(0usize..200, 0..10)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(lines_of(5, &chunks), lines_of(5, &[&text]));
        }
    }
}
