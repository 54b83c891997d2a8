//! Reading: all messages, those after a cursor, the last few; across archives as if they were one file.
//!
//! Readers take no lock while they read. Cursors are exclusive and the first match wins. An unknown cursor is an error,
//! a missing bus is empty. Which files there are is [`super::view`]'s business, finding a place in them
//! [`super::lookup`]'s.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use thiserror::Error;

use super::MessageBus;
use super::folder::OpenError;
use super::idempotency::IdempotencyKey;
use super::index::Key;
use super::lookup;
use super::record::{Message, Record};
use super::segment::{self, Patience, Position, Start};
use super::view::View;

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
        self.find_inner(Key::Id(id), Patience::Decide).map_err(|kind| self.read_error(kind))
    }

    /// The message with this idempotency key, if there is one. The caller holds the writer's lock.
    pub(super) fn find_key(&self, key: &IdempotencyKey) -> Result<Option<Message>, ReadError> {
        let key = Key::Idempotency(key.as_str());
        self.find_inner(key, Patience::Holding).map_err(|kind| self.read_error(kind))
    }

    /// The files as they are now.
    pub(super) fn view(&self) -> Result<Option<View<'_>>, ReadErrorKind> {
        View::open(&self.path, &self.kept)
    }

    fn read_error(&self, kind: ReadErrorKind) -> ReadError {
        ReadError { path: self.path.to_path_buf(), kind }
    }

    fn find_inner(&self, key: Key<'_>, patience: Patience) -> Result<Option<Message>, ReadErrorKind> {
        let Some(mut view) = self.view()? else { return Ok(None) };
        view.patience = patience;
        let Some(found) = view.find(key)? else { return Ok(None) };
        let Some(segment) = view.segment_of(found.rank)? else { return Ok(None) };
        let mut message = None;
        segment::scan(&segment, found.start, segment.opened_len, patience, &mut |_, record| {
            message = Some(record.into_message());
            ControlFlow::Break(())
        })?;
        Ok(message)
    }

    fn visit_inner(
        &self,
        since: Option<&str>,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadErrorKind> {
        let Some(view) = self.view()? else { return Ok(()) };
        let since = since.filter(|id| !id.trim().is_empty());
        let found = match since {
            None => None,
            Some(id) => match view.find(Key::Id(id))? {
                Some(found) => Some(found),
                None if view.is_missing()? => return Ok(()),
                None => return Err(ReadErrorKind::UnknownCursor { id: id.to_owned() }),
            },
        };
        let segments = view.segments_from(found.as_ref().map(|found| found.rank))?;
        let mut first = found.map(|found| found.start);
        for segment in segments {
            let mut skip = first.is_some();
            let start = first.take().unwrap_or(Start::from(Position::START));
            let mut stopped = false;
            let segment = segment?;
            segment::scan(&segment, start, segment.opened_len, Patience::Decide, &mut |_, record| {
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
        let Some(view) = self.view()? else { return Ok(Vec::new()) };
        let last_of = |segment: &_, count| {
            lookup::last(&view, segment, count, |_, record: Record<'_>| record.into_message())
        };
        let mut messages = match view.live() {
            Some(live) => last_of(live, count)?,
            None => Vec::new(),
        };
        if messages.len() < count {
            for archive in view.archives()?.iter().rev() {
                let Some(segment) = view.open_archive(archive)? else { continue };
                let mut earlier = last_of(&segment, count - messages.len())?;
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
