//! Finding the bus one is meant to use: upwards from a folder, and the scope a path implies.
//!
//! Per folder the task's bus comes first, then the project's, then a plain one; only regular files count. A relative
//! start is made absolute first, so that climbing always reaches the root.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::place::{PLAIN_BUS, PROJECT_BUS, TASK_BUS};

/// Names looked for in each folder, in this order.
pub const BUS_NAMES: [&str; 3] = [TASK_BUS, PROJECT_BUS, PLAIN_BUS];

/// The first bus file found in `from` or a folder above it.
///
/// # Errors
/// If there is none, or a folder cannot be looked into.
pub fn discover(from: &Path) -> Result<PathBuf, DiscoverError> {
    let fail = |path: &Path, source| DiscoverError::Folder { path: path.to_owned(), source };
    // Links are resolved so that `..` means the folder above, not the text before.
    let start = from.canonicalize().map_err(|source| fail(from, source))?;
    for folder in start.ancestors() {
        for name in BUS_NAMES {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(found) if found.is_file() => return Ok(path),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => return Err(fail(&path, error)),
            }
        }
    }
    Err(DiscoverError::NotFound { from: start })
}

/// The fields of a message that follow from where its bus or its run is. Empty where nothing follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The project's folder name.
    pub project_id: String,
    /// The task's folder name.
    pub task_id: String,
    /// The run's folder name.
    pub run_id: String,
}

impl Scope {
    /// From a bus file: `<project>/<task>/TASK-MESSAGE-BUS.md`, or `<project>/` with one of the other two names.
    #[must_use]
    pub fn from_bus_path(path: &Path) -> Self {
        let mut above = names_above(path);
        match path.file_name().and_then(OsStr::to_str) {
            Some(TASK_BUS) => {
                let (task_id, project_id) = (above.next(), above.next());
                match project_id {
                    Some(project_id) => {
                        Self { project_id, task_id: task_id.unwrap_or_default(), ..Self::default() }
                    }
                    None => Self::default(),
                }
            }
            Some(PROJECT_BUS | PLAIN_BUS) => {
                Self { project_id: above.next().unwrap_or_default(), ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    /// From a run's folder: `…/<project>/<task>/runs/<run>`, or nothing at all.
    #[must_use]
    pub fn from_run_folder(path: &Path) -> Self {
        let mut names = names_above(&path.join("x"));
        let (run_id, runs, task_id, project_id) = (names.next(), names.next(), names.next(), names.next());
        match (run_id, runs.as_deref(), task_id, project_id) {
            (Some(run_id), Some("runs"), Some(task_id), Some(project_id)) => {
                Self { project_id, task_id, run_id }
            }
            _ => Self::default(),
        }
    }

    /// From a task's folder: its last two parts.
    #[must_use]
    pub fn from_task_folder(path: &Path) -> Self {
        let mut names = names_above(&path.join("x"));
        let (task_id, project_id) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        Self { project_id, task_id, run_id: String::new() }
    }

    /// Fills what is empty here from there.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let either = |ours: String, theirs: String| if ours.is_empty() { theirs } else { ours };
        Self {
            project_id: either(self.project_id, other.project_id),
            task_id: either(self.task_id, other.task_id),
            run_id: either(self.run_id, other.run_id),
        }
    }
}

/// Names of the folders a file is in, innermost first.
fn names_above(path: &Path) -> impl Iterator<Item = String> + use<> {
    let folder =
        std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    let names: Vec<String> = folder
        .ancestors()
        .filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.into_iter()
}

/// Why no bus was found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// None in the folder or above it.
    #[error("no message bus file found from {:?} (searched for {})", from.display(), BUS_NAMES.join(", "))]
    NotFound {
        /// Where the search began, made absolute.
        from: PathBuf,
    },
    /// A folder could not be looked into.
    #[error("cannot look for a message bus at {}", path.display())]
    Folder {
        /// The place.
        path: PathBuf,
        /// From the system.
        #[source]
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_regular_file_in_the_fixed_order_wins() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let deep = root.join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(root.join(PLAIN_BUS), "").unwrap();
        assert_eq!(discover(&deep).unwrap(), root.join(PLAIN_BUS));
        std::fs::write(root.join(PROJECT_BUS), "").unwrap();
        assert_eq!(discover(&deep).unwrap(), root.join(PROJECT_BUS));
        std::fs::write(root.join("a").join(PLAIN_BUS), "").unwrap();
        // Neither a folder nor a link counts.
        std::fs::create_dir(deep.join(TASK_BUS)).unwrap();
        std::os::unix::fs::symlink(root.join(PLAIN_BUS), deep.join(PROJECT_BUS)).unwrap();
        assert_eq!(discover(&deep).unwrap(), root.join("a").join(PLAIN_BUS));
        // A start with `..` in it climbs up, not back down.
        assert_eq!(discover(&deep.join("..")).unwrap(), root.join("a").join(PLAIN_BUS));
        assert_eq!(discover(&deep.join("../..")).unwrap(), root.join(PROJECT_BUS));
    }

    #[test]
    fn a_path_implies_a_scope() {
        let scope = |project: &str, task: &str, run: &str| Scope {
            project_id: project.to_owned(),
            task_id: task.to_owned(),
            run_id: run.to_owned(),
        };
        assert_eq!(Scope::from_bus_path(Path::new("/r/p/t/TASK-MESSAGE-BUS.md")), scope("p", "t", ""));
        assert_eq!(Scope::from_bus_path(Path::new("/r/p/PROJECT-MESSAGE-BUS.md")), scope("p", "", ""));
        assert_eq!(Scope::from_bus_path(Path::new("/r/p/MESSAGE-BUS.md")), scope("p", "", ""));
        assert_eq!(Scope::from_bus_path(Path::new("/r/p/other.md")), Scope::default());
        assert_eq!(Scope::from_run_folder(Path::new("/r/p/t/runs/r1")), scope("p", "t", "r1"));
        assert_eq!(Scope::from_run_folder(Path::new("/r/p/t/elsewhere/r1")), Scope::default());
        assert_eq!(Scope::from_task_folder(Path::new("/r/p/t")), scope("p", "t", ""));
        assert_eq!(scope("", "t", "").or(scope("p", "x", "r")), scope("p", "t", "r"));
    }
}
