//! Sequence numbers that never go back, not even after a crash.
//!
//! The file holds a reservation: "everything up to N may have been used". It is written before a number of a new block
//! is handed out, so a daemon that dies without a word leaves at most one block of unused numbers behind, and the next
//! one starts after it. A clean stop writes the exact last number, and nothing is skipped.
//!
//! Layout: two slots of [`SLOT_BYTES`], used in turn, each `crc32 (8 hex) | length (8 hex) | JSON`. A write that is torn
//! damages one slot only; the other still holds the previous reservation, whose block was not yet used up. The space is
//! allocated when the file is made and only overwritten after that, so a full disk does not stop the numbers.
//! If both slots are damaged, numbers go on from the clock in milliseconds, which no counter of events has ever reached.
//!
//! Proof: the damage tests below; `crash_skips_a_range_and_says_so` in the daemon's tests.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The size of one slot.
pub const SLOT_BYTES: u64 = 256 * 1024;
const FRAME_BYTES: usize = 16;

/// The file of reservations.
#[derive(Debug)]
pub struct SequenceFile {
    file: File,
    path: PathBuf,
    generation: u64,
}

/// One reservation: what was used when it was made, and up to where numbers may be handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The last number used when this was written.
    pub used_to: u64,
    /// The last number that may be used before the next reservation. Equal to `used_to` after a clean stop.
    pub reserved_to: u64,
    /// The last number of each topic when this was written.
    pub topics: BTreeMap<String, u64>,
}

/// Where to go on after opening the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// The last number that is, or may be, used up.
    pub last_seq: u64,
    /// The first number of the range that the last daemon may not have used, if it ended without a word.
    pub skipped_from: Option<u64>,
    /// The last number of each topic that is, or may be, used up.
    pub topics: BTreeMap<String, u64>,
    /// The same for topics that are not listed. Not zero only if the file was damaged.
    pub topic_floor: u64,
}

/// Why the numbers could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep sequence numbers in {}", path.display())]
pub struct SequenceError {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    #[source]
    pub kind: SequenceErrorKind,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum SequenceErrorKind {
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There are more topics than a slot holds.
    #[error("a reservation of {0} bytes does not fit into its slot")]
    TooLarge(usize),
}

#[derive(Serialize, Deserialize)]
struct Slot {
    version: u32,
    generation: u64,
    #[serde(flatten)]
    reservation: Reservation,
}

impl SequenceFile {
    /// Opens the file, or makes it, and tells where to go on. `now_ms` is used only if the file is damaged.
    pub fn open(path: &Path, now_ms: u64) -> Result<(Self, Resume), SequenceError> {
        let failed = |error: io::Error| SequenceError { path: path.to_owned(), kind: error.into() };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let slots: Vec<Slot> = [0, 1].iter().filter_map(|at| read_slot(&file, *at)).collect();
        let newest = slots.into_iter().max_by_key(|slot| slot.generation);
        let resume = match &newest {
            Some(slot) => resume_from(&slot.reservation),
            None if is_blank(&file, length) => Resume::default(),
            None => {
                Resume { last_seq: now_ms, skipped_from: Some(1), topic_floor: now_ms, ..Resume::default() }
            }
        };
        if length < 2 * SLOT_BYTES {
            // Not every file system can allocate ahead; then a full disk is met at the first write instead.
            if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 2 * SLOT_BYTES).is_err() {
                file.set_len(2 * SLOT_BYTES).map_err(failed)?;
            }
        }
        let generation = newest.map_or(0, |slot| slot.generation);
        Ok((SequenceFile { file, path: path.to_owned(), generation }, resume))
    }

    /// Writes a reservation and returns once it is on disk.
    pub fn reserve(&mut self, reservation: Reservation) -> Result<(), SequenceError> {
        let generation = self.generation + 1;
        let body = serde_json::to_vec(&Slot { version: 1, generation, reservation })
            .map_err(|error| self.failed(io::Error::from(error).into()))?;
        let mut bytes = format!("{:08x}{:08x}", crc32fast::hash(&body), body.len()).into_bytes();
        bytes.extend_from_slice(&body);
        if bytes.len() as u64 > SLOT_BYTES {
            return Err(self.failed(SequenceErrorKind::TooLarge(bytes.len())));
        }
        self.file
            .write_all_at(&bytes, generation % 2 * SLOT_BYTES)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| self.failed(error.into()))?;
        self.generation = generation;
        Ok(())
    }

    fn failed(&self, kind: SequenceErrorKind) -> SequenceError {
        SequenceError { path: self.path.clone(), kind }
    }
}

/// Nothing was ever written: a new file, or one whose maker died right after allocating it.
fn is_blank(file: &File, length: u64) -> bool {
    let mut frame = [0; FRAME_BYTES];
    length == 0
        || [0, SLOT_BYTES]
            .iter()
            .all(|at| file.read_exact_at(&mut frame, *at).is_ok() && frame == [0; FRAME_BYTES])
}

fn resume_from(reservation: &Reservation) -> Resume {
    let unused = reservation.reserved_to.saturating_sub(reservation.used_to);
    Resume {
        last_seq: reservation.reserved_to,
        skipped_from: (unused > 0).then_some(reservation.used_to + 1),
        // Any of the unused numbers may have gone to any topic.
        topics: reservation.topics.iter().map(|(topic, last)| (topic.clone(), last + unused)).collect(),
        topic_floor: 0,
    }
}

fn read_slot(file: &File, index: u64) -> Option<Slot> {
    let mut frame = [0; FRAME_BYTES];
    let offset = index * SLOT_BYTES;
    file.read_exact_at(&mut frame, offset).ok()?;
    let frame = std::str::from_utf8(&frame).ok()?;
    let crc = u32::from_str_radix(&frame[..8], 16).ok()?;
    let length = usize::try_from(u32::from_str_radix(&frame[8..], 16).ok()?).ok()?;
    if length as u64 > SLOT_BYTES - FRAME_BYTES as u64 {
        return None;
    }
    let mut body = vec![0; length];
    file.read_exact_at(&mut body, offset + FRAME_BYTES as u64).ok()?;
    if crc32fast::hash(&body) != crc {
        return None;
    }
    serde_json::from_slice(&body).ok().filter(|slot: &Slot| slot.version == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reservation(used_to: u64, reserved_to: u64) -> Reservation {
        Reservation { used_to, reserved_to, topics: BTreeMap::from([("a.b".to_owned(), used_to)]) }
    }

    fn open(path: &Path) -> (SequenceFile, Resume) {
        SequenceFile::open(path, 1_700_000_000_000).unwrap()
    }

    #[test]
    fn a_new_file_starts_at_the_beginning() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(&dir.path().join("seq")).1, Resume::default());
    }

    #[test]
    fn a_file_whose_maker_died_before_its_first_write_is_new() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(&dir.path().join("seq")));
        assert_eq!(open(&dir.path().join("seq")).1, Resume::default());
    }

    #[test]
    fn a_clean_stop_skips_nothing_and_a_crash_skips_the_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seq");
        open(&path).0.reserve(reservation(10, 100)).unwrap();
        let (mut file, crashed) = open(&path);
        assert_eq!((crashed.last_seq, crashed.skipped_from, crashed.topics["a.b"]), (100, Some(11), 100));
        file.reserve(reservation(120, 120)).unwrap();
        let clean = open(&path).1;
        assert_eq!((clean.last_seq, clean.skipped_from, clean.topics["a.b"]), (120, None, 120));
    }

    #[test]
    fn a_torn_write_falls_back_to_the_reservation_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seq");
        let mut file = open(&path).0;
        file.reserve(reservation(0, 100)).unwrap();
        file.reserve(reservation(100, 200)).unwrap();
        file.file.write_all_at(b"torn", FRAME_BYTES as u64 + 5).unwrap(); // generation 2 lies in slot 0
        assert_eq!(open(&path).1.last_seq, 100);
    }

    #[test]
    fn a_ruined_file_goes_on_from_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seq");
        std::fs::write(&path, vec![b'x'; 1000]).unwrap();
        let (mut file, resume) = open(&path);
        assert_eq!((resume.last_seq, resume.topic_floor), (1_700_000_000_000, 1_700_000_000_000));
        file.reserve(reservation(resume.last_seq, resume.last_seq + 10)).unwrap();
        assert_eq!(open(&path).1.last_seq, 1_700_000_000_010);
    }

    #[test]
    fn too_many_topics_are_an_error_and_leave_the_last_reservation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seq");
        let mut file = open(&path).0;
        file.reserve(reservation(1, 2)).unwrap();
        let topics = (0..20_000).map(|n| (format!("topic.number{n}"), n)).collect();
        let error = file.reserve(Reservation { used_to: 3, reserved_to: 4, topics }).unwrap_err();
        assert!(matches!(error.kind, SequenceErrorKind::TooLarge(_)));
        assert_eq!(open(&path).1.last_seq, 2);
    }

    proptest! {
        #[test]
        fn damage_never_takes_a_number_back(at in 0u64..2 * SLOT_BYTES, junk in proptest::collection::vec(any::<u8>(), 1..64)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("seq");
            let mut file = open(&path).0;
            file.reserve(reservation(0, 1000)).unwrap();
            file.reserve(reservation(900, 2000)).unwrap();
            file.file.write_all_at(&junk, at).unwrap();
            // One damaged slot: at worst the block before, whose last number was not used when the newer one was written.
            prop_assert!(open(&path).1.last_seq >= 1000);
        }
    }
}
