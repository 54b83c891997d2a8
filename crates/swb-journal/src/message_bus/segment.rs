//! One file of a bus: the live one or an archive, and the order of archives.
//!
//! A rotated bus is `<name>.<UTC YYYYMMDD-HHMMSS>.archived`, with `-<n>` behind the stamp for further rotations within
//! one second. Stamp and number only grow, so their order is the order of rotation.
//!
//! Scanning streams through a file in chunks and yields records with their offsets. At the end it has to decide about a
//! last record that nothing follows: a noted length settles it; otherwise the writer's lock does. Free and the size
//! unchanged: the record is whole. Held: a writer may be in the middle of it.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::fs::{Dir, OFlags};

use super::body::Ending;
use super::folder::{Folder, OpenError};
use super::identity::FileIdentity;
use super::lock;
use super::parse::{Scanner, State, Step};
use super::record::Record;

const CHUNK: usize = 1 << 20;
/// A lock held this long over an unchanged file is not held by a writer in the middle of a write call.
const WRITE_CALL: Duration = Duration::from_millis(50);

/// An open file of a bus, for reading. A clone is the same opening.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) file: Arc<File>,
    pub(super) name: Arc<str>,
    pub(super) identity: FileIdentity,
    /// Its size when it was opened, or last found to be the same file.
    pub(super) opened_len: u64,
}

impl Segment {
    /// Opens a file of the bus; `None` if it is not there.
    pub(super) fn open(folder: &Folder, name: &str) -> Result<Option<Self>, OpenError> {
        let (file, identity, opened_len) = match folder.open_known(name, OFlags::RDONLY) {
            Ok(opened) => opened,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self { file: Arc::new(file), name: name.into(), identity, opened_len }))
    }

    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(u64::try_from(rustix::fs::fstat(&self.file)?.st_size).unwrap_or(0))
    }

    /// Replaces `buffer` by up to `len` bytes at `offset`; fewer only at the end of the file.
    pub(super) fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, len: usize) -> io::Result<()> {
        read_at(&self.file, buffer, offset, len)
    }
}

/// Replaces `buffer` by up to `len` bytes of a file at `offset`; fewer only at its end.
pub(super) fn read_at(file: &File, buffer: &mut Vec<u8>, offset: u64, len: usize) -> io::Result<()> {
    buffer.clear();
    buffer.reserve_exact(len);
    while buffer.len() < len {
        let at = offset + buffer.len() as u64;
        let before = buffer.len();
        match rustix::io::pread(file, spare_capacity(buffer), at) {
            Ok(0) => break,
            Ok(_) => debug_assert!(buffer.len() > before),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // The buffer may be larger than was asked for.
    buffer.truncate(len);
    Ok(())
}

/// A place in a segment and what the bytes there mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) offset: u64,
    pub(super) state: State,
}

impl Position {
    pub(super) const START: Self = Self { offset: 0, state: State::START };

    pub(super) fn between(offset: u64) -> Self {
        Self { offset, state: State::Between }
    }
}

/// Where a scan starts.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) position: Position,
    /// Bytes from there on that the caller has read already.
    pub(super) ahead: Vec<u8>,
}

impl From<Position> for Start {
    fn from(position: Position) -> Self {
        Self { position, ahead: Vec::new() }
    }
}

/// What to do about a last record that may still be growing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Leave it out: only records that another one follows are wanted.
    ClosedOnly,
    /// Take it as it is: the caller holds the writer's lock.
    Holding,
    /// Wait until it is decided.
    Decide,
    /// Come back later, unless the file has been like this since the given moment.
    Since(Instant),
}

/// How a scan ended.
#[derive(Debug)]
pub(super) struct ScanEnd {
    /// From where to go on.
    pub(super) resume: Position,
    /// A last record was left out because a writer seemed to be at it.
    pub(super) undecided: bool,
}

/// Visits the records of a segment from a place to `end`, its size a moment ago; further if the last of them was still
/// being written.
pub(super) fn scan(
    segment: &Segment,
    start: impl Into<Start>,
    mut end: u64,
    patience: Patience,
    visit: &mut dyn FnMut(u64, Record<'_>) -> ControlFlow<()>,
) -> io::Result<ScanEnd> {
    let Start { mut position, ahead: mut buffer } = start.into();
    let mut read_ahead = !buffer.is_empty();
    let mut chunk = CHUNK;
    // The record that was last when the scan began; past it the scan owes nobody anything.
    let mut owed = None;
    loop {
        let left = usize::try_from(end.saturating_sub(position.offset)).unwrap_or(usize::MAX);
        if std::mem::take(&mut read_ahead) {
            buffer.truncate(left);
        } else {
            segment.read_at(&mut buffer, position.offset, left.min(chunk))?;
            if buffer.len() < left.min(chunk) {
                // Truncated under us: what is there now is all there is.
                end = position.offset + buffer.len() as u64;
            }
        }
        let mut scanner = Scanner::new(&buffer, position.state);
        let open = loop {
            match scanner.step() {
                Step::Record(found) => {
                    if visit(position.offset + found.start as u64, found.record).is_break() {
                        return Ok(ScanEnd { resume: resumed(position, &scanner), undecided: false });
                    }
                }
                Step::Open { found, ending, end } => break Some((found, ending, end)),
                Step::End(_) => break None,
            }
        };
        let resume = resumed(position, &scanner);
        if position.offset + (buffer.len() as u64) < end {
            chunk = if resume.offset == position.offset { chunk * 2 } else { CHUNK };
            position = resume;
            continue;
        }
        let Some((found, ending, own_end)) = open else { return Ok(ScanEnd { resume, undecided: false }) };
        let start = position.offset + found.start as u64;
        if ending != Ending::Whole && owed.is_some_and(|owed| start > owed) {
            return Ok(ScanEnd { resume, undecided: true });
        }
        match decide(segment, end, ending, patience)? {
            Verdict::Accept => {
                scanner.accept_open(own_end);
                let resume = resumed(position, &scanner);
                // Stopping at the last record is the same as finishing.
                let _ = visit(start, found.record);
                return Ok(ScanEnd { resume, undecided: false });
            }
            Verdict::LeaveOut => return Ok(ScanEnd { resume, undecided: false }),
            Verdict::Later => return Ok(ScanEnd { resume, undecided: true }),
            Verdict::Grown(len) => {
                owed.get_or_insert(start);
                end = len;
                position = resume;
            }
        }
    }
}

fn resumed(position: Position, scanner: &Scanner<'_>) -> Position {
    let (at, state) = scanner.resume_at();
    Position { offset: position.offset + at as u64, state }
}

enum Verdict {
    Accept,
    LeaveOut,
    Later,
    Grown(u64),
}

fn decide(segment: &Segment, end: u64, ending: Ending, patience: Patience) -> io::Result<Verdict> {
    if ending == Ending::Whole && !matches!(patience, Patience::ClosedOnly) {
        return Ok(Verdict::Accept);
    }
    let as_it_is = if ending == Ending::Cut { Verdict::LeaveOut } else { Verdict::Accept };
    let since = match patience {
        Patience::Holding => return Ok(as_it_is),
        Patience::ClosedOnly => return Ok(Verdict::Later),
        Patience::Decide => Instant::now(),
        Patience::Since(_) if ending == Ending::Unterminated => return Ok(Verdict::LeaveOut),
        Patience::Since(since) => since,
    };
    loop {
        let free = lock::is_free(&segment.file)?;
        let len = segment.len()?;
        if len != end {
            return Ok(Verdict::Grown(len));
        }
        if free || since.elapsed() >= WRITE_CALL {
            return Ok(as_it_is);
        }
        if matches!(patience, Patience::Since(_)) {
            return Ok(Verdict::Later);
        }
        std::thread::park_timeout(Duration::from_micros(100));
    }
}

/// A rotated file of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) name: String,
    pub(super) inode: u64,
}

/// The archives of a bus, oldest first.
pub(super) fn archives(folder: &Folder, name: &str) -> io::Result<Vec<Archive>> {
    let prefix = format!("{name}.");
    let mut found = Vec::new();
    let mut dir = Dir::read_from(folder)?;
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let Ok(file_name) = entry.file_name().to_str() else { continue };
        if let Some(stamp) = file_name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".archived")) {
            found.push((
                ArchiveStamp::parse(stamp),
                Archive { name: file_name.to_owned(), inode: entry.ino() },
            ));
        }
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(found.into_iter().map(|(_, archive)| archive).collect())
}

/// What orders archives: the second of rotation, and a number within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ArchiveStamp {
    second: String,
    number: u32,
}

impl ArchiveStamp {
    /// Reads what stands between the bus's name and `.archived`.
    fn parse(text: &str) -> Self {
        // Stamps have fifteen characters; anything behind them is the number.
        if let Some((second, rest)) = text.split_at_checked(15)
            && let Some(number) = rest.strip_prefix('-').and_then(|number| number.parse().ok())
        {
            return Self { second: second.to_owned(), number };
        }
        Self { second: text.to_owned(), number: 0 }
    }

    /// The stamp of an archive by its file name.
    pub(super) fn of(archive: &str, bus: &str) -> Option<Self> {
        let stamp = archive.strip_prefix(bus)?.strip_prefix('.')?.strip_suffix(".archived")?;
        Some(Self::parse(stamp))
    }

    /// A stamp for now that sorts behind `newest`, whatever the clock says.
    pub(super) fn after(newest: Option<&Self>, now: &str) -> Self {
        let fresh = Self { second: now.to_owned(), number: 0 };
        match newest {
            Some(newest) if *newest >= fresh => {
                Self { second: newest.second.clone(), number: newest.number + 1 }
            }
            _ => fresh,
        }
    }

    /// The file name of this archive.
    pub(super) fn file_name(&self, bus: &str) -> String {
        match self.number {
            0 => format!("{bus}.{}.archived", self.second),
            number => format!("{bus}.{}-{number}.archived", self.second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_bus::place::BusPath;

    #[test]
    fn archives_sort_in_the_order_of_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let mut stamp = ArchiveStamp::after(None, "20261115-102436");
        let mut expected = vec![stamp.file_name("B.md")];
        // The clock stands still, then steps back, then moves on.
        for now in ["20261115-102436"; 11].into_iter().chain(["20251115-102436", "20261115-102437"]) {
            stamp = ArchiveStamp::after(Some(&stamp), now);
            expected.push(stamp.file_name("B.md"));
        }
        for name in expected.iter().rev() {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::write(dir.path().join("OTHER-B.md.20261115-102436.archived"), "").unwrap();
        let folder = BusPath::new(dir.path().join("B.md")).unwrap().open_folder().unwrap();
        let found = archives(&folder, "B.md").unwrap();
        assert_eq!(found.into_iter().map(|archive| archive.name).collect::<Vec<_>>(), expected);
        assert_eq!(expected[11], "B.md.20261115-102436-11.archived");
        assert_eq!(ArchiveStamp::of(&expected[11], "B.md"), Some(ArchiveStamp::parse("20261115-102436-11")));
    }
}
