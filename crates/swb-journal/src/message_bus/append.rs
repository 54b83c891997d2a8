//! Appending: the only code that adds bytes to a bus file.
//!
//! Under the exclusive lock: make sure the locked file still is the bus, judge and repair its end, rotate if it is
//! full, take id and time, and write separator and records with one call. The file stays open between appends; its
//! identity is checked each time, so a rotation or a replacement by someone else is noticed before a byte is written.
//! A short write is taken back before the error is returned. Syncing happens after the lock is given back.
//!
//! Invariants: an acknowledged message is in the file exactly once; ids rise in file order among our writers; what is
//! written never contains a delimiter line that does not belong to a record.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError};

use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use super::MessageBus;
use super::body;
use super::header::write;
use super::lock;
use super::message_id::{self, MessageId};
use super::place::{FileIdentity, Folder, OpenError};
use super::read::{self, ReadError};
use super::record::{Draft, RESERVED_META_PREFIX};
use super::repair::{self, Known};
use super::rotate;
use super::segment::{self, Segment};
use super::timestamp::Timestamp;

/// What a poster is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The message's id.
    pub id: MessageId,
    /// Its time, in UTC; absent for an earlier message that has none.
    pub timestamp: Option<Timestamp>,
    /// Nothing was written: a message with the same idempotency key was there already.
    pub already_posted: bool,
}

/// The file kept open between appends.
#[derive(Debug)]
pub(super) struct Writer {
    segment: Arc<Segment>,
    folder: Folder,
    known: Option<Known>,
    buffer: Vec<u8>,
}

impl MessageBus {
    /// Posts one message.
    ///
    /// # Errors
    /// If the draft is not valid, the lock is not to be had, or the file cannot be written.
    pub fn append(&self, draft: &Draft) -> Result<Appended, AppendError> {
        let mut appended = self.append_batch(std::slice::from_ref(draft))?;
        // A batch answers once per draft.
        appended.pop().ok_or_else(|| self.append_error(AppendErrorKind::Write(io::ErrorKind::Other.into())))
    }

    /// Posts messages together: one lock, one write, one sync; they stand in the file side by side and in order.
    ///
    /// # Errors
    /// As for [`MessageBus::append`]; then none of them is acknowledged.
    pub fn append_batch(&self, drafts: &[Draft]) -> Result<Vec<Appended>, AppendError> {
        let mut rendered = Vec::with_capacity(drafts.len());
        for draft in drafts {
            validate(draft).map_err(|kind| self.append_error(kind))?;
            rendered.push(Rendered::new(draft));
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 1;
        let mut pause = self.options.retry_backoff;
        let (appended, segment) = loop {
            match self.append_locked(&mut writer, &rendered) {
                Ok(done) => break done,
                Err(AppendErrorKind::LockTimeout { .. }) if attempt < self.options.max_retries => {
                    *writer = None;
                    std::thread::park_timeout(pause);
                    pause *= 2;
                    attempt += 1;
                }
                Err(AppendErrorKind::LockTimeout { .. }) => {
                    return Err(self.append_error(AppendErrorKind::LockTimeout { attempts: attempt }));
                }
                Err(kind) => {
                    // Whatever went wrong, the next append starts from what the disk says.
                    *writer = None;
                    return Err(self.append_error(kind));
                }
            }
        };
        if !self.options.fsync {
            return Ok(appended);
        }
        let ticket = self.commit.written(&segment);
        drop(writer);
        self.commit.sync(ticket).map_err(|error| self.append_error(AppendErrorKind::Sync(error)))?;
        Ok(appended)
    }

    fn append_error(&self, kind: AppendErrorKind) -> AppendError {
        AppendError { path: self.path().to_path_buf(), kind }
    }

    fn append_locked(
        &self,
        writer: &mut Option<Writer>,
        drafts: &[Rendered<'_>],
    ) -> Result<(Vec<Appended>, Arc<Segment>), AppendErrorKind> {
        let (open, size) = self.locked_bus(writer)?;
        let done = self.write_records(open, size, drafts);
        let released = lock::release(&open.segment.file);
        let appended = done?;
        released.map_err(AppendErrorKind::Lock)?;
        Ok((appended, Arc::clone(&open.segment)))
    }

    /// The bus file, locked, and its size.
    fn locked_bus<'w>(
        &self,
        writer: &'w mut Option<Writer>,
    ) -> Result<(&'w mut Writer, u64), AppendErrorKind> {
        loop {
            let mut open = match writer.take() {
                Some(open) => open,
                None => self.open_writer()?,
            };
            if !lock::exclusive(&open.segment.file, self.options.lock_timeout)
                .map_err(AppendErrorKind::Lock)?
            {
                return Err(AppendErrorKind::LockTimeout { attempts: 1 });
            }
            match rustix::fs::statat(CWD, &self.full_path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileIdentity::from(&stat) == open.segment.identity => {
                    let size = u64::try_from(stat.st_size).unwrap_or(0);
                    open.buffer.clear();
                    return Ok((writer.insert(open), size));
                }
                // Rotated, replaced or removed while we waited: what we locked is not the bus any more.
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(AppendErrorKind::Lock(errno.into())),
            }
        }
    }

    fn open_writer(&self) -> Result<Writer, AppendErrorKind> {
        let folder = match self.path.open_folder() {
            Err(error) if error.is_missing() && self.options.create_folders => {
                self.path.create_folders().map_err(AppendErrorKind::Open)?;
                self.path.open_folder()
            }
            other => other,
        }
        .map_err(AppendErrorKind::Open)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let file = folder.open_file(self.path.name(), flags).map_err(AppendErrorKind::Open)?;
        if self.options.fsync {
            // A new file is durable only with its name.
            rustix::fs::fsync(&folder).map_err(|errno| AppendErrorKind::Sync(errno.into()))?;
        }
        Writer::new(folder, file, self.path.name(), None)
    }

    fn write_records(
        &self,
        open: &mut Writer,
        size: u64,
        drafts: &[Rendered<'_>],
    ) -> Result<Vec<Appended>, AppendErrorKind> {
        let mut appended = Vec::with_capacity(drafts.len());
        let mut keys = HashMap::new();
        let (mut size, mut newest, swallows) = self.whole_end(open, size)?;
        if self.options.auto_rotate.is_some_and(|limit| size >= limit) && size > 0 {
            self.rotate_locked(open, newest)?;
            size = 0;
        }
        let mut buffer = std::mem::take(&mut open.buffer);
        if swallows && size > 0 {
            buffer.push(b'\n');
            buffer.extend_from_slice(repair::BREAKER);
        }
        for Rendered { draft, scope, rest } in drafts {
            if let Some(first) = self.already_posted(draft, &keys)? {
                appended.push(first);
                continue;
            }
            let now = Timestamp::now();
            let (id, time) = message_id::next_after(newest, now);
            newest = Some(time);
            let timestamp = draft.timestamp.unwrap_or(now).to_utc();
            if size > 0 || !buffer.is_empty() {
                buffer.push(b'\n');
            }
            write::head(&mut buffer, id.as_str(), timestamp);
            buffer.extend_from_slice(scope);
            write::issue(&mut buffer, id.as_str(), draft);
            buffer.extend_from_slice(rest);
            let first = Appended { id, timestamp: Some(timestamp), already_posted: false };
            if let Some(key) = &draft.idempotency_key {
                keys.insert(key.as_str(), Appended { already_posted: true, ..first.clone() });
            }
            appended.push(first);
        }
        write_once(&open.segment.file, &buffer, size)?;
        open.known = Some(Known { end: size + buffer.len() as u64, newest });
        open.buffer = buffer;
        Ok(appended)
    }

    /// Makes sure the file ends with a whole record. Returns its size, the newest id's time and whether text at the
    /// end must be kept from swallowing the next record.
    fn whole_end(&self, open: &mut Writer, size: u64) -> Result<(u64, Option<i128>, bool), AppendErrorKind> {
        if let Some(known) = open.known
            && known.end == size
        {
            return Ok((size, known.newest, false));
        }
        if size == 0 {
            let newest = self.newest_archived(&open.folder).map_err(AppendErrorKind::Repair)?;
            return Ok((0, newest.max(open.known.and_then(|known| known.newest)), false));
        }
        let tail = repair::examine(&open.segment, open.known, size).map_err(AppendErrorKind::Repair)?;
        if tail.keep < size {
            let side = open.folder.side(&self.path.side_name(), true).ok();
            repair::cut(&open.segment.file, side.as_ref(), tail.keep, size)
                .map_err(AppendErrorKind::Repair)?;
        }
        Ok((tail.keep, tail.newest, tail.swallows))
    }

    /// A bus that is empty because it was just rotated goes on from its newest archive's ids.
    fn newest_archived(&self, folder: &Folder) -> io::Result<Option<i128>> {
        let Some(newest) = segment::archives(folder, self.path.name())?.pop() else { return Ok(None) };
        match Segment::open(folder, &newest.name) {
            Ok(Some(segment)) => Ok(repair::examine(&segment, None, segment.len()?)?.newest),
            _ => Ok(None),
        }
    }

    fn rotate_locked(&self, open: &mut Writer, newest: Option<i128>) -> Result<(), AppendErrorKind> {
        let name = self.path.name();
        let fresh =
            rotate::rotate(&open.folder, &self.path.side_name(), name, &open.segment.file, Timestamp::now())
                .map_err(AppendErrorKind::Rotate)?;
        if self.options.fsync {
            rustix::fs::fsync(&open.folder).map_err(|errno| AppendErrorKind::Sync(errno.into()))?;
        }
        let folder = self.path.open_folder().map_err(AppendErrorKind::Open)?;
        lock::release(&open.segment.file).map_err(AppendErrorKind::Lock)?;
        *open = Writer::new(folder, fresh, name, Some(Known { end: 0, newest }))?;
        Ok(())
    }

    fn already_posted(
        &self,
        draft: &Draft,
        batch: &HashMap<&str, Appended>,
    ) -> Result<Option<Appended>, AppendErrorKind> {
        let Some(key) = &draft.idempotency_key else { return Ok(None) };
        if let Some(first) = batch.get(key.as_str()) {
            return Ok(Some(first.clone()));
        }
        let first =
            read::find_key(&self.path, key).map_err(|error| AppendErrorKind::KeyLookup(Box::new(error)))?;
        Ok(first.map(|message| Appended {
            id: MessageId::from(message.id.into_owned()),
            timestamp: message.timestamp.map(Timestamp::to_utc),
            already_posted: true,
        }))
    }
}

/// A draft with everything written out that does not depend on its place in the file, to keep the lock short.
struct Rendered<'a> {
    draft: &'a Draft,
    /// The fields before `issue_id`.
    scope: Vec<u8>,
    /// The fields after it, and the body.
    rest: Vec<u8>,
}

impl<'a> Rendered<'a> {
    fn new(draft: &'a Draft) -> Self {
        let (stored, note) = body::store(&draft.body);
        let mut scope = Vec::with_capacity(128);
        write::scope(&mut scope, draft);
        let mut rest = Vec::with_capacity(stored.len() + 64);
        write::rest(&mut rest, draft, note);
        rest.extend_from_slice(&stored);
        if stored.last() != Some(&b'\n') {
            rest.push(b'\n');
        }
        Self { draft, scope, rest }
    }
}

/// One write call; if the system takes only a part, that part is taken back.
fn write_once(file: &File, bytes: &[u8], size: u64) -> Result<(), AppendErrorKind> {
    if bytes.is_empty() {
        return Ok(());
    }
    loop {
        let error = match rustix::io::write(file, bytes) {
            Ok(len) if len == bytes.len() => return Ok(()),
            Ok(_) => io::ErrorKind::StorageFull.into(),
            Err(Errno::INTR) => continue,
            Err(errno) => errno.into(),
        };
        // If even this fails, the next writer finds a torn tail and cuts it.
        let _ = file.set_len(size);
        return Err(AppendErrorKind::Write(error));
    }
}

fn validate(draft: &Draft) -> Result<(), AppendErrorKind> {
    if draft.kind.trim().is_empty() {
        return Err(AppendErrorKind::Blank { field: "type" });
    }
    if draft.project_id.trim().is_empty() {
        return Err(AppendErrorKind::Blank { field: "project_id" });
    }
    for (index, (key, _)) in draft.meta.iter().enumerate() {
        if key.starts_with(RESERVED_META_PREFIX) {
            return Err(AppendErrorKind::ReservedMeta { key: key.clone() });
        }
        if draft.meta[..index].iter().any(|(earlier, _)| earlier == key) {
            return Err(AppendErrorKind::RepeatedMeta { key: key.clone() });
        }
    }
    Ok(())
}

/// Why a message was not posted, and to which bus.
#[derive(Debug, Error)]
#[error("cannot post to {}", path.display())]
pub struct AppendError {
    /// The bus file.
    pub path: std::path::PathBuf,
    /// What went wrong.
    #[source]
    pub kind: AppendErrorKind,
}

/// What kept a message from being posted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendErrorKind {
    /// A field that must say something says nothing.
    #[error("{field} is blank")]
    Blank {
        /// Its name in the header.
        field: &'static str,
    },
    /// A `meta` key that belongs to the bus.
    #[error("the meta key {key:?} is reserved")]
    ReservedMeta {
        /// The key.
        key: String,
    },
    /// A `meta` key given twice; no reader would accept the record.
    #[error("the meta key {key:?} is given twice")]
    RepeatedMeta {
        /// The key.
        key: String,
    },
    /// The file or its folder cannot be used.
    #[error("the bus file cannot be used")]
    Open(#[source] OpenError),
    /// Another writer kept the lock.
    #[error("another writer held the lock through {attempts} attempts")]
    LockTimeout {
        /// Attempts made.
        attempts: u32,
    },
    /// The lock itself failed.
    #[error("locking failed")]
    Lock(#[source] io::Error),
    /// The end of the file could not be read or repaired.
    #[error("the end of the file cannot be repaired")]
    Repair(#[source] io::Error),
    /// The full file could not be archived.
    #[error("the full file cannot be archived")]
    Rotate(#[source] OpenError),
    /// Earlier messages could not be searched for the idempotency key.
    #[error("the idempotency key cannot be looked up")]
    KeyLookup(#[source] Box<ReadError>),
    /// The bytes were not written, or not all of them, and were taken back.
    #[error("writing failed")]
    Write(#[source] io::Error),
    /// The message is in the file, but nobody knows whether it would survive a power cut.
    #[error("syncing failed")]
    Sync(#[source] io::Error),
}

impl Writer {
    fn new(folder: Folder, file: File, name: &str, known: Option<Known>) -> Result<Self, AppendErrorKind> {
        let stat = rustix::fs::fstat(&file).map_err(|errno| AppendErrorKind::Lock(errno.into()))?;
        let identity = FileIdentity::from(&stat);
        let segment = Arc::new(Segment { file, name: name.to_owned(), identity, opened_len: 0 });
        Ok(Self { segment, folder, known, buffer: Vec::new() })
    }
}
