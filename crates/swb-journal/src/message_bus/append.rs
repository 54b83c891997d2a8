//! Appending: from a poster's call to an acknowledged message.
//!
//! The drafts are checked and written out first ([`super::posting`]), then added under the lock ([`super::writer`]).
//! Without fsync every call does so for itself. With fsync, calls that come while another one is syncing are written
//! together by one of them ([`super::commit`]) and share the next sync, which happens after the lock is given back.
//!
//! Invariants: an acknowledged message is in the file exactly once, and on the disk if that was asked for; what goes
//! wrong with one posting is told to its poster alone.

use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use thiserror::Error;

use super::MessageBus;
use super::folder::OpenError;
use super::message_id::MessageId;
use super::posting::Posting;
use super::read::ReadError;
use super::record::Draft;
use super::segment::Segment;
use super::timestamp::Timestamp;
use super::writer::Writer;

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

/// What a poster gets, or why not.
pub(super) type Answer = Result<Vec<Appended>, AppendErrorKind>;

impl MessageBus {
    /// Posts one message.
    ///
    /// # Errors
    /// If the draft is not valid, the lock is not to be had, or the file cannot be written.
    pub fn append(&self, draft: &Draft) -> Result<Appended, AppendError> {
        let mut appended = self.append_batch(std::slice::from_ref(draft))?;
        // A batch answers once per draft.
        appended.pop().ok_or_else(|| self.append_error(AppendErrorKind::Abandoned))
    }

    /// Posts messages together: one lock, one write, one sync; they stand in the file side by side and in order.
    ///
    /// # Errors
    /// As for [`MessageBus::append`]; then none of them is acknowledged.
    pub fn append_batch(&self, drafts: &[Draft]) -> Result<Vec<Appended>, AppendError> {
        let posting = Posting::new(drafts).map_err(|kind| self.append_error(kind))?;
        let answer = if self.options.fsync {
            self.commit.join(posting, |postings| self.in_turn(|writer| self.post(writer, postings)))
        } else {
            // A write is over sooner than another thread wakes up, so nobody writes for anybody else.
            self.in_turn(|writer| self.post(writer, &[posting])).pop()
        };
        answer.unwrap_or(Err(AppendErrorKind::Abandoned)).map_err(|kind| self.append_error(kind))
    }

    /// Posts messages that have nothing to do with each other: with one lock and one write where that is possible, and
    /// every one of them has an answer of its own, in order.
    pub fn append_each(&self, drafts: &[Draft]) -> Vec<Result<Appended, AppendError>> {
        let mut postings = Vec::with_capacity(drafts.len());
        let checked: Vec<Result<(), AppendErrorKind>> = drafts
            .iter()
            .map(|draft| Posting::new(std::slice::from_ref(draft)).map(|posting| postings.push(posting)))
            .collect();
        let mut answers = match postings.as_slice() {
            [] => Vec::new(),
            postings => self.in_turn(|writer| self.post(writer, postings)),
        }
        .into_iter();
        checked
            .into_iter()
            .map(|checked| {
                let answer = checked.and_then(|()| answers.next().unwrap_or(Err(AppendErrorKind::Abandoned)));
                let one = answer.and_then(|mut one| one.pop().ok_or(AppendErrorKind::Abandoned));
                one.map_err(|kind| self.append_error(kind))
            })
            .collect()
    }

    fn in_turn<T>(&self, write: impl FnOnce(&mut Option<Writer>) -> T) -> T {
        let mut kept = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that a panic closes the file and gives its lock back.
        let mut writer = kept.take();
        let written = write(&mut writer);
        *kept = writer;
        written
    }

    fn append_error(&self, kind: AppendErrorKind) -> AppendError {
        AppendError { path: self.path().to_path_buf(), kind }
    }

    /// Writes postings in order and answers each of them.
    fn post(&self, writer: &mut Option<Writer>, postings: &[Posting]) -> Vec<Answer> {
        let mut posted = Posted::default();
        let mut alone = false;
        while posted.answers.len() < postings.len() {
            let rest = &postings[posted.answers.len()..];
            let rest = if alone { &rest[..1] } else { rest };
            match self.write_postings(writer, rest, &mut posted) {
                Ok(()) => {}
                Err(AppendErrorKind::LockTimeout { attempts }) => {
                    let timed_out = || Err(AppendErrorKind::LockTimeout { attempts });
                    posted.answers.resize_with(postings.len(), timed_out);
                }
                Err(kind) => {
                    // Whatever went wrong, the next attempt starts from what the disk says.
                    *writer = None;
                    // In company nobody knows whose fault it was, and a smaller write may still find room.
                    if std::mem::replace(&mut alone, true) || postings.len() == 1 {
                        posted.answers.push(Err(kind));
                    }
                }
            }
        }
        if self.options.fsync {
            posted.sync();
        }
        posted.answers
    }
}

/// The answers so far, and the files they depend on.
#[derive(Debug, Default)]
pub(super) struct Posted {
    answers: Vec<Answer>,
    files: Vec<(Arc<Segment>, Range<usize>)>,
}

impl Posted {
    /// Adds the answers to postings that went into this file.
    pub(super) fn add(&mut self, file: &Arc<Segment>, answers: Vec<Answer>) {
        let start = self.answers.len();
        self.answers.extend(answers);
        self.files.push((Arc::clone(file), start..self.answers.len()));
    }

    /// How many postings have their answer.
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    /// After a failed sync nobody knows which pages reached the disk, so it fails everything it was to cover. A posting
    /// that was there already is covered too: its first poster may not have asked for a sync.
    fn sync(&mut self) {
        for (file, covered) in &self.files {
            let Err(error) = file.file.sync_data() else { continue };
            for answer in self.answers[covered.clone()].iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(AppendErrorKind::Sync(same_error(&error)));
            }
        }
    }
}

/// Errors of the system cannot be cloned; their number says it all.
fn same_error(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
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
    /// The thread that was writing for this one panicked; the message may be in the file or not.
    #[error("the thread that was to write it panicked")]
    Abandoned,
}

#[cfg(test)]
mod tests {
    use super::super::{BusOptions, BusPath, IdempotencyKey};
    use super::*;

    fn bus(dir: &tempfile::TempDir, auto_rotate: Option<u64>) -> MessageBus {
        let options = BusOptions { fsync: true, auto_rotate, ..BusOptions::default() };
        MessageBus::new(BusPath::new(dir.path().join("B.md")).unwrap(), options)
    }

    fn posting(body: &str, key: Option<&str>) -> Posting {
        let idempotency_key = key.map(|key| IdempotencyKey::new(key).unwrap());
        Posting::new(&[Draft { idempotency_key, ..Draft::new("INFO", "p", body) }]).unwrap()
    }

    fn bodies(bus: &MessageBus) -> Vec<String> {
        bus.read_all().unwrap().iter().map(|message| message.body_text().into_owned()).collect()
    }

    #[test]
    fn postings_written_together_keep_order_keys_and_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let bus = bus(&dir, Some(400));
        let long = "x".repeat(200);
        let postings: Vec<_> =
            ["a", "b", "a", "c", "b"].map(|key| posting(&format!("{key} {long}"), Some(key))).into();
        let mut writer = None;
        let answers: Vec<_> = bus.post(&mut writer, &postings).into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(
            answers.iter().map(|answer| answer.already_posted).collect::<Vec<_>>(),
            [false, false, true, false, true]
        );
        assert_eq!((&answers[2].id, &answers[4].id), (&answers[0].id, &answers[1].id));
        assert!(answers[0].id < answers[1].id && answers[1].id < answers[3].id);
        assert_eq!(bodies(&bus), ["a", "b", "c"].map(|key| format!("{key} {long}")));
        let live = std::fs::read_to_string(dir.path().join("B.md")).unwrap();
        assert_eq!(live.matches("msg_id: ").count(), 1, "two records reach the limit");
    }

    #[test]
    fn what_goes_wrong_with_one_posting_is_told_to_its_poster_alone() {
        let dir = tempfile::tempdir().unwrap();
        let bus = bus(&dir, None);
        bus.append(&Draft::new("INFO", "p", "first")).unwrap();
        // Looking a key up must not follow a link that poses as an archive.
        std::os::unix::fs::symlink("B.md", dir.path().join("B.md.20200101-000000.archived")).unwrap();
        let postings = [posting("one", None), posting("two", Some("k")), posting("three", None)];
        let answers = bus.post(&mut None, &postings);
        assert!(matches!(answers[1], Err(AppendErrorKind::KeyLookup(_))));
        assert!(answers[0].is_ok() && answers[2].is_ok());
        std::fs::remove_file(dir.path().join("B.md.20200101-000000.archived")).unwrap();
        assert_eq!(bodies(&bus), ["first", "one", "three"]);
    }

    #[test]
    fn each_of_many_messages_has_an_answer_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let bus = bus(&dir, None);
        let keyed = Draft {
            idempotency_key: Some(IdempotencyKey::new("k").unwrap()),
            ..Draft::new("INFO", "p", "keyed")
        };
        let drafts = [Draft::new("INFO", "p", "one"), keyed.clone(), Draft::new(" ", "p", "blank"), keyed];
        let answers = bus.append_each(&drafts);
        let ids: Vec<_> = answers.iter().map(|answer| answer.as_ref().ok().map(|one| &one.id)).collect();
        assert!(ids[0].is_some() && ids[1].is_some());
        assert!(matches!(&answers[2], Err(error) if matches!(error.kind, AppendErrorKind::Blank { .. })));
        assert_eq!((ids[3], answers[3].as_ref().unwrap().already_posted), (ids[1], true));
        assert_eq!(bodies(&bus), ["one", "keyed"]);
        assert!(bus.append_each(&[]).is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_rotated_keeps_what_it_has_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let bus = bus(&dir, Some(1));
        // In the place of the fresh file.
        let obstacle = dir.path().join(format!(".B.md.swb-fresh-{}", std::process::id()));
        std::fs::create_dir(&obstacle).unwrap();
        let postings = [posting("one", None), posting("two", None), posting("three", None)];
        let mut writer = None;
        let answers = bus.post(&mut writer, &postings);
        assert!(answers[0].is_ok());
        assert!(answers[1..].iter().all(|answer| matches!(answer, Err(AppendErrorKind::Rotate(_)))));
        std::fs::remove_dir(&obstacle).unwrap();
        bus.append(&Draft::new("INFO", "p", "four")).unwrap();
        assert_eq!(bodies(&bus), ["one", "four"]);
    }

    #[test]
    fn a_failed_sync_fails_what_it_was_to_cover_and_nothing_else() {
        let segment = |file: std::fs::File| {
            let identity = crate::message_bus::identity::FileIdentity { device: 0, inode: 0 };
            Arc::new(Segment { file: Arc::new(file), name: "".into(), identity, opened_len: 0 })
        };
        let whole = segment(tempfile::tempfile().unwrap());
        // A pipe cannot be synced.
        let (reader, _writer) = io::pipe().unwrap();
        let failing = segment(std::fs::File::from(std::os::fd::OwnedFd::from(reader)));
        let mut posted = Posted::default();
        posted.add(&failing, vec![Ok(Vec::new()), Err(AppendErrorKind::Abandoned), Ok(Vec::new())]);
        posted.add(&whole, vec![Ok(Vec::new())]);
        posted.sync();
        assert!(matches!(posted.answers[0], Err(AppendErrorKind::Sync(_))));
        assert!(matches!(posted.answers[1], Err(AppendErrorKind::Abandoned)));
        assert!(matches!(posted.answers[2], Err(AppendErrorKind::Sync(_))));
        assert!(posted.answers[3].is_ok());
    }
}
