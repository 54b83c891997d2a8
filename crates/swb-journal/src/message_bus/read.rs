//! Reading: all messages, those after a cursor, the last few; across archives as if they were one file.
//!
//! A read opens the live file first and lists the archives afterwards, so a rotation in between can only add names it
//! then leaves out: the picture is that of one moment, without gap or duplicate. Readers take no lock while they read.
//! Cursors are exclusive and the first match wins. An unknown cursor is an error, a missing bus is empty.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use thiserror::Error;

use super::MessageBus;
use super::idempotency::IdempotencyKey;
use super::index::{Index, Key};
use super::parse::{self, State};
use super::place::{BusPath, Folder, OpenError};
use super::record::{Message, Record};
use super::segment::{self, Archive, Patience, Position, Segment};

impl MessageBus {
    /// Every message, oldest first, archives included.
    ///
    /// # Errors
    /// If a file cannot be opened or read.
    pub fn read_all(&self) -> Result<Vec<Message>, ReadError> {
        let mut messages = Vec::new();
        self.visit(None, |record| {
            messages.push(record.into_message());
            ControlFlow::Continue(())
        })?;
        Ok(messages)
    }

    /// Every message after this one; all of them for a blank id.
    ///
    /// # Errors
    /// [`ReadErrorKind::UnknownCursor`] if the bus exists but the id is not on it; else as for reading all.
    pub fn read_since(&self, id: &str) -> Result<Vec<Message>, ReadError> {
        let mut messages = Vec::with_capacity(32);
        self.visit(Some(id), |record| {
            messages.push(record.into_message());
            ControlFlow::Continue(())
        })?;
        Ok(messages)
    }

    /// The latest `limit` messages after this one, oldest of them first; no limit if it is 0.
    ///
    /// # Errors
    /// As for [`MessageBus::read_since`].
    pub fn read_since_limited(&self, id: &str, limit: usize) -> Result<Vec<Message>, ReadError> {
        let id = id.trim();
        if limit == 0 {
            return self.read_since(id);
        }
        if id.is_empty() {
            return self.read_last(limit);
        }
        let mut latest = VecDeque::new();
        self.visit(Some(id), |record| {
            if latest.len() == limit {
                latest.pop_front();
            }
            latest.push_back(record.into_message());
            ControlFlow::Continue(())
        })?;
        Ok(latest.into())
    }

    /// The last `count` messages, oldest of them first; all of them for 0.
    ///
    /// # Errors
    /// If a file cannot be opened or read.
    pub fn read_last(&self, count: usize) -> Result<Vec<Message>, ReadError> {
        if count == 0 {
            return self.read_all();
        }
        self.read_last_inner(count).map_err(|kind| self.read_error(kind))
    }

    /// Shows every message after a cursor (or from the start) to `visit`, without copying, until it breaks off.
    ///
    /// # Errors
    /// As for [`MessageBus::read_since`].
    pub fn visit(
        &self,
        since: Option<&str>,
        mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.visit_inner(since, &mut visit).map_err(|kind| self.read_error(kind))
    }

    /// One message by its id.
    ///
    /// # Errors
    /// If a file cannot be opened or read.
    pub fn find(&self, id: &str) -> Result<Option<Message>, ReadError> {
        let Some(view) = View::open(&self.path).map_err(|kind| self.read_error(kind))? else {
            return Ok(None);
        };
        view.message(Key::Id(id)).map_err(|kind| self.read_error(kind))
    }

    fn read_error(&self, kind: ReadErrorKind) -> ReadError {
        ReadError { path: self.path.to_path_buf(), kind }
    }

    fn visit_inner(
        &self,
        since: Option<&str>,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadErrorKind> {
        let Some(view) = View::open(&self.path)? else { return Ok(()) };
        let since = since.filter(|id| !id.trim().is_empty());
        let mut start = match since {
            None => None,
            Some(id) => match view.find(Key::Id(id))? {
                Some(found) => Some(found),
                None if view.is_missing()? => return Ok(()),
                None => return Err(ReadErrorKind::UnknownCursor { id: id.to_owned() }),
            },
        };
        let segments = view.segments_from(start.as_ref().map(|found| found.rank))?;
        for segment in segments {
            let (position, mut skip) = match start.take() {
                Some(found) => (found.position, true),
                None => (Position::START, false),
            };
            let mut stopped = false;
            let segment = segment?;
            segment::scan(&segment, position, Patience::Decide, &mut |_, record| {
                if std::mem::take(&mut skip) {
                    return ControlFlow::Continue(());
                }
                let flow = visit(record);
                stopped = flow.is_break();
                flow
            })?;
            if stopped {
                break;
            }
        }
        Ok(())
    }

    fn read_last_inner(&self, count: usize) -> Result<Vec<Message>, ReadErrorKind> {
        let Some(view) = View::open(&self.path)? else { return Ok(Vec::new()) };
        let mut messages = match &view.live {
            Some(live) => messages_of(last_of(&view, live, count)?),
            None => Vec::new(),
        };
        if messages.len() < count {
            for archive in view.archives()?.iter().rev() {
                let Some(segment) = Segment::open(&view.folder, &archive.name)? else { continue };
                let mut earlier = messages_of(last_of(&view, &segment, count - messages.len())?);
                earlier.append(&mut messages);
                messages = earlier;
                if messages.len() >= count {
                    break;
                }
            }
        }
        Ok(messages)
    }
}

/// The message with this idempotency key, if there is one. The caller holds the writer's lock.
pub(super) fn find_key(path: &BusPath, key: &IdempotencyKey) -> Result<Option<Message>, ReadError> {
    let fail = |kind| ReadError { path: path.to_path_buf(), kind };
    let Some(mut view) = View::open(path).map_err(fail)? else { return Ok(None) };
    view.patience = Patience::Holding;
    view.message(Key::Idempotency(key.as_str())).map_err(fail)
}

/// A place on a bus that later places can be compared with: how many archives lie before it, and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    archive: usize,
    offset: u64,
}

/// A message that was looked up.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) rank: Rank,
    /// Where its record starts.
    pub(super) position: Position,
}

/// The files of a bus at one moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    path: &'a BusPath,
    folder: Folder,
    live: Option<Segment>,
    patience: Patience,
}

impl<'a> View<'a> {
    /// `None` if even the folder is missing.
    pub(super) fn open(path: &'a BusPath) -> Result<Option<Self>, ReadErrorKind> {
        let folder = match path.open_folder() {
            Ok(folder) => folder,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let live = Segment::open(&folder, path.name())?;
        Ok(Some(Self { path, folder, live, patience: Patience::Decide }))
    }

    /// The archives before the live file.
    fn archives(&self) -> io::Result<Vec<Archive>> {
        let mut names = segment::archives(&self.folder, self.path.name())?;
        if let Some(live) = &self.live
            && let Some(at) = names.iter().rposition(|archive| archive.inode == live.identity.inode)
        {
            // Rotated since we opened it: it and everything newer is not before it.
            names.truncate(at);
        }
        Ok(names)
    }

    pub(super) fn is_missing(&self) -> io::Result<bool> {
        Ok(self.live.is_none() && self.archives()?.is_empty())
    }

    /// Looks a message up: in the live file first, then from the newest archive back.
    pub(super) fn find(&self, key: Key<'_>) -> Result<Option<Located>, ReadErrorKind> {
        if let Some(live) = &self.live
            && let Some(position) = self.find_in(live, key)?
        {
            return Ok(Some(Located {
                rank: Rank { archive: usize::MAX, offset: position.offset },
                position,
            }));
        }
        for (archive, named) in self.archives()?.iter().enumerate().rev() {
            let Some(segment) = Segment::open(&self.folder, &named.name)? else { continue };
            if let Some(position) = self.find_in(&segment, key)? {
                return Ok(Some(Located { rank: Rank { archive, offset: position.offset }, position }));
            }
        }
        Ok(None)
    }

    /// Looks a message up and reads it.
    fn message(&self, key: Key<'_>) -> Result<Option<Message>, ReadErrorKind> {
        let Some(found) = self.find(key)? else { return Ok(None) };
        let Some(segment) = self.segment_of(found.rank)? else { return Ok(None) };
        let mut message = None;
        segment::scan(&segment, found.position, self.patience, &mut |_, record| {
            message = Some(record.into_message());
            ControlFlow::Break(())
        })?;
        Ok(message)
    }

    /// Where the last `count` messages start, and whether there are so many.
    pub(super) fn start_of_last(&self, count: usize) -> Result<Option<(Segment, Position)>, ReadErrorKind> {
        let mut wanted = count;
        if let Some(live) = &self.live {
            let last = last_of(self, live, wanted)?;
            if last.len() == wanted {
                let reopened = live.try_clone()?;
                return Ok(last.first().map(|(position, _)| (reopened, *position)));
            }
            wanted -= last.len();
        }
        for archive in self.archives()?.iter().rev() {
            let Some(segment) = Segment::open(&self.folder, &archive.name)? else { continue };
            let last = last_of(self, &segment, wanted)?;
            if last.len() == wanted {
                return Ok(last.first().map(|(position, _)| (segment, *position)));
            }
            wanted -= last.len();
        }
        Ok(None)
    }

    /// The file a looked-up message is in.
    pub(super) fn segment_of(&self, rank: Rank) -> Result<Option<Segment>, ReadErrorKind> {
        if rank.archive == usize::MAX {
            return self.live_again();
        }
        match self.archives()?.get(rank.archive) {
            Some(archive) => Ok(Segment::open(&self.folder, &archive.name)?),
            None => Ok(None),
        }
    }

    /// The live file under a second handle.
    pub(super) fn live_again(&self) -> Result<Option<Segment>, ReadErrorKind> {
        Ok(self.live.as_ref().map(Segment::try_clone).transpose()?)
    }

    /// The oldest file.
    pub(super) fn first(self) -> Result<Option<Segment>, ReadErrorKind> {
        for archive in self.archives()? {
            if let Some(segment) = Segment::open(&self.folder, &archive.name)? {
                return Ok(Some(segment));
            }
        }
        Ok(self.live)
    }

    /// The file after this one in the order of rotation.
    pub(super) fn after(self, current: super::place::FileIdentity) -> Result<Successor, ReadErrorKind> {
        let Some(live) = self.live else { return Ok(Successor::None) };
        if live.identity == current {
            return Ok(Successor::None);
        }
        // Listed after the live file was opened: if nothing archived comes after the current one, the live one does.
        let archives = segment::archives(&self.folder, self.path.name())?;
        let Some(at) = archives.iter().rposition(|archive| archive.inode == current.inode) else {
            return Ok(Successor::Replaced);
        };
        for archive in &archives[at + 1..] {
            if let Some(segment) = Segment::open(&self.folder, &archive.name)? {
                return Ok(Successor::Next(segment));
            }
        }
        Ok(Successor::Next(live))
    }

    /// The files from a rank on (all for `None`), oldest first, the live one last.
    fn segments_from(
        &self,
        rank: Option<Rank>,
    ) -> Result<impl Iterator<Item = Result<SegmentRef<'_>, ReadErrorKind>>, ReadErrorKind> {
        let names = match rank {
            Some(Rank { archive: usize::MAX, .. }) => Vec::new(),
            Some(Rank { archive, .. }) => self.archives()?.split_off(archive),
            None => self.archives()?,
        };
        let archived =
            names.into_iter().filter_map(|archive| match Segment::open(&self.folder, &archive.name) {
                Ok(segment) => segment.map(|segment| Ok(SegmentRef::Archive(segment))),
                Err(error) => Some(Err(error.into())),
            });
        Ok(archived.chain(self.live.iter().map(|live| Ok(SegmentRef::Live(live)))))
    }

    fn find_in(&self, segment: &Segment, key: Key<'_>) -> Result<Option<Position>, ReadErrorKind> {
        let Some(index) = Index::open(&self.folder, &self.path.side_name(), segment)? else {
            return Ok(search(segment, Position::START, self.patience, key)?);
        };
        let mut offsets = index.candidates(key)?;
        offsets.sort_unstable();
        for offset in offsets {
            if is_record_at(segment, offset, key)? {
                return Ok(Some(Position::between(offset)));
            }
        }
        if let Some(found) = search(segment, Position::between(index.covered()), self.patience, key)? {
            return Ok(Some(found));
        }
        match key {
            Key::Idempotency(_) => Ok(None),
            // Nobody is told that a cursor is unknown on the word of an index.
            Key::Id(_) => Ok(search(segment, Position::START, self.patience, key)?),
        }
    }
}

/// What comes after a file.
#[derive(Debug)]
pub(super) enum Successor {
    /// Nothing: it is the live one, or the bus is gone for now.
    None,
    /// This one.
    Next(Segment),
    /// It is neither live nor archived: someone put another file in its place.
    Replaced,
}

enum SegmentRef<'a> {
    Archive(Segment),
    Live(&'a Segment),
}

impl std::ops::Deref for SegmentRef<'_> {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        match self {
            Self::Archive(segment) => segment,
            Self::Live(segment) => segment,
        }
    }
}

/// Scans for a record.
fn search(
    segment: &Segment,
    from: Position,
    patience: Patience,
    key: Key<'_>,
) -> io::Result<Option<Position>> {
    let mut found = None;
    segment::scan(segment, from, patience, &mut |offset, record| {
        if !key.matches(&record) {
            return ControlFlow::Continue(());
        }
        found = Some(start_of(offset, &record));
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

/// Whether the record with this key has its opener at this offset.
fn is_record_at(segment: &Segment, offset: u64, key: Key<'_>) -> io::Result<bool> {
    let mut bytes = Vec::new();
    let mut window = 2 << 10;
    loop {
        segment.read_at(&mut bytes, offset, window)?;
        if !bytes.starts_with(b"---") {
            return Ok(false);
        }
        let mut scanner = parse::Scanner::new(&bytes, State::Between);
        match scanner.step() {
            parse::Step::Record(found) => return Ok(found.start == 0 && key.matches(&found.record)),
            parse::Step::Open { found, .. } if bytes.len() < window => {
                return Ok(found.start == 0 && key.matches(&found.record));
            }
            _ if bytes.len() < window => return Ok(false),
            _ => window *= 4,
        }
    }
}

const FIRST_WINDOW: u64 = 8 << 10;
const BYTES_PER_RECORD: u64 = 640;
const UNMARKED_WINDOW: u64 = 1 << 20;

fn messages_of(found: Vec<(Position, Message)>) -> Vec<Message> {
    found.into_iter().map(|(_, message)| message).collect()
}

/// The last `count` messages of one file and where their records start.
fn last_of(
    view: &View<'_>,
    segment: &Segment,
    count: usize,
) -> Result<Vec<(Position, Message)>, ReadErrorKind> {
    let len = segment.len()?;
    let mut window = (count as u64).saturating_mul(BYTES_PER_RECORD).max(FIRST_WINDOW);
    let mut bytes = Vec::new();
    let mut eager = true;
    loop {
        let start = len.saturating_sub(window);
        let position = if start == 0 {
            Some(Position::START)
        } else {
            segment.read_at(&mut bytes, start, usize::try_from(window).unwrap_or(usize::MAX))?;
            // Most often the last few delimiters are enough, and the rest of the window need not be parsed.
            let near = if eager { parse::nth_last_line(&bytes, count.saturating_mul(2) + 4) } else { None };
            let synchronised = near
                .and_then(|near| parse::synchronise(&bytes[near..]).map(|at| near + at))
                .or_else(|| parse::synchronise(&bytes));
            match synchronised {
                Some(at) => Some(Position::between(start + at as u64)),
                None if window >= UNMARKED_WINDOW => Some(marked_start(view, segment, start)?),
                None => None,
            }
        };
        if let Some(position) = position {
            let mut messages = VecDeque::new();
            segment::scan(segment, position, Patience::Decide, &mut |offset, record| {
                if messages.len() == count {
                    messages.pop_front();
                }
                messages.push_back((start_of(offset, &record), record.into_message()));
                ControlFlow::Continue(())
            })?;
            if messages.len() == count || position.offset == 0 {
                return Ok(messages.into());
            }
        }
        // The same window once more, in full, before a larger one.
        if std::mem::take(&mut eager) && start > 0 {
            continue;
        }
        window = window.saturating_mul(4);
    }
}

/// A certain record start at or before an offset, from the index; else the start of the file.
fn marked_start(view: &View<'_>, segment: &Segment, offset: u64) -> Result<Position, ReadErrorKind> {
    let index = Index::open(&view.folder, &view.path.side_name(), segment)?;
    Ok(index.and_then(|index| index.mark_before(offset)).map_or(Position::START, Position::between))
}

/// Why a bus was not read.
#[derive(Debug, Error)]
#[error("cannot read {}", path.display())]
pub struct ReadError {
    /// The bus file.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub kind: ReadErrorKind,
}

/// What kept a bus from being read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The bus exists, but no message on it has this id.
    #[error("no message has the id {id:?}")]
    UnknownCursor {
        /// The id.
        id: String,
    },
    /// A file or folder was refused.
    #[error("the bus file cannot be used")]
    Open(#[source] OpenError),
    /// Reading failed.
    #[error("reading failed")]
    Io(#[source] io::Error),
}

impl From<OpenError> for ReadErrorKind {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<io::Error> for ReadErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl ReadError {
    /// Whether the cursor was not on the bus.
    #[must_use]
    pub fn is_unknown_cursor(&self) -> bool {
        matches!(self.kind, ReadErrorKind::UnknownCursor { .. })
    }
}
