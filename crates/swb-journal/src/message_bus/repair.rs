//! The end of a bus file as a writer finds it, under the lock: is it whole, and which id came last?
//!
//! A write that was stopped half way (disk full, killed) leaves a torn tail. Readers pass over it, but the next record
//! behind it could be taken for its end, so a writer cuts it first. The cut bytes are kept beside the file, in `torn`:
//! nobody was told they were posted, but they may be all that is left of someone's text.
//!
//! What is not recognisably a torn write stays: a hand-written last record without a final newline is completed by
//! the separator, and foreign text behind a stray `---` line gets a line that no YAML parser accepts, so that the
//! record after it cannot be swallowed as its body. Never is a byte changed that a whole record stands on.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use rustix::fs::OFlags;

use super::body::Ending;
use super::folder::Folder;
use super::message_id;
use super::parse::{self, Scanner, State, Step, Unfinished};
use super::segment::{self, Patience, Position, Segment};

const FIRST_WINDOW: u64 = 4 << 10;
const LAST_WINDOW: u64 = 1 << 20;
/// A line that makes any header before it undecodable.
pub(super) const BREAKER: &[u8] = b"@ the text above belongs to no message\n";

/// What a writer knows about the end of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Size up to which the file was seen whole.
    pub(super) end: u64,
    /// The newest time found in an id.
    pub(super) newest: Option<i128>,
}

/// The judged end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Everything from here on is a torn write.
    pub(super) keep: u64,
    /// The newest time found in an id.
    pub(super) newest: Option<i128>,
    /// Text at the end would swallow the next record.
    pub(super) swallows: bool,
}

/// Judges the end of a file of this size.
pub(super) fn examine(segment: &Segment, known: Option<Known>, size: u64) -> io::Result<Tail> {
    let mut newest = known.and_then(|known| known.newest);
    let mut note_newest = |id: &str| newest = newest.max(message_id::issued_at(id));
    let known = known.filter(|known| known.end > 0 && known.end <= size);
    let start = match known {
        Some(known) if size - known.end <= FIRST_WINDOW => Position::between(known.end),
        // After a long time away the last few records are enough: what others appended before them is whole.
        _ => match (start_near_end(segment, size)?, known) {
            (Some(start), _) => start,
            (None, Some(known)) => Position::between(known.end),
            (None, None) => {
                let mut visit = |_, record: super::record::Record<'_>| {
                    note_newest(&record.id);
                    ControlFlow::Continue(())
                };
                segment::scan(segment, Position::START, size, Patience::ClosedOnly, &mut visit)?.resume
            }
        },
    };
    let mut bytes = Vec::new();
    segment.read_at(&mut bytes, start.offset, usize::try_from(size - start.offset).unwrap_or(usize::MAX))?;
    if bytes == b"\n" && start.state == State::Between {
        // A separator without its record; left alone it would become part of the body before it.
        return Ok(Tail { keep: start.offset, newest, swallows: false });
    }
    let whole = without_dashes(&bytes);
    let mut keep = if whole < bytes.len() { before_opener(&bytes, whole) } else { whole };
    let mut swallows = false;
    // Each cut may uncover another unfinished end, such as an opener behind a torn one; nothing is cut twice.
    loop {
        let before = keep;
        let mut scanner = Scanner::new(&bytes[..keep], start.state);
        loop {
            match scanner.step() {
                Step::Record(found) => note_newest(&found.record.id),
                Step::Open { found, ending: Ending::Cut, .. } if is_machine_made(&found.record.id) => {
                    keep = before_opener(&bytes, found.start);
                    break;
                }
                Step::Open { found, .. } => {
                    note_newest(&found.record.id);
                    break;
                }
                Step::End(Unfinished::Header { opener }) => {
                    let text_start =
                        memchr::memchr(b'\n', &bytes[opener..keep]).map_or(keep, |len| opener + len + 1);
                    let text = &bytes[text_start..keep];
                    if text.is_empty() || parse::begins_like_a_record(text) {
                        keep = before_opener(&bytes, opener);
                    } else {
                        swallows = parse::would_swallow(text);
                    }
                    break;
                }
                Step::End(Unfinished::Nothing) => break,
            }
        }
        if keep == before {
            break;
        }
    }
    Ok(Tail { keep: start.offset + keep as u64, newest, swallows })
}

/// Cuts a torn tail and puts its bytes aside.
pub(super) fn cut(file: &File, side: Option<&Folder>, keep: u64, size: u64) -> io::Result<()> {
    if let Some(side) = side {
        let mut torn = Vec::new();
        segment::read_at(file, &mut torn, keep, usize::try_from(size - keep).unwrap_or(usize::MAX))?;
        torn.push(b'\n');
        // The cut must happen even if nothing can be put aside, for instance on a full disk.
        if let Ok(aside) = side.open_file("torn", OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE) {
            let _ = rustix::io::write(&aside, &torn);
        }
    }
    file.set_len(keep)
}

fn start_near_end(segment: &Segment, size: u64) -> io::Result<Option<Position>> {
    let mut window = FIRST_WINDOW;
    let mut bytes = Vec::new();
    while window < size && window <= LAST_WINDOW {
        segment.read_at(&mut bytes, size - window, usize::try_from(window).unwrap_or(usize::MAX))?;
        if let Some(start) = parse::synchronise(&bytes) {
            return Ok(Some(Position::between(size - window + start as u64)));
        }
        window *= 4;
    }
    Ok((size <= LAST_WINDOW).then_some(Position { offset: 0, state: State::START }))
}

/// Length without an unfinished last line that is the beginning of a delimiter.
fn without_dashes(bytes: &[u8]) -> usize {
    let dashes = bytes.iter().rev().take(4).take_while(|byte| **byte == b'-').count();
    let rest = bytes.len() - dashes;
    let at_line_start = rest == 0 || bytes[rest - 1] == b'\n';
    if (1..=3).contains(&dashes) && at_line_start { rest } else { bytes.len() }
}

/// An opener's offset, or that of the separator before it.
fn before_opener(bytes: &[u8], opener: usize) -> usize {
    if bytes[..opener].ends_with(b"\n\n") || bytes[..opener] == *b"\n" { opener - 1 } else { opener }
}

/// People number by hand; programs give ids of the fixed shape or noted lengths.
fn is_machine_made(id: &str) -> bool {
    message_id::issued_at(id).is_some()
}
