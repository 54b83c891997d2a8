//! What happened, kept as it happened: one JSON-lines file of events on top of a snapshot.
//!
//! A line is `{"sum":"<crc32>","snapshot":{…}}` or `{"sum":"<crc32>","events":[…]}`; the sum is of the text of the value.
//! Events of one line happened together: a crash leaves all of them or none. [`EventFile::append`] returns when they are on
//! disk. When a write fails it is taken back and the file takes no more: what the disk holds is unknown until it is opened
//! and read again. A torn tail is cut; a line that is damaged in the middle is passed over and counted, and the file as it
//! was is kept beside.
//!
//! When the past has grown long, [`EventFile::begin_anew`] writes a snapshot beside and puts it in its place. One process at
//! a time: whoever opens it holds the daemon's lock. Proof: the tests below cut the file at every byte and flip every byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::registry::{Found, beside, sum};

/// From so many lines on a snapshot is worth its bytes.
const MANY_LINES: usize = 1000;
/// And from so many bytes on, if most of them are of the past.
const MANY_BYTES: u64 = 4 << 20;

/// A file of events, open for more.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
    /// Where the last whole line ends.
    length: u64,
    /// How long the file was when its snapshot was written.
    snapshot_length: u64,
    lines: usize,
    failed: bool,
}

/// What a file held when it was opened.
#[derive(Debug)]
pub struct Kept<S, E> {
    /// What everything before was summed up as.
    pub snapshot: Option<S>,
    /// What happened after it.
    pub events: Vec<E>,
    /// What a crash or a disk had done to it.
    pub found: Found,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    sum: String,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    events: Option<&'a RawValue>,
}

impl EventFile {
    /// Opens the file, or begins it.
    pub fn open<S: DeserializeOwned, E: DeserializeOwned>(path: &Path) -> io::Result<(Self, Kept<S, E>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let found = Found { torn_bytes: (bytes.len() - whole) as u64, damaged_lines: 0 };
        let mut kept = Kept { snapshot: None, events: Vec::new(), found };
        let (mut lines, mut snapshot_length) = (0, 0);
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            lines += 1;
            match read(line) {
                Some(Content::Snapshot(snapshot)) => {
                    snapshot_length = line.len() as u64;
                    (kept.snapshot, kept.events) = (Some(snapshot), Vec::new());
                }
                Some(Content::Events(events)) => kept.events.extend(events),
                None => kept.found.damaged_lines += 1,
            }
        }
        if kept.found != Found::default() {
            std::fs::write(beside(path, "damaged"), &bytes)?;
        }
        let length = whole as u64;
        if kept.found.torn_bytes > 0 {
            file.set_len(length)?;
            file.sync_data()?;
        }
        let path = path.to_owned();
        Ok((EventFile { path, file, length, snapshot_length, lines, failed: false }, kept))
    }

    /// Keeps events that happened together. When this returns, they are on disk.
    pub fn append<E: Serialize>(&mut self, events: &[E]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed; the file has to be opened anew"));
        }
        let value = serde_json::value::to_raw_value(events)?;
        let mut bytes = serde_json::to_vec(&Line { sum: sum(&value), snapshot: None, events: Some(&value) })?;
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            self.failed = true;
            // Taken back: what was not acknowledged must not come up after the next start.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.lines += 1;
        Ok(())
    }

    /// Whether most of the file is of the past.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.lines >= MANY_LINES || self.length >= MANY_BYTES.max(self.snapshot_length * 4)
    }

    /// Puts `snapshot` in the place of everything that was kept.
    pub fn begin_anew<S: Serialize>(&mut self, snapshot: &S) -> io::Result<()> {
        let value = serde_json::value::to_raw_value(snapshot)?;
        let mut bytes = serde_json::to_vec(&Line { sum: sum(&value), snapshot: Some(&value), events: None })?;
        bytes.push(b'\n');
        let path = beside(&self.path, "new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&path, &self.path)?;
        // From here on the old file has no name: whatever goes wrong, it must not be written to.
        self.failed = true;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        let length = bytes.len() as u64;
        (self.length, self.snapshot_length, self.lines, self.failed) = (length, length, 1, false);
        Ok(())
    }
}

enum Content<S, E> {
    Snapshot(S),
    Events(Vec<E>),
}

fn read<S: DeserializeOwned, E: DeserializeOwned>(line: &[u8]) -> Option<Content<S, E>> {
    match serde_json::from_slice(line).ok()? {
        Line { sum: said, snapshot: Some(value), events: None } if said == sum(value) => {
            serde_json::from_str(value.get()).ok().map(Content::Snapshot)
        }
        Line { sum: said, snapshot: None, events: Some(value) } if said == sum(value) => {
            serde_json::from_str(value.get()).ok().map(Content::Events)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> (EventFile, Kept<u64, u64>) {
        EventFile::open(path).unwrap()
    }

    /// A snapshot of 10, then 1 and 2 together, then 3.
    fn written(path: &Path) -> Vec<u8> {
        let (mut file, kept) = open(path);
        assert_eq!((kept.snapshot, kept.found), (None, Found::default()));
        file.append(&[7u64]).unwrap();
        file.begin_anew(&10u64).unwrap();
        file.append(&[1u64, 2]).unwrap();
        file.append(&[3u64]).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn what_was_kept_is_read_again_on_top_of_the_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let bytes = written(&path);
        assert_eq!(
            bytes.split(|byte| *byte == b'\n').nth(1).unwrap(),
            br#"{"sum":"088b50bf","events":[1,2]}"#
        );
        let (_, kept) = open(&path);
        assert_eq!((kept.snapshot, kept.events, kept.found), (Some(10), vec![1, 2, 3], Found::default()));
    }

    #[test]
    fn a_file_cut_at_any_byte_holds_whole_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let bytes = written(&path);
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let (mut file, kept) = open(&path);
            assert_eq!(kept.found.damaged_lines, 0, "{cut}");
            assert_eq!(kept.snapshot, (whole > 0).then_some(10), "{cut}");
            assert_eq!(kept.events, [1, 2][..if whole > 1 { 2 } else { 0 }], "{cut}");
            file.append(&[9u64]).unwrap();
            let (_, kept) = open(&path);
            assert_eq!((kept.events.last(), kept.found), (Some(&9), Found::default()), "{cut}");
        }
    }

    #[test]
    fn a_byte_that_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let bytes = written(&path);
        // The line break of the last line would make a torn tail of it; that is the test above.
        for at in 0..bytes.len() - 1 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (_, kept) = open(&path);
            assert!(kept.found.damaged_lines > 0, "{at}");
            assert_eq!(std::fs::read(folder.path().join("events.jsonl.damaged")).unwrap(), damaged);
        }
    }

    #[test]
    fn a_write_that_fails_is_taken_back_and_ends_the_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (mut file, _) = open(&path);
        file.append(&[1u64]).unwrap();
        // Every write to it fails, as on a full disk.
        file.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(file.append(&[2u64]).is_err());
        file.file = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(file.append(&[3u64]).is_err(), "nothing more until it was read again");
        assert_eq!(open(&path).1.events, [1]);
    }

    #[test]
    fn it_says_when_it_has_grown_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (mut file, _) = open(&path);
        for number in 0..MANY_LINES as u64 {
            assert!(!file.is_long());
            file.append(&[number]).unwrap();
        }
        assert!(file.is_long());
        file.begin_anew(&5u64).unwrap();
        assert!(!file.is_long());
        file.append(&[6u64]).unwrap();
        let (_, kept) = open(&path);
        assert_eq!((kept.snapshot, kept.events), (Some(5), vec![6]));
    }
}
