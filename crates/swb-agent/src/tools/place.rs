//! Where tools work.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::gate::paths;
use crate::tools::ToolSettings;

/// The folder an agent works in, and the one it is in just now.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    folder: Mutex<PathBuf>,
    /// Where the projects of message buses lie.
    pub(crate) messages: PathBuf,
    pub(crate) settings: ToolSettings,
}

impl Place {
    pub(crate) fn new(root: &Path, messages: PathBuf, settings: ToolSettings) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Place { folder: Mutex::new(root.clone()), root, messages, settings }
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

    /// Goes back to the workspace if the current folder is gone, and says which it was.
    pub(crate) fn leave_lost_folder(&self) -> Option<String> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if folder.is_dir() {
            return None;
        }
        let lost = std::mem::replace(&mut *folder, self.root.clone());
        Some(one_line(&lost.to_string_lossy()))
    }

    /// Where a path of an argument really leads. A `~` means what it means in a shell.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        let home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (home, std::env::var("HOME")) {
            (Some(rest), Ok(home)) if !home.is_empty() => {
                paths::resolve(&self.folder(), &format!("{home}{rest}"))
            }
            _ => paths::resolve(&self.folder(), path),
        }
    }

    /// A path as it is shown to the model: short if it is inside the workspace, and always one line.
    pub(crate) fn name(&self, path: &Path) -> String {
        let short = path.strip_prefix(&self.root).ok().filter(|short| !short.as_os_str().is_empty());
        one_line(&short.unwrap_or(path).to_string_lossy())
    }
}

/// A name that cannot pass for two.
pub(super) fn one_line(name: &str) -> String {
    if !name.contains(char::is_control) {
        return name.to_owned();
    }
    name.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}
