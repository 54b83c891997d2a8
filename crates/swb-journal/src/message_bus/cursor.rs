//! Named readers: what each has read and what it has acknowledged, kept beside the bus.
//!
//! One small JSON file per reader in `.<bus>.swb/readers/`, replaced as a whole by a rename, under a lock of its own.
//! Marks only move forward in the order of the bus: a late or repeated mark is harmless. Acknowledging implies having
//! read. The bus file itself knows nothing of this, so the format stays what it is.

use std::io;
use std::path::PathBuf;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::MessageBus;
use super::folder::{Folder, OpenError};
use super::index::Key;
use super::lock;
use super::read::ReadErrorKind;
use super::record::Message;
use super::timestamp::Timestamp;
use super::view::{Rank, View};

const MAX_NAME: usize = 80;
const READERS: &str = "readers";

/// What a named reader has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderCursor {
    /// The newest message it has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Mark>,
    /// The newest message it has acknowledged; so are all before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked: Option<Mark>,
}

/// A message, and when the reader got to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The message.
    pub msg_id: String,
    /// When, in UTC, as RFC 3339.
    pub at: String,
}

impl MessageBus {
    /// The cursor of a reader; empty if it has never marked anything.
    ///
    /// # Errors
    /// If the name is not usable or the files cannot be read.
    pub fn reader(&self, name: &str) -> Result<ReaderCursor, CursorError> {
        let fail = |kind| self.cursor_error(name, kind);
        check_name(name).map_err(fail)?;
        match self.readers_folder(false).map_err(fail)? {
            Some(folder) => load(&folder, name).map_err(fail),
            None => Ok(ReaderCursor::default()),
        }
    }

    /// All readers that have marked something, by name.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn readers(&self) -> Result<Vec<(String, ReaderCursor)>, CursorError> {
        let fail = |kind| self.cursor_error("", kind);
        let Some(folder) = self.readers_folder(false).map_err(fail)? else { return Ok(Vec::new()) };
        let mut readers = Vec::new();
        let mut dir = Dir::read_from(&folder).map_err(|errno| fail(CursorErrorKind::Io(errno.into())))?;
        while let Some(entry) = dir.read() {
            let entry = entry.map_err(|errno| fail(CursorErrorKind::Io(errno.into())))?;
            let name = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(".json"));
            if let Some(name) = name.filter(|name| check_name(name).is_ok()) {
                readers.push((name.to_owned(), load(&folder, name).map_err(fail)?));
            }
        }
        readers.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(readers)
    }

    /// Messages a reader has not read yet.
    ///
    /// # Errors
    /// If the name is not usable, or the bus cannot be read.
    pub fn unread(&self, name: &str) -> Result<Vec<Message>, CursorError> {
        let cursor = self.reader(name)?;
        let since = cursor.read.map(|mark| mark.msg_id).unwrap_or_default();
        self.read_since(&since).map_err(|error| self.cursor_error(name, CursorErrorKind::Bus(error.kind)))
    }

    /// Notes that a reader has read up to a message.
    ///
    /// # Errors
    /// If the name is not usable, the message is not on the bus, or the mark cannot be stored.
    pub fn mark_read(&self, name: &str, id: &str) -> Result<ReaderCursor, CursorError> {
        self.mark(name, id, false).map_err(|kind| self.cursor_error(name, kind))
    }

    /// Notes that a reader has dealt with everything up to a message.
    ///
    /// # Errors
    /// As for [`MessageBus::mark_read`].
    pub fn acknowledge(&self, name: &str, id: &str) -> Result<ReaderCursor, CursorError> {
        self.mark(name, id, true).map_err(|kind| self.cursor_error(name, kind))
    }

    fn mark(&self, name: &str, id: &str, acknowledge: bool) -> Result<ReaderCursor, CursorErrorKind> {
        check_name(name)?;
        let unknown = || CursorErrorKind::Bus(ReadErrorKind::UnknownCursor { id: id.to_owned() });
        let view = self.view()?.ok_or_else(unknown)?;
        let rank = view.find(Key::Id(id))?.ok_or_else(unknown)?.rank;
        let folder = self.readers_folder(true)?.ok_or_else(unknown)?;
        let guard =
            folder.open_file(".lock", OFlags::RDWR | OFlags::CREATE).map_err(CursorErrorKind::Open)?;
        if !lock::exclusive(&guard, self.options.lock_timeout)? {
            return Err(CursorErrorKind::Busy);
        }
        let mut cursor = load(&folder, name)?;
        let mark = Mark { msg_id: id.to_owned(), at: Timestamp::now().to_string() };
        let mut moved = advance(&view, &mut cursor.read, rank, &mark)?;
        if acknowledge {
            moved |= advance(&view, &mut cursor.acked, rank, &mark)?;
        }
        if moved {
            store(&folder, name, &cursor)?;
        }
        Ok(cursor)
    }

    fn readers_folder(&self, create: bool) -> Result<Option<Folder>, CursorErrorKind> {
        let opened = self.path.open_folder().and_then(|folder| folder.side(&self.path.side_name(), create));
        match opened.and_then(|side| side.side(READERS, create)) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.is_missing() && !create => Ok(None),
            Err(error) => Err(CursorErrorKind::Open(error)),
        }
    }

    fn cursor_error(&self, reader: &str, kind: CursorErrorKind) -> CursorError {
        CursorError { path: self.path.to_path_buf(), reader: reader.to_owned(), kind }
    }
}

/// Moves a mark forward, never back; a mark whose message is gone gives way.
fn advance(view: &View<'_>, slot: &mut Option<Mark>, rank: Rank, mark: &Mark) -> Result<bool, ReadErrorKind> {
    if let Some(old) = slot
        && let Some(old) = view.find(Key::Id(&old.msg_id))?
        && old.rank >= rank
    {
        return Ok(false);
    }
    *slot = Some(mark.clone());
    Ok(true)
}

fn check_name(name: &str) -> Result<(), CursorErrorKind> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let usable =
        !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(safe);
    if usable { Ok(()) } else { Err(CursorErrorKind::Name { max: MAX_NAME }) }
}

fn load(folder: &Folder, name: &str) -> Result<ReaderCursor, CursorErrorKind> {
    let file = match folder.open_file(&format!("{name}.json"), OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok(ReaderCursor::default()),
        Err(error) => return Err(CursorErrorKind::Open(error)),
    };
    serde_json::from_reader(io::BufReader::new(file)).map_err(|source| CursorErrorKind::Damaged { source })
}

fn store(folder: &Folder, name: &str, cursor: &ReaderCursor) -> Result<(), CursorErrorKind> {
    let mut bytes = serde_json::to_vec(cursor).map_err(|source| CursorErrorKind::Damaged { source })?;
    bytes.push(b'\n');
    let fresh = format!(".{name}.fresh");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(folder, &fresh, flags, Mode::from_raw_mode(0o644))?;
    io::Write::write_all(&mut std::fs::File::from(fd), &bytes)?;
    rustix::fs::renameat(folder, &fresh, folder, format!("{name}.json"))?;
    Ok(())
}

/// Why a reader's cursor was not read or moved.
#[derive(Debug, Error)]
#[error("cannot use the cursor of {reader:?} on {}", path.display())]
pub struct CursorError {
    /// The bus file.
    pub path: PathBuf,
    /// The reader; empty when all were wanted.
    pub reader: String,
    /// What went wrong.
    #[source]
    pub kind: CursorErrorKind,
}

/// What was wrong with a reader's cursor.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CursorErrorKind {
    /// Not a name a reader may have.
    #[error("a reader's name is 1 to {max} of A-Z a-z 0-9 . _ - and starts with no dot")]
    Name {
        /// Longest name.
        max: usize,
    },
    /// The bus could not be read, or the message is not on it.
    #[error("the bus cannot be used")]
    Bus(#[source] ReadErrorKind),
    /// A file beside the bus was refused.
    #[error("the reader's file cannot be used")]
    Open(#[source] OpenError),
    /// Another process held the readers' lock.
    #[error("another process is moving cursors")]
    Busy,
    /// The reader's file is not what we wrote.
    #[error("the reader's file is damaged")]
    Damaged {
        /// From the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// Reading or writing failed.
    #[error("reading or writing failed")]
    Io(#[source] io::Error),
}

impl From<ReadErrorKind> for CursorErrorKind {
    fn from(kind: ReadErrorKind) -> Self {
        Self::Bus(kind)
    }
}

impl From<io::Error> for CursorErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for CursorErrorKind {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}
