//! Rules that were given to sessions: one file each, there before the rules are said to hold.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use swb_policy::rule_folder::read_plain;
use swb_rules::policy::{LoadError, MAX_FILE_BYTES, Restrictions, Source};

use super::layer::Kept;
use crate::private_dir;

/// What messages call such rules: they stand in no file of anybody.
const SHOWN: &str = "session rules";

/// Why a session did not get its rules. It has those that it had.
#[derive(Debug, thiserror::Error)]
pub enum RestrictError {
    /// They cannot be used.
    #[error("the rules of the session cannot be used: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rules(Vec<LoadError>),
    /// The id cannot be one.
    #[error("this is not the id of a session")]
    Id,
    /// They could not be kept.
    #[error("the rules of the session could not be kept")]
    Kept(#[source] io::Error),
}

/// The rules of all sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
    by_id: RwLock<HashMap<String, Arc<Kept<Restrictions>>>>,
    /// Held while files are written: the newest file and the newest rules are the same.
    writing: Mutex<()>,
}

impl Sessions {
    /// Reads what sessions of earlier daemons were given. What cannot be read denies what is done in that session.
    pub(super) fn open(folder: &Path) -> Self {
        let mut by_id = HashMap::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(".cedar").filter(|id| is_id(id)) else { continue };
            let kept = match read(&entry.path()).and_then(|text| load(&text)) {
                Ok(rules) => kept(rules),
                Err(problems) => {
                    tracing::error!(session = id, problem = %problems[0], "the rules of a session cannot be used");
                    Kept { rules: None, problems, warnings: Vec::new() }
                }
            };
            by_id.insert(id.to_owned(), Arc::new(kept));
        }
        Sessions { folder: folder.to_owned(), by_id: RwLock::new(by_id), writing: Mutex::default() }
    }

    /// Gives rules to a session, in the place of those it had.
    pub(super) fn give(&self, id: &str, text: &str) -> Result<usize, RestrictError> {
        if !is_id(id) {
            return Err(RestrictError::Id);
        }
        let rules = load(text).map_err(RestrictError::Rules)?;
        let count = rules.rules().count();
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(id, text).map_err(RestrictError::Kept)?;
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(id.to_owned(), Arc::new(kept(rules)));
        Ok(count)
    }

    /// The session has ended.
    pub(super) fn forget(&self, id: &str) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.by_id.write().unwrap_or_else(PoisonError::into_inner).remove(id).is_none() {
            return;
        }
        if let Err(error) = std::fs::remove_file(self.file(id)) {
            // It would only restrict a session that is no more.
            tracing::warn!(%error, session = id, "the rules of an ended session were left behind");
        }
    }

    pub(super) fn kept(&self, id: &str) -> Option<Arc<Kept<Restrictions>>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Nothing is known of any session: the usual case, and the quick one.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.cedar"))
    }

    fn write(&self, id: &str, text: &str) -> io::Result<()> {
        private_dir::ensure(&self.folder).map_err(io::Error::other)?;
        let new = self.folder.join(format!(".{id}.new"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, self.file(id))?;
        File::open(&self.folder)?.sync_all()
    }
}

fn kept(rules: Restrictions) -> Kept<Restrictions> {
    Kept { rules: Some(Arc::new(rules)), problems: Vec::new(), warnings: Vec::new() }
}

fn load(text: &str) -> Result<Restrictions, Vec<LoadError>> {
    Restrictions::load_session(&[Source { file: SHOWN, text }]).map(|loaded| loaded.rules)
}

fn read(path: &Path) -> Result<String, Vec<LoadError>> {
    let read = File::open(path).map_err(Into::into).and_then(|file| read_plain(&file, MAX_FILE_BYTES));
    let text = read
        .map_err(|unfit| unfit.to_string())
        .and_then(|(_, bytes)| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()));
    text.map_err(|reason| vec![LoadError { file: SHOWN.to_owned(), line: 1, column: 1, reason, help: None }])
}

/// Whether it can be part of a file's name.
fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.bytes().all(fits)
}
