//! Finding a place in one file of a bus: a message by its id or key, or where the last few begin.
//!
//! The index gives candidates and starting points; the bytes of the file decide. Bytes that were read to decide are
//! handed on with the place, so that whoever scans from there does not read them again.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use super::index::Key;
use super::parse::{self, Scanner, State, Step};
use super::read::ReadErrorKind;
use super::record::Record;
use super::segment::{self, Patience, Position, Segment, Start};
use super::view::View;

/// Read at first where a record should be: the record, and with luck everything behind it.
const AHEAD: usize = 8 << 10;
const FIRST_WINDOW: u64 = 8 << 10;
const BYTES_PER_RECORD: u64 = 640;
const UNMARKED_WINDOW: u64 = 1 << 20;

/// Looks a message up in one file.
pub(super) fn find(view: &View<'_>, segment: &Segment, key: Key<'_>) -> Result<Option<Start>, ReadErrorKind> {
    let search = |from| search(segment, from, view.patience, key);
    let Some(index) = view.index(segment)? else {
        return Ok(search(Position::START)?);
    };
    let mut offsets = index.candidates(key)?;
    offsets.sort_unstable();
    for offset in offsets {
        if let Some(ahead) = record_at(segment, offset, key)? {
            return Ok(Some(Start { position: Position::between(offset), ahead }));
        }
    }
    if let Some(found) = search(Position::between(index.covered()))? {
        return Ok(Some(found));
    }
    match key {
        Key::Idempotency(_) => Ok(None),
        // Nobody is told that a cursor is unknown on the word of an index.
        Key::Id(_) => Ok(search(Position::START)?),
    }
}

/// Scans for a record.
fn search(segment: &Segment, from: Position, patience: Patience, key: Key<'_>) -> io::Result<Option<Start>> {
    let mut found = None;
    segment::scan(segment, from, segment.opened_len, patience, &mut |offset, record| {
        if !key.matches(&record) {
            return ControlFlow::Continue(());
        }
        found = Some(start_of(offset, &record).into());
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// From where a scan finds this record first.
fn start_of(offset: u64, record: &Record<'_>) -> Position {
    // A record of the present form may carry any id, but always an opener, and legacy lines have no project.
    let line = record.id.strip_prefix("LEGACY-LINE-").and_then(|line| line.parse().ok());
    match line {
        Some(line) if record.project_id.is_empty() => Position { offset, state: State::Seek { line } },
        _ => Position::between(offset),
    }
}

/// The bytes from this offset on, if the record with this key has its opener there.
fn record_at(segment: &Segment, offset: u64, key: Key<'_>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut window = AHEAD;
    loop {
        segment.read_at(&mut bytes, offset, window)?;
        if !bytes.starts_with(b"---") {
            return Ok(None);
        }
        let whole = bytes.len() < window;
        let is_it = match Scanner::new(&bytes, State::Between).step() {
            Step::Record(found) => Some(found.start == 0 && key.matches(&found.record)),
            Step::Open { found, .. } if whole => Some(found.start == 0 && key.matches(&found.record)),
            _ if whole => Some(false),
            _ => None,
        };
        match is_it {
            Some(true) => return Ok(Some(bytes)),
            Some(false) => return Ok(None),
            None => window *= 4,
        }
    }
}

/// What `keep` makes of the last `count` messages of one file and of the places where their records start.
pub(super) fn last<T>(
    view: &View<'_>,
    segment: &Segment,
    count: usize,
    mut keep: impl FnMut(Position, Record<'_>) -> T,
) -> Result<Vec<T>, ReadErrorKind> {
    let len = segment.opened_len;
    let mut window = (count as u64).saturating_mul(BYTES_PER_RECORD).max(FIRST_WINDOW);
    let mut eager = true;
    loop {
        let start = len.saturating_sub(window);
        if let Some(from) = start_at_or_after(view, segment, start, eager.then_some(count))? {
            let first = from.position.offset;
            let mut kept = VecDeque::with_capacity(count.min(AHEAD));
            segment::scan(segment, from, len, Patience::Decide, &mut |offset, record| {
                if kept.len() == count {
                    kept.pop_front();
                }
                kept.push_back(keep(start_of(offset, &record), record));
                ControlFlow::Continue(())
            })?;
            if kept.len() == count || first == 0 {
                return Ok(kept.into());
            }
        }
        // The same window once more, in full, before a larger one.
        if std::mem::take(&mut eager) && start > 0 {
            continue;
        }
        window = window.saturating_mul(4);
    }
}

/// A place in the last part of a file, from `offset` on, where a record starts for certain; close before the last
/// `near` records if so asked. `None` if a larger part is needed to tell.
fn start_at_or_after(
    view: &View<'_>,
    segment: &Segment,
    offset: u64,
    near: Option<usize>,
) -> Result<Option<Start>, ReadErrorKind> {
    if offset == 0 {
        return Ok(Some(Position::START.into()));
    }
    let window = segment.opened_len - offset;
    let mut bytes = Vec::new();
    segment.read_at(&mut bytes, offset, usize::try_from(window).unwrap_or(usize::MAX))?;
    // Most often the last few delimiters are enough, and the rest of the window need not be parsed.
    let synchronised = near
        .and_then(|count| parse::nth_last_line(&bytes, count.saturating_mul(2) + 2))
        .and_then(|near| parse::synchronise(&bytes[near..]).map(|at| near + at))
        .or_else(|| parse::synchronise(&bytes));
    if let Some(at) = synchronised {
        bytes.drain(..at);
        return Ok(Some(Start { position: Position::between(offset + at as u64), ahead: bytes }));
    }
    if window < UNMARKED_WINDOW {
        return Ok(None);
    }
    // The index knows where records start; else only the start of the file is certain.
    let mark = view.index(segment)?.and_then(|index| index.mark_before(offset));
    Ok(Some(mark.map_or(Position::START, Position::between).into()))
}
