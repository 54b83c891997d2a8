//! Records that are few and change seldom: one JSON-lines file, the last line of a key counts.
//!
//! A line is `{"sum":"<crc32>","put":{…}}` or `{"sum":"<crc32>","drop":"<key>"}`; the sum is of the text of the value. A
//! change is on disk before it is told to anybody. A write that fails is taken back, so that the file never holds half of
//! a line but after a crash: then the torn tail is cut. A line that is damaged in the middle is passed over and counted,
//! and the file as it was is kept beside, because what is there may still be mended by hand.
//!
//! When most lines are of the past, the file is written anew beside and put in its place. One process at a time: whoever
//! opens it holds the daemon's lock. Proof: the tests below cut the file at every byte and flip every byte of it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Below this the past is not worth writing a file for.
const FEW_LINES: usize = 1000;

/// All records of one kind.
#[derive(Debug)]
pub struct Registry<T> {
    path: PathBuf,
    key: fn(&T) -> &str,
    file: File,
    /// Where the last whole line ends.
    length: u64,
    lines: usize,
    records: BTreeMap<String, T>,
}

/// What was found when a registry was opened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Bytes of a line that a crash had cut short, and that were removed.
    pub torn_bytes: u64,
    /// Lines that cannot be read any more.
    pub damaged_lines: usize,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    sum: String,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    put: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    drop: Option<&'a RawValue>,
}

impl<T: Serialize + DeserializeOwned> Registry<T> {
    /// Opens the file, or begins it. A record's key never changes.
    pub fn open(path: &Path, key: fn(&T) -> &str) -> io::Result<(Self, Found)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let mut found = Found { torn_bytes: (bytes.len() - whole) as u64, damaged_lines: 0 };
        let mut records = BTreeMap::new();
        let mut lines = 0;
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            lines += 1;
            if apply(&mut records, key, line).is_none() {
                found.damaged_lines += 1;
            }
        }
        if found != Found::default() {
            std::fs::write(beside(path, "damaged"), &bytes)?;
        }
        let length = whole as u64;
        if found.torn_bytes > 0 {
            file.set_len(length)?;
            file.sync_data()?;
        }
        Ok((Registry { path: path.to_owned(), key, file, length, lines, records }, found))
    }

    /// A record.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.records.get(key)
    }

    /// All records, by key.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.records.values()
    }

    /// Keeps a record, in place of the one with the same key.
    pub fn put(&mut self, record: T) -> io::Result<()> {
        let value = serde_json::value::to_raw_value(&record)?;
        self.append(&Line { sum: sum(&value), put: Some(&value), drop: None })?;
        self.records.insert((self.key)(&record).to_owned(), record);
        self.forget_the_past()
    }

    /// Keeps a record no longer. What was under the key.
    pub fn remove(&mut self, key: &str) -> io::Result<Option<T>> {
        if !self.records.contains_key(key) {
            return Ok(None);
        }
        let value = serde_json::value::to_raw_value(key)?;
        self.append(&Line { sum: sum(&value), put: None, drop: Some(&value) })?;
        let removed = self.records.remove(key);
        self.forget_the_past()?;
        Ok(removed)
    }

    fn append(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // Taken back: what was not acknowledged must not come up after the next start.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.lines += 1;
        Ok(())
    }

    fn forget_the_past(&mut self) -> io::Result<()> {
        if self.lines < FEW_LINES.max(self.records.len() * 4) {
            return Ok(());
        }
        let path = beside(&self.path, "new");
        let mut bytes = Vec::new();
        for record in self.records.values() {
            let value = serde_json::value::to_raw_value(record)?;
            serde_json::to_writer(&mut bytes, &Line { sum: sum(&value), put: Some(&value), drop: None })?;
            bytes.push(b'\n');
        }
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&path, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        // The old file has no name any more.
        self.file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        (self.length, self.lines) = (bytes.len() as u64, self.records.len());
        Ok(())
    }
}

fn apply<T: DeserializeOwned>(
    records: &mut BTreeMap<String, T>,
    key: fn(&T) -> &str,
    line: &[u8],
) -> Option<()> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    match line {
        Line { sum: said, put: Some(value), drop: None } if said == sum(value) => {
            let record: T = serde_json::from_str(value.get()).ok()?;
            records.insert(key(&record).to_owned(), record);
        }
        Line { sum: said, put: None, drop: Some(value) } if said == sum(value) => {
            records.remove(serde_json::from_str::<String>(value.get()).ok()?.as_str());
        }
        _ => return None,
    }
    Some(())
}

pub(crate) fn sum(value: &RawValue) -> String {
    format!("{:08x}", crc32fast::hash(value.get().as_bytes()))
}

pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(what);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Thing {
        id: String,
        size: u32,
    }

    fn thing(id: &str, size: u32) -> Thing {
        Thing { id: id.to_owned(), size }
    }

    fn all(registry: &Registry<Thing>) -> Vec<Thing> {
        registry.iter().cloned().collect()
    }

    fn open(path: &Path) -> (Registry<Thing>, Found) {
        Registry::open(path, |thing: &Thing| &thing.id).unwrap()
    }

    fn three(path: &Path) -> Vec<u8> {
        let (mut registry, found) = open(path);
        assert_eq!(found, Found::default());
        registry.put(thing("a", 1)).unwrap();
        registry.put(thing("b", 2)).unwrap();
        registry.put(thing("a", 3)).unwrap();
        assert_eq!(registry.remove("b").unwrap(), Some(thing("b", 2)));
        assert_eq!(registry.remove("b").unwrap(), None);
        std::fs::read(path).unwrap()
    }

    #[test]
    fn the_last_line_of_a_key_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.jsonl");
        let bytes = three(&path);
        assert_eq!(
            bytes.split(|byte| *byte == b'\n').next().unwrap(),
            br#"{"sum":"bdd5c69e","put":{"id":"a","size":1}}"#
        );
        let (registry, found) = open(&path);
        assert_eq!((all(&registry), found), (vec![thing("a", 3)], Found::default()));
    }

    #[test]
    fn a_file_cut_at_any_byte_holds_what_was_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.jsonl");
        let bytes = three(&path);
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let (mut registry, found) = open(&path);
            assert_eq!(found.damaged_lines, 0, "{cut}");
            let expected = match whole {
                0 => vec![],
                1 => vec![thing("a", 1)],
                2 => vec![thing("a", 1), thing("b", 2)],
                _ => vec![thing("a", 3), thing("b", 2)],
            };
            assert_eq!(all(&registry), expected, "{cut}");
            registry.put(thing("c", 4)).unwrap();
            drop(registry);
            let (registry, found) = open(&path);
            assert_eq!((registry.get("c"), found), (Some(&thing("c", 4)), Found::default()), "{cut}");
        }
    }

    #[test]
    fn a_byte_that_changed_is_noticed_and_costs_its_line_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.jsonl");
        let bytes = three(&path);
        let first = memchr::memchr(b'\n', &bytes).unwrap();
        for at in 0..first {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (registry, found) = open(&path);
            let lines = damaged.split_inclusive(|byte| *byte == b'\n').count();
            assert_eq!(found.damaged_lines, 1 + usize::from(lines > 4), "{at}");
            assert_eq!(all(&registry), [thing("a", 3)], "{at}");
            assert_eq!(std::fs::read(folder.path().join("things.jsonl.damaged")).unwrap(), damaged);
        }
    }

    #[test]
    fn the_past_is_forgotten_and_the_present_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.jsonl");
        let (mut registry, _) = open(&path);
        for size in 0..3000 {
            registry.put(thing(if size % 2 == 0 { "even" } else { "odd" }, size)).unwrap();
        }
        drop(registry);
        assert!(std::fs::read(&path).unwrap().split(|byte| *byte == b'\n').count() < 1100);
        assert_eq!(all(&open(&path).0), [thing("even", 2998), thing("odd", 2999)]);
    }

    #[test]
    fn a_write_that_fails_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.jsonl");
        let (mut registry, _) = open(&path);
        registry.put(thing("a", 1)).unwrap();
        // Every write to it fails, as on a full disk.
        registry.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(registry.put(thing("a", 2)).is_err());
        assert!(registry.remove("a").is_err());
        assert_eq!(all(&registry), [thing("a", 1)]);
        assert_eq!(all(&open(&path).0), [thing("a", 1)]);
    }
}
