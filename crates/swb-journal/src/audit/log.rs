//! The log as its one writer sees it: open, append, head, close.
//!
//! ```text
//! append ─► queue ─► writer ─► file ─► ticket            Written: whoever comes writes for all who wait
//!    │                 ▲ ▲
//!    └─ nobody there ──┘ log's thread, which also syncs  Synced
//! ```
//!
//! An append that finds the writer busy waits for it; when its turn comes, its entry has usually been written along with
//! others. One that waits anyway and finds the writer free and the queue empty writes at once; it looks at the queue with
//! the writer in hand, so nobody who came before is behind it.
//!
//! Invariants: a ticket says yes only when its line is in the file (and on the disk, if that was asked for); numbers
//! follow the order of appends; after one failed write or sync every later append fails.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::append::{AppendError, Work, WriteFailure};
use super::entry::Entry;
use super::hash::ChainHash;
use super::key::{ArgumentsHash, LogKey};
use super::moment::Moment;
use super::open::{OpenError, Opened, find_end};
use super::options::{AuditOptions, Durability};
use super::queue::Queue;
use super::ticket::{Receipt, Ticket};
use super::writer::Writer;

/// The end of a log. Kept in another place, it proves later that nothing before it was changed or cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Which log.
    pub chain: String,
    /// The number of the last record; 0 if there is none.
    pub number: u64,
    /// Its hash.
    pub hash: ChainHash,
}

/// A log that this process writes. Readers need none: see [`AuditReader`](super::AuditReader).
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held as long as the log is open; it is free the moment its holder dies.
    lock: File,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    key: Arc<LogKey>,
    durability: Durability,
    queue: Queue,
    writer: Mutex<Writer>,
    chain: String,
    /// The last record that is in the file.
    last: Mutex<Receipt>,
    failure: OnceLock<Arc<WriteFailure>>,
}

impl AuditLog {
    /// Opens the log in a folder, or makes one. Refuses if another process has it open, or if it is damaged.
    pub fn open(folder: &Path, options: AuditOptions, now: Moment) -> Result<(Self, Opened), OpenError> {
        super::segment::make_folder(folder).map_err(|error| OpenError::io(folder, error))?;
        let lock = take_lock(&folder.join("lock"))?;
        let key_path = folder.join("key");
        let key = LogKey::load_or_make(&key_path).map_err(|error| OpenError::io(&key_path, error))?;
        let key = Arc::new(key);
        let (writer, opened) = find_end(folder, &key, &options, now)?;
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            key,
            durability: options.durability,
            queue: Queue::new(options.queue_bytes),
            chain: writer.chain().to_owned(),
            last: Mutex::new(last_of(&writer)),
            writer: Mutex::new(writer),
            failure: OnceLock::new(),
        });
        let thread = match options.durability {
            Durability::Written => None,
            Durability::Synced => {
                let shared = Arc::clone(&shared);
                let named =
                    std::thread::Builder::new().name("audit".to_owned()).spawn(move || shared.serve());
                Some(named.map_err(|error| OpenError::io(folder, error))?)
            }
        };
        let log = AuditLog { shared, thread: Mutex::new(thread), lock };
        if let Some(cut) = opened.cut {
            let entry = Entry { recovered: Some(cut), ..Entry::bare(super::Kind::Recovered, now) };
            log.append(&entry).and_then(Ticket::wait).map_err(OpenError::Append)?;
        }
        Ok((log, opened))
    }

    /// Hands in an entry. The ticket says when it is in the file; entries are written in the order they are handed in.
    ///
    /// With [`Durability::Written`] it is there when this returns, and the ticket is ready.
    pub fn append(&self, entry: &Entry) -> Result<Ticket, AppendError> {
        self.hand_in(Work::new(entry)?)
    }

    fn hand_in(&self, mut work: Work) -> Result<Ticket, AppendError> {
        let ticket = work.ticket();
        self.check()?;
        self.shared.queue.push(work)?;
        if self.shared.durability == Durability::Written {
            self.shared.lead();
        }
        Ok(ticket)
    }

    /// Hands in an entry and returns when it is in the file.
    pub fn append_now(&self, entry: &Entry) -> Result<Receipt, AppendError> {
        let shared = &self.shared;
        let work = Work::new(entry)?;
        // Nobody is there to queue with or behind: no ticket is needed either.
        if shared.durability == Durability::Written
            && let Ok(mut writer) = shared.writer.try_lock()
            && shared.queue.is_free()
        {
            self.check()?;
            return shared.put(&mut writer, std::slice::from_ref(&work)).map(|_| last_of(&writer));
        }
        self.hand_in(work)?.wait()
    }

    /// The keyed hash of a command's arguments, as they came.
    #[must_use]
    pub fn hash_arguments(&self, arguments: &[u8]) -> ArgumentsHash {
        self.shared.key.hash_arguments(arguments)
    }

    /// The end of the log.
    #[must_use]
    pub fn head(&self) -> Head {
        let Receipt { number, hash } = *lock(&self.shared.last);
        Head { chain: self.shared.chain.clone(), number, hash }
    }

    /// Why the log takes no more records, if it does not.
    pub fn check(&self) -> Result<(), AppendError> {
        match self.shared.failure.get() {
            Some(failure) => Err(AppendError::Poisoned(Arc::clone(failure))),
            None => Ok(()),
        }
    }

    /// Makes sure that everything appended so far outlives a power cut.
    pub fn sync(&self) -> Result<(), AppendError> {
        self.with_writer(Writer::sync)
    }

    /// The folder it lies in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Closes the current segment, so that it can be copied away or purged.
    pub fn roll(&self, now: Moment) -> Result<(), AppendError> {
        self.with_writer(|writer| writer.roll(now))
    }

    /// The highest place of an event that was recorded; 0 if there is none.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        lock(&self.shared.writer).tip().seq
    }

    /// The number of the segment that is being written.
    #[must_use]
    pub fn segment(&self) -> u64 {
        lock(&self.shared.writer).segment().segment
    }

    /// The segment that is being written, and the commands that have not ended.
    pub(super) fn current(&self) -> (u64, Vec<u64>) {
        let writer = lock(&self.shared.writer);
        (writer.segment().segment, writer.tip().open.iter().copied().collect())
    }

    /// Writes what waits, makes it safe and takes nothing more. Another process may open the log then.
    pub fn close(&self) -> Result<(), AppendError> {
        self.shared.queue.close();
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has poisoned the log; there is nothing left to write.
            let _ = thread.join();
        }
        // Who was let in before the queue was closed and has not come to write.
        self.shared.lead();
        let safe = self.sync();
        let _ = self.lock.unlock();
        safe
    }

    fn with_writer(&self, work: impl FnOnce(&mut Writer) -> std::io::Result<()>) -> Result<(), AppendError> {
        self.check()?;
        let mut writer = lock(&self.shared.writer);
        let done = work(&mut writer);
        let path = writer.segment().path.clone();
        drop(writer);
        match done {
            Ok(()) => Ok(()),
            Err(source) => {
                self.shared.fail(WriteFailure { path, source });
                self.check()
            }
        }
    }
}

impl Drop for AuditLog {
    /// Writes what waits.
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The thread of a log that syncs.
    fn serve(&self) {
        let ending = Ending(self);
        while let Some(batch) = self.queue.gather() {
            self.write(|| batch);
        }
        drop(ending);
    }

    /// Waits for the writer and writes whatever waits then. Our own entry is in it, or was written while we waited.
    fn lead(&self) {
        self.write(|| self.queue.take());
    }

    /// Waits for the writer and writes a batch.
    fn write(&self, batch: impl FnOnce() -> Vec<Work>) {
        match self.writer.lock() {
            Ok(writer) => self.commit_with(writer, batch()),
            Err(poisoned) => {
                // Whoever had it panicked half way: what the file holds is not known.
                let path = poisoned.into_inner().segment().path.clone();
                self.fail(WriteFailure { path, source: std::io::Error::other("the writer panicked") });
                self.refuse(batch());
            }
        }
    }

    fn commit_with(&self, mut writer: MutexGuard<'_, Writer>, batch: Vec<Work>) {
        if batch.is_empty() {
            return;
        }
        if self.failure.get().is_some() {
            return self.refuse(batch);
        }
        let written = self.put(&mut writer, &batch);
        drop(writer);
        match written {
            Ok(receipts) => {
                for (work, receipt) in batch.into_iter().zip(receipts) {
                    work.finish(Ok(receipt));
                }
            }
            Err(_) => self.refuse(batch),
        }
    }

    /// Puts a batch into the file. Once that has failed, nothing more is put there.
    fn put(&self, writer: &mut Writer, batch: &[Work]) -> Result<Vec<Receipt>, AppendError> {
        match writer.commit(batch) {
            Ok(receipts) => {
                *lock(&self.last) = last_of(writer);
                Ok(receipts)
            }
            Err(failure) => {
                self.fail(failure);
                Err(self.refusal())
            }
        }
    }

    /// What those are told who come too late.
    fn refusal(&self) -> AppendError {
        self.failure.get().map_or(AppendError::Closed, |failure| AppendError::Poisoned(Arc::clone(failure)))
    }

    fn fail(&self, failure: WriteFailure) {
        // The first failure is the one that counts.
        let _ = self.failure.set(Arc::new(failure));
    }

    fn refuse(&self, batch: Vec<Work>) {
        for work in batch {
            work.finish(Err(self.refusal()));
        }
    }
}

/// Whatever ends the thread, nobody waits for it any more.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.queue.close();
        self.0.refuse(self.0.queue.take());
    }
}

fn last_of(writer: &Writer) -> Receipt {
    let tip = writer.tip();
    Receipt { number: tip.number, hash: tip.hash }
}

fn take_lock(path: &Path) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = opened.map_err(|error| OpenError::io(path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Busy { path: path.to_owned() }),
        Err(std::fs::TryLockError::Error(error)) => Err(OpenError::io(path, error)),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
