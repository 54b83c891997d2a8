//! The folder of sessions: making one, finding one, opening one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use swb_proto::Timestamp;
use swb_proto::id::{self, IdMint, SessionId};

use super::file::HistoryFile;
use super::load::{self, LoadError};
use super::lock::{self, LockError};
use super::record::{Record, VERSION};
use super::{FileStore, History};

const FILES_SUFFIX: &str = ".files";
const TORN_SUFFIX: &str = ".torn";
pub(super) const NO_SESSION: &str = "it does not name a session";
pub(super) const SUFFIX: &str = ".jsonl";

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is none of this name.
    #[error("there is no session `{id}`")]
    Unknown {
        /// What was asked for.
        id: String,
    },
    /// The part of an id fits several.
    #[error("`{id}` is ambiguous: {count} sessions match")]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// How many fit.
        count: usize,
    },
    /// It is open elsewhere.
    #[error("session `{id}` is in use by another process")]
    InUse {
        /// The session.
        id: String,
    },
    /// A line in its middle makes no sense.
    #[error("line {line} of {} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The system said no.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Where sessions are kept.
#[derive(Debug)]
pub(crate) struct Sessions {
    folder: PathBuf,
    mint: IdMint,
}

impl Sessions {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Sessions { folder, mint: IdMint::default() }
    }

    /// A new session, on disk before anybody hears of it.
    pub(crate) fn create(
        &mut self,
        model: &str,
        system: Option<String>,
        parent: Option<String>,
    ) -> Result<History, OpenError> {
        self.create_as(None, model, system, parent)
    }

    /// The same under an id that somebody else has given it.
    pub(crate) fn create_as(
        &mut self,
        id: Option<String>,
        model: &str,
        system: Option<String>,
        parent: Option<String>,
    ) -> Result<History, OpenError> {
        let failed = |source| OpenError::Io { path: self.folder.clone(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let now = SystemTime::now();
        let millis = now.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let unique = self.mint.next(u64::try_from(millis).unwrap_or(0), || u128::from_le_bytes(random));
        let id = id.unwrap_or_else(|| SessionId::from_ulid(unique).as_str().to_owned());
        let path = self.path(&id);
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        match lock::take(&file) {
            Ok(()) => {}
            Err(LockError::InUse) => return Err(OpenError::InUse { id }),
            Err(LockError::Io(source)) => return Err(failed(source)),
        }
        let mut file = HistoryFile::new(file, path.clone());
        let record = Record::Session {
            version: VERSION,
            id: id.clone(),
            created_at: Timestamp::from_system_time(now).as_str().to_owned(),
            model: model.to_owned(),
            system,
            parent,
            cwd: std::env::current_dir().unwrap_or_default(),
        };
        file.append(&record).and_then(|()| file.sync()).map_err(|error| failed(io::Error::other(error)))?;
        // The name must survive as well as the content.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let files = self.files(&id);
        let begun = History::begun(record, id, files, file);
        begun.map_err(|reason| OpenError::Damaged { path: path.clone(), line: 1, reason })
    }

    /// The session of this id, or the only one whose id contains this.
    pub(crate) fn open(&self, wanted: &str) -> Result<History, OpenError> {
        let id = self.find(wanted)?;
        let path = self.path(&id);
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed)?;
        match lock::take(&file) {
            Ok(()) => {}
            Err(LockError::InUse) => return Err(OpenError::InUse { id }),
            Err(LockError::Io(source)) => return Err(failed(source)),
        }
        let mut history = self.load(id, &file)?;
        history.close_dangling_calls().map_err(|error| failed(io::Error::other(error)))?;
        history.sweep_files();
        Ok(history)
    }

    fn load(&self, id: String, file: &File) -> Result<History, OpenError> {
        let path = self.path(&id);
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let appending = HistoryFile::new(file.try_clone().map_err(failed)?, path.clone());
        let mut beginning = Some((id, appending));
        let mut history = None;
        let read = load::records(file, |record| match (&mut history, beginning.take()) {
            (None, Some((id, file))) => {
                let files = self.files(&id);
                history = Some(History::begun(record, id, files, file)?);
                Ok(())
            }
            (Some(history), _) => {
                history.take(record);
                Ok(())
            }
            (None, None) => Ok(()),
        });
        let (good_end, whole_lines_follow) = read.map_err(|error| match error {
            LoadError::Damaged { line, reason } => OpenError::Damaged { path: path.clone(), line, reason },
            LoadError::Io(source) => failed(source),
        })?;
        let Some(mut history) = history else {
            return Err(OpenError::Damaged { path, line: 1, reason: NO_SESSION.to_owned() });
        };
        if whole_lines_follow {
            let beside = self.folder.join(format!("{}{TORN_SUFFIX}", history.id));
            load::keep_tail(file, good_end, &beside).map_err(failed)?;
        }
        history.file.cut(good_end).map_err(failed)?;
        Ok(history)
    }

    fn files(&self, id: &str) -> Arc<FileStore> {
        Arc::new(FileStore::new(self.folder.join(format!("{id}{FILES_SUFFIX}"))))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{SUFFIX}"))
    }

    fn find(&self, wanted: &str) -> Result<String, OpenError> {
        let unknown = || OpenError::Unknown { id: wanted.to_owned() };
        // The grammar of ids keeps a name from leading out of the folder.
        id::check(wanted).map_err(|_| unknown())?;
        if self.path(wanted).is_file() {
            return Ok(wanted.to_owned());
        }
        let mut found: Vec<String> = names(&self.folder).filter(|id| id.contains(wanted)).collect();
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(unknown()),
            count => Err(OpenError::Ambiguous { id: wanted.to_owned(), count }),
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(SUFFIX).map(str::to_owned))
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;
