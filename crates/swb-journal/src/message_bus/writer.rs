//! The open bus file and its lock: the only code that adds bytes to it.
//!
//! Under the exclusive lock: make sure the locked file still is the bus, judge and repair its end, rotate if it is
//! full, take ids and times, and write separators and records with one call. The file stays open between appends; its
//! identity is checked each time, so a rotation or a replacement by someone else is noticed before a byte is written.
//! A short write is taken back before the error is returned.
//!
//! Invariants: ids rise in file order among our writers; what is written never contains a delimiter line that does not
//! belong to a record; a file that has reached its limit gets no further posting.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::MessageBus;
use super::append::{Answer, AppendErrorKind, Appended, Posted};
use super::folder::Folder;
use super::idempotency::IdempotencyKey;
use super::identity::FileIdentity;
use super::lock;
use super::message_id::{self, MessageId};
use super::posting::Posting;
use super::repair::{self, Known};
use super::rotate;
use super::segment::{self, Segment};
use super::timestamp::Timestamp;

/// A run is closed when it has grown to this: others wait for the lock, and readers for the end of the write.
const LONG_RUN: usize = 1 << 20;

/// The file kept open between appends.
#[derive(Debug)]
pub(super) struct Writer {
    segment: Arc<Segment>,
    folder: Folder,
    known: Option<Known>,
    buffer: Vec<u8>,
}

impl MessageBus {
    /// Writes postings in order, as many with one write as one file may take. An error stops at the first posting
    /// that has no answer yet.
    pub(super) fn write_postings(
        &self,
        writer: &mut Option<Writer>,
        postings: &[Posting],
        posted: &mut Posted,
    ) -> Result<(), AppendErrorKind> {
        let (open, mut size) = self.locked_bus(writer)?;
        let all = posted.len() + postings.len();
        while posted.len() < all {
            let run = self.write_run(open, size, &postings[postings.len() - (all - posted.len())..]);
            let answers = match run {
                Ok(answers) => answers,
                Err(kind) => {
                    // A commit under way may keep the file open, so closing it need not give the lock back.
                    let _ = lock::release(&open.segment.file);
                    return Err(kind);
                }
            };
            posted.add(&open.segment, answers);
            size = open.known.map_or(size, |known| known.end);
        }
        if lock::release(&open.segment.file).is_err() {
            // What is written is written; the lock goes with the file.
            *writer = None;
        }
        Ok(())
    }

    /// The bus file, locked, and its size.
    fn locked_bus<'w>(
        &self,
        writer: &'w mut Option<Writer>,
    ) -> Result<(&'w mut Writer, u64), AppendErrorKind> {
        let mut attempts = 1;
        let mut pause = self.options.retry_backoff;
        loop {
            let open = match writer.take() {
                Some(open) => open,
                None => self.open_writer()?,
            };
            if !lock::exclusive(&open.segment.file, self.options.lock_timeout)
                .map_err(AppendErrorKind::Lock)?
            {
                if attempts >= self.options.max_retries {
                    return Err(AppendErrorKind::LockTimeout { attempts });
                }
                std::thread::park_timeout(pause);
                pause *= 2;
                attempts += 1;
                continue;
            }
            let found = FileIdentity::at(self.path.file());
            if let Ok((identity, size)) = found
                && identity == open.segment.identity
            {
                return Ok((writer.insert(open), size));
            }
            // A commit under way may keep the file open, so closing it need not give the lock back.
            lock::release(&open.segment.file).map_err(AppendErrorKind::Lock)?;
            match found {
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

    /// Writes postings with one call, up to the one that fills the file or makes a long write; at least the first.
    fn write_run(
        &self,
        open: &mut Writer,
        size: u64,
        postings: &[Posting],
    ) -> Result<Vec<Answer>, AppendErrorKind> {
        let limit = self.options.auto_rotate.unwrap_or(u64::MAX);
        let (mut size, mut newest, swallows) = self.whole_end(open, size)?;
        if size >= limit && size > 0 {
            self.rotate_locked(open, newest)?;
            size = 0;
        }
        let mut buffer = std::mem::take(&mut open.buffer);
        buffer.clear();
        if swallows && size > 0 {
            buffer.push(b'\n');
            buffer.extend_from_slice(repair::BREAKER);
        }
        let mut answers: Vec<Answer> = Vec::with_capacity(postings.len());
        let mut keys = HashMap::new();
        // Once: what is written with one call happens at one time, and ids rise by themselves.
        let now = Timestamp::now();
        for posting in postings {
            let full = size + buffer.len() as u64 >= limit;
            if !answers.is_empty() && (full || buffer.len() >= LONG_RUN) {
                break;
            }
            // Before a byte of the posting is in the buffer, so that an error concerns nobody else.
            let earlier = match self.already_posted(posting, &keys) {
                Ok(earlier) => earlier,
                Err(kind) => {
                    answers.push(Err(kind));
                    continue;
                }
            };
            let mut appended = Vec::with_capacity(posting.records.len());
            for (index, record) in posting.records.iter().enumerate() {
                let key = record.key.as_ref().map(IdempotencyKey::as_str);
                let first = key.and_then(|key| keys.get(key).or_else(|| earlier.get(&index)));
                if let Some(first) = first {
                    appended.push(first.clone());
                    continue;
                }
                let (id, time) = message_id::next_after(newest, now);
                newest = Some(time);
                let timestamp = record.timestamp.unwrap_or(now).to_utc();
                if size > 0 || !buffer.is_empty() {
                    buffer.push(b'\n');
                }
                record.write_to(&mut buffer, &id, timestamp);
                let first = Appended { id, timestamp: Some(timestamp), already_posted: false };
                if let Some(key) = key {
                    keys.insert(key, Appended { already_posted: true, ..first.clone() });
                }
                appended.push(first);
            }
            answers.push(Ok(appended));
        }
        write_once(&open.segment.file, &buffer, size)?;
        open.known = Some(Known { end: size + buffer.len() as u64, newest });
        if buffer.capacity() <= 2 * LONG_RUN {
            open.buffer = buffer;
        }
        Ok(answers)
    }

    /// The records of a posting that are on the bus already, by their place in it.
    fn already_posted(
        &self,
        posting: &Posting,
        in_this_run: &HashMap<&str, Appended>,
    ) -> Result<HashMap<usize, Appended>, AppendErrorKind> {
        let mut earlier = HashMap::new();
        for (index, record) in posting.records.iter().enumerate() {
            let Some(key) = record.key.as_ref().filter(|key| !in_this_run.contains_key(key.as_str())) else {
                continue;
            };
            let first = self.find_key(key).map_err(|error| AppendErrorKind::KeyLookup(Box::new(error)))?;
            if let Some(message) = first {
                let id = MessageId::from(message.id.into_owned());
                let timestamp = message.timestamp.map(Timestamp::to_utc);
                earlier.insert(index, Appended { id, timestamp, already_posted: true });
            }
        }
        Ok(earlier)
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
}

impl Writer {
    fn new(folder: Folder, file: File, name: &str, known: Option<Known>) -> Result<Self, AppendErrorKind> {
        let stat = rustix::fs::fstat(&file).map_err(|errno| AppendErrorKind::Lock(errno.into()))?;
        let identity = FileIdentity::from(&stat);
        let segment = Arc::new(Segment { file: Arc::new(file), name: name.into(), identity, opened_len: 0 });
        Ok(Self { segment, folder, known, buffer: Vec::new() })
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
