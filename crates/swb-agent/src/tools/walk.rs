//! The files below a folder, for `find` and `grep`: in order, without what is ignored, links not followed.
//!
//! What matches a glob is decided here and not by the walk, for which a match would outweigh `.gitignore`. The walk ends
//! when the call is aborted or has taken too long, and says so.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{Walk as Inner, WalkBuilder};

use super::ToolError;
use crate::cancel::Cancel;

/// A tree that takes longer is too large to be looked through.
const PATIENCE: Duration = Duration::from_secs(30);

/// A walk under way.
pub(super) struct Walk {
    inner: Inner,
    glob: Option<Override>,
    cancel: Cancel,
    deadline: Instant,
    /// How many folders and files could not be looked into.
    pub(super) unreadable: usize,
    /// It has ended before its end.
    pub(super) cut_short: bool,
}

/// Something that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// It is neither a folder, which is not found, nor a link, a pipe or a device.
    pub(super) is_file: bool,
}

impl Walk {
    /// Begins at a folder or a file; with a glob only what it matches is found.
    pub(super) fn new(root: &Path, glob: Option<&str>, cancel: Cancel) -> Result<Self, ToolError> {
        let metadata = std::fs::metadata(root).map_err(ToolError::io(root))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(ToolError::refused(format!("{} is neither a folder nor a file", root.display())));
        }
        let glob = match glob {
            None => None,
            Some(glob) => {
                let refused = |error: ignore::Error| ToolError::refused(error.to_string());
                let mut globs = OverrideBuilder::new(root);
                // A glob that says what is not wanted would find everything else.
                if glob.starts_with('!') {
                    return Err(ToolError::refused(
                        "a pattern says what is wanted: it cannot begin with `!`",
                    ));
                }
                globs.add(glob).map_err(refused)?;
                Some(globs.build().map_err(refused)?)
            }
        };
        let inner = WalkBuilder::new(root).sort_by_file_name(Ord::cmp).require_git(false).build();
        let deadline = Instant::now() + PATIENCE;
        Ok(Walk { inner, glob, cancel, deadline, unreadable: 0, cut_short: false })
    }

    /// Whether it is time to stop.
    pub(super) fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() > self.deadline
    }

    /// What the result says about what was not looked at; empty if everything was.
    pub(super) fn notes(&self) -> String {
        let mut notes = String::new();
        if self.unreadable > 0 {
            notes.push_str(&format!("[{} files or folders could not be read]\n", self.unreadable));
        }
        if self.cut_short {
            notes.push_str(&format!(
                "[stopped after {} seconds: name a smaller folder]\n",
                PATIENCE.as_secs()
            ));
        }
        notes
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if self.is_over() {
                self.cut_short = true;
                return None;
            }
            let entry = match self.inner.next()? {
                Ok(entry) => entry,
                Err(_) => {
                    self.unreadable += 1;
                    continue;
                }
            };
            let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else { continue };
            let path = entry.into_path();
            if self.glob.as_ref().is_none_or(|glob| glob.matched(&path, false).is_whitelist()) {
                return Some(Found { path, is_file: kind.is_file() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn found(root: &Path, glob: Option<&str>) -> Vec<String> {
        let walk = Walk::new(root, glob, Cancel::new()).unwrap();
        walk.map(|found| found.path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_glob_finds_nothing_that_is_ignored_and_loops_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a.rs", "b.txt", ".hidden.rs", "src/c.rs", "src/made.rs", "out/d.rs"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "out/\nmade.rs\n").unwrap();
        symlink(root, root.join("src/around")).unwrap();
        symlink("itself.rs", root.join("itself.rs")).unwrap();
        assert_eq!(found(root, Some("*.rs")), ["a.rs", "itself.rs", "src/c.rs"]);
        assert_eq!(found(root, Some("src/*")), ["src/around", "src/c.rs"]);
        assert_eq!(found(root, Some("src/**/*.rs")), ["src/c.rs"]);
        assert!(Walk::new(root, Some("!*.rs"), Cancel::new()).is_err());
        assert!(Walk::new(root, Some("a["), Cancel::new()).is_err());
        assert!(Walk::new(Path::new("/dev/zero"), None, Cancel::new()).is_err());
    }

    #[test]
    fn an_aborted_walk_ends() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        let cancel = Cancel::new();
        cancel.cancel();
        let mut walk = Walk::new(dir.path(), None, cancel).unwrap();
        assert!(walk.next().is_none() && walk.cut_short);
    }
}
