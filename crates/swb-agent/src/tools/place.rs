//! Where tools work.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::gate::paths;

/// The folder an agent works in, and the one it is in just now.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    folder: Mutex<PathBuf>,
    /// Where the projects of message buses lie.
    pub(crate) messages: PathBuf,
}

impl Place {
    pub(crate) fn new(root: &Path, messages: PathBuf) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Place { folder: Mutex::new(root.clone()), root, messages }
    }

    /// The workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The current folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes elsewhere. A folder that is gone is not entered.
    pub(crate) fn enter(&self, folder: PathBuf) {
        if folder.is_dir() {
            *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder;
        }
    }

    /// Where a path of an argument really leads.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        paths::resolve(&self.folder(), path)
    }

    /// A path as it is shown to the model: short if it is inside the workspace.
    pub(crate) fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).ok().filter(|short| !short.as_os_str().is_empty()).unwrap_or(path)
    }
}
