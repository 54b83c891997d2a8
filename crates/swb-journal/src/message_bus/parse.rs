//! The record scanner: from bytes to records, exactly as every reader of this format steps through them.
//!
//! Lines end at LF; a line that is `---` after cutting trailing CRs is a delimiter. Before the first one, legacy lines
//! are messages. A delimiter opens a header; the next one closes it if the text decodes, and otherwise counts as the
//! opener of the next try. A body runs to the next delimiter, which opens the header after it. Content is never an
//! error: what cannot be read is passed over and the scanner regains step at the next opener.
//!
//! The scanner looks at a slice and can stop and go on: [`Scanner::resume_at`] names a place from which a later scan of
//! more bytes gives the same records. A record whose end is not in sight is returned as [`Step::Open`]; whether that
//! is the end of the file and what it means is for the caller to judge. Bytes after the last LF are an unfinished
//! line and decide nothing.
//!
//! [`synchronise`] finds a record start in the middle of a file with certainty: if the text between two delimiters does
//! not decode as a header, the second one is an opener whatever stood before the first.

use super::body::{self, Ending};
use super::header::{self, Header};
use super::legacy;
use super::record::Record;

/// What the bytes at a place mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No delimiter seen yet; `line` is the number of the next line, from 1.
    Seek { line: u64 },
    /// After a record, or at an opener: text up to the next delimiter belongs to no record to come.
    Between,
}

impl State {
    /// The state at the first byte of a file.
    pub(super) const START: Self = Self::Seek { line: 1 };
}

/// A record and where it starts within the scanned bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    /// Offset of the opener (or of the legacy line).
    pub(super) start: usize,
    pub(super) record: Record<'a>,
}

/// One step of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A record that nothing appended later can change.
    Record(Found<'a>),
    /// The bytes ended within this record's body. What of them belongs to it ends at `end`.
    Open { found: Found<'a>, ending: Ending, end: usize },
    /// The bytes ended outside any body.
    End(Unfinished),
}

/// What the bytes end with when they do not end in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// Nothing, or text before the first delimiter.
    Nothing,
    /// An opener without its closing delimiter.
    Header {
        /// Offset of the opener.
        opener: usize,
    },
}

/// Steps through a slice of a bus file.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    state: State,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8], state: State) -> Self {
        Self { bytes, at: 0, state }
    }

    /// Where and in what state a later scan may go on without losing or repeating a record.
    pub(super) fn resume_at(&self) -> (usize, State) {
        (self.at, self.state)
    }

    /// Accepts the open record that was just returned and ended here: scanning resumes behind it.
    pub(super) fn accept_open(&mut self, end: usize) {
        self.at = end;
        self.state = State::Between;
    }

    /// The next record. After anything but [`Step::Record`] it answers the same again.
    #[inline]
    pub(super) fn step(&mut self) -> Step<'a> {
        let opener = match self.state {
            State::Seek { .. } => match self.seek() {
                Seek::Legacy(found) => return Step::Record(found),
                Seek::Unfinished(found) => {
                    return Step::Open { found, ending: Ending::Unterminated, end: self.bytes.len() };
                }
                Seek::Opener(opener) => opener,
                Seek::End => return Step::End(Unfinished::Nothing),
            },
            State::Between => match find_delimiter(self.bytes, self.at) {
                Some(opener) => opener,
                None => return Step::End(Unfinished::Nothing),
            },
        };
        self.record_at(opener)
    }

    fn seek(&mut self) -> Seek<'a> {
        while let State::Seek { line } = self.state {
            let rest = &self.bytes[self.at..];
            let Some(end) = memchr::memchr(b'\n', rest) else {
                let start = self.at;
                return match legacy::parse_line(rest, line) {
                    Some(record) => Seek::Unfinished(Found { start, record }),
                    None => Seek::End,
                };
            };
            let text = &rest[..end];
            let start = self.at;
            if is_delimiter(text) {
                self.state = State::Between;
                return Seek::Opener(Delimiter { start, end: start + end + 1 });
            }
            self.at += end + 1;
            self.state = State::Seek { line: line + 1 };
            if let Some(record) = legacy::parse_line(text, line) {
                return Seek::Legacy(Found { start, record });
            }
        }
        Seek::End
    }

    #[inline]
    fn record_at(&mut self, mut opener: Delimiter) -> Step<'a> {
        loop {
            // Whatever precedes this opener is settled.
            self.at = opener.start;
            self.state = State::Between;
            let text = &self.bytes[opener.end..];
            let (header, body_start) = if let Some((header, used)) = header::canonical::decode_prefix(text) {
                (header, opener.end + used)
            } else {
                let Some(closer) = find_delimiter(self.bytes, opener.end) else {
                    return Step::End(Unfinished::Header { opener: opener.start });
                };
                match header::yaml::decode(&self.bytes[opener.end..closer.start]) {
                    Some(header) => (header, closer.end),
                    None => {
                        opener = closer;
                        continue;
                    }
                }
            };
            let next = find_delimiter(self.bytes, body_start);
            let raw = &self.bytes[body_start..next.map_or(self.bytes.len(), |next| next.start)];
            let Header { mut record, note } = header;
            (record.body, record.body_state) = body::restore(raw, note, next.is_some());
            let found = Found { start: opener.start, record };
            return match next {
                Some(next) => {
                    self.at = next.start;
                    Step::Record(found)
                }
                None => {
                    let (ending, len) = body::ending(raw, note);
                    Step::Open { found, ending, end: body_start + len }
                }
            };
        }
    }
}

enum Seek<'a> {
    Legacy(Found<'a>),
    Unfinished(Found<'a>),
    Opener(Delimiter),
    End,
}

#[derive(Clone, Copy)]
struct Delimiter {
    start: usize,
    end: usize,
}

fn is_delimiter(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(|byte| *byte == b'\r'))
}

/// The next complete delimiter line at or after `from`, which must be the start of a line.
fn find_delimiter(bytes: &[u8], from: usize) -> Option<Delimiter> {
    let ends_at = |start: usize| -> Option<usize> {
        let rest = bytes[start..].strip_prefix(b"---")?;
        let crs = rest.iter().take_while(|byte| **byte == b'\r').count();
        (rest.get(crs) == Some(&b'\n')).then_some(start + 3 + crs + 1)
    };
    if let Some(end) = ends_at(from) {
        return Some(Delimiter { start: from, end });
    }
    let finder = &*FINDER;
    let mut at = from;
    while let Some(found) = finder.find(&bytes[at..]) {
        let start = at + found + 1;
        if let Some(end) = ends_at(start) {
            return Some(Delimiter { start, end });
        }
        at = start;
    }
    None
}

static FINDER: std::sync::LazyLock<memchr::memmem::Finder<'static>> =
    std::sync::LazyLock::new(|| memchr::memmem::Finder::new(b"\n---"));

/// Just before the n-th last line that starts like a delimiter; a place from which a few records are left to parse.
pub(super) fn nth_last_line(window: &[u8], n: usize) -> Option<usize> {
    memchr::memmem::rfind_iter(window, b"\n---").nth(n)
}

/// The first offset in a window from the middle of a file that is an opener for certain.
pub(super) fn synchronise(window: &[u8]) -> Option<usize> {
    // The window may begin within a line.
    let first_line = memchr::memchr(b'\n', window)? + 1;
    let mut previous = find_delimiter(window, first_line)?;
    loop {
        // A canonical header is recognised much more quickly than by its text.
        if header::canonical::decode_prefix(&window[previous.end..]).is_none() {
            let next = find_delimiter(window, previous.end)?;
            if !header::is_header(&window[previous.end..next.start]) {
                return Some(next.start);
            }
            previous = next;
        } else {
            previous = find_delimiter(window, previous.end)?;
        }
    }
}

/// Whether an unfinished header at the end of a file began as one of ours, so that it is a torn write and no text.
pub(super) fn begins_like_a_record(after_opener: &[u8]) -> bool {
    const FIRST: &[u8] = b"msg_id: ";
    let len = after_opener.len().min(FIRST.len());
    after_opener[..len] == FIRST[..len] && !after_opener.is_empty()
}

/// Whether a writer must break up an unfinished header before appending, because its own opener would close it.
pub(super) fn would_swallow(after_opener: &[u8]) -> bool {
    header::is_header(after_opener)
}

#[cfg(test)]
mod tests;
