//! The files of a log: `<number of the segment>-<number of its first record>.jsonl` in one folder.
//!
//! The name says which records a segment holds without opening it. A name is not evidence: the header is, and `verify`
//! compares the two.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".jsonl";

/// A segment as its name describes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentFile {
    pub(super) segment: u64,
    /// The number of its first record.
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

impl SegmentFile {
    pub(super) fn new(folder: &Path, segment: u64, first: u64) -> Self {
        SegmentFile { segment, first, path: folder.join(format!("{segment:08}-{first:012}{SUFFIX}")) }
    }

    fn from_path(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        let (segment, first) = name.split_once('-')?;
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        Some(SegmentFile { segment: number(segment)?, first: number(first)?, path })
    }

    /// Opens it for reading; never a link, never anything but a file.
    pub(super) fn open(&self) -> io::Result<File> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a plain file"));
        }
        Ok(file)
    }

    /// Opens it for appending.
    pub(super) fn open_to_append(&self) -> io::Result<File> {
        self.open()?;
        OpenOptions::new().read(true).append(true).open(&self.path)
    }

    /// Makes it. A file of that name must not be there yet.
    pub(super) fn make(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&self.path)
    }
}

/// The segments of a log, the oldest first. A folder that is not there holds none.
pub(super) fn list(folder: &Path) -> io::Result<Vec<SegmentFile>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(SegmentFile::from_path(entry?.path()));
    }
    found.sort();
    Ok(found)
}

/// Makes the folder, for the owner only.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes sure that names in the folder outlive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_listed_in_order_and_other_files_are_not_segments() {
        let dir = tempfile::tempdir().unwrap();
        let segments: Vec<_> = [(1, 1), (2, 900), (100_000_000, 7)]
            .map(|(segment, first)| SegmentFile::new(dir.path(), segment, first))
            .into();
        for segment in segments.iter().rev() {
            segment.make().unwrap();
        }
        for name in ["lock", "key", "1-x.jsonl", "1.jsonl", "-.jsonl", "+1-1.jsonl", "1-1.jsonl.torn"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(list(dir.path()).unwrap(), segments);
        assert_eq!(list(&dir.path().join("none")).unwrap(), []);
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("elsewhere");
        std::fs::write(&target, "x").unwrap();
        let segment = SegmentFile::new(dir.path(), 1, 1);
        std::os::unix::fs::symlink(&target, &segment.path).unwrap();
        assert!(segment.open().is_err());
        assert!(segment.open_to_append().is_err());
        assert!(segment.make().is_err());
    }
}
