//! The file of a history: lines are appended whole or not at all.
//!
//! A write that fails half way (the disk is full, a limit is reached) is taken back, at the latest before the next one, so
//! the file stays what memory says it is and a later write can succeed. A sync that fails is another matter: nobody knows
//! what of the file has reached the disk, and asking again would get a false yes. Then nothing more is written.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use super::record::Record;

/// The history could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the history {}: {source}", path.display())]
pub(crate) struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// A file that is open for appending, and locked.
#[derive(Debug)]
pub(super) struct HistoryFile {
    file: File,
    pub(super) path: PathBuf,
    /// Where the last whole line ends.
    pub(super) length: u64,
    /// Something may stand behind that.
    torn: bool,
    sync_failed: bool,
}

impl HistoryFile {
    /// An empty file, or one that is [`cut`](Self::cut) before it is written.
    pub(super) fn new(file: File, path: PathBuf) -> Self {
        HistoryFile { file, path, length: 0, torn: false, sync_failed: false }
    }

    /// Writes one line, whole or not at all.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), WriteError> {
        let written = self.write(record);
        written.map_err(|source| WriteError { path: self.path.clone(), source })
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.sync_failed {
            return Err(io::Error::other("an earlier sync failed; continue the session in a new process"));
        }
        if self.torn {
            self.cut(self.length)?;
        }
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.torn = true;
        if let Err(error) = self.file.write_all(&line) {
            // If this fails, too, the next write begins with it.
            let _ = self.cut(self.length);
            return Err(error);
        }
        self.torn = false;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Takes away what stands behind this.
    pub(super) fn cut(&mut self, length: u64) -> io::Result<()> {
        self.length = length;
        if self.file.metadata()?.len() != length {
            self.file.set_len(length)?;
        }
        self.torn = false;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), WriteError> {
        self.file.sync_data().map_err(|source| {
            self.sync_failed = true;
            WriteError { path: self.path.clone(), source }
        })
    }
}
