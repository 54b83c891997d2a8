//! The output of an agent as lines, each with the place behind it.

use swb_proto::agent::MAX_FRAME_BYTES;

/// A line that is longer than any frame may be is dropped while it streams.
const LONGEST_LINE: usize = 2 * MAX_FRAME_BYTES;

/// Cuts bytes into lines.
#[derive(Debug)]
pub(super) struct Output {
    /// The place behind what was put in.
    end: u64,
    rest: Vec<u8>,
    dropping: bool,
}

impl Output {
    /// Begins at a place where a line begins.
    pub(super) fn from(offset: u64) -> Self {
        Output { end: offset, rest: Vec::new(), dropping: false }
    }

    /// The place behind the last whole line.
    pub(super) fn place(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// Takes the bytes at a place. What was there before is not taken twice. `each` gets a line and the place behind it.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8], mut each: impl FnMut(&[u8], u64)) {
        let known = self.end.saturating_sub(offset);
        let bytes = bytes.get(usize::try_from(known).unwrap_or(usize::MAX)..).unwrap_or_default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.end += piece.len() as u64;
            let Some(line) = piece.strip_suffix(b"\n") else {
                if self.dropping || self.rest.len() + piece.len() > LONGEST_LINE {
                    self.rest.clear();
                    self.dropping = true;
                } else {
                    self.rest.extend_from_slice(piece);
                }
                continue;
            };
            if std::mem::take(&mut self.dropping) {
                continue;
            }
            if self.rest.is_empty() {
                each(line, self.end);
            } else {
                self.rest.extend_from_slice(line);
                each(&self.rest, self.end);
                self.rest.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(output: &mut Output, offset: u64, bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let mut lines = Vec::new();
        output.put(offset, bytes, |line, end| lines.push((line.to_vec(), end)));
        lines
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_is_not() {
        let mut output = Output::from(0);
        let long = vec![b'x'; LONGEST_LINE];
        assert!(lines(&mut output, 0, &long).is_empty());
        let end = long.len() as u64;
        assert!(lines(&mut output, end, b"xx").is_empty());
        assert_eq!(lines(&mut output, end + 2, b"y\nz\n"), [(b"z".to_vec(), end + 6)]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_pieces_nor_on_repeats(text in "[ab\n]{0,40}", cuts in prop::collection::vec(0usize..40, 0..5)) {
            let whole = lines(&mut Output::from(0), 0, text.as_bytes());
            let mut output = Output::from(0);
            let mut cut_up = Vec::new();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([text.len()]).collect();
            cuts.sort_unstable();
            let mut begin: usize = 0;
            for cut in cuts {
                // The last byte again: a host may send what was sent before.
                let again = begin.saturating_sub(1);
                cut_up.extend(lines(&mut output, again as u64, &text.as_bytes()[again..cut]));
                begin = cut;
            }
            prop_assert_eq!(cut_up, whole);
        }
    }
}
