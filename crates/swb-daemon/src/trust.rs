//! Trust in what a project would have run.
//!
//! A project's files may name programs: MCP servers, agents, hooks. Whoever wrote them is not the user, so they are inert
//! until the user has trusted them as they are. What is kept is the hash of each file's bytes: after any change it is
//! another file, and inert again. What is trusted is exactly what was read, since the same bytes are hashed and used.
//!
//! The book lies among the user's state, never in a project: one JSON file, 0600, replaced as a whole under a lock.
//! Invariants: a book that cannot be read trusts nothing, and is not written over.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use swb_policy::rule_folder::read_plain;
use swb_proto::Timestamp;

use crate::private_dir;

/// Files of a project that may name programs, relative to its root.
pub const FILES: [&str; 3] = [".switchboard/config.toml", ".switchboard/mcp.json", ".mcp.json"];

/// Largest such file.
const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Largest book.
const MAX_BOOK_BYTES: usize = 16 * 1024 * 1024;

/// How a file stands with the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// It is as it was when it was trusted.
    Trusted,
    /// It was trusted, and is another one now.
    Changed,
    /// It was never trusted.
    Unknown,
}

/// What a user has trusted.
#[derive(Debug)]
pub struct TrustBook {
    path: PathBuf,
    projects: BTreeMap<String, Trusted>,
}

/// A project as it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// When.
    pub trusted_at: Timestamp,
    /// The hash of each file.
    pub files: BTreeMap<String, String>,
}

/// A file of a project that may name programs.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    /// Its name relative to the root.
    pub name: &'static str,
    /// What stands in it.
    pub bytes: Vec<u8>,
}

/// Why the book or a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The book could not be read or written.
    #[error("the record of trust cannot be used: {}", path.display())]
    Book {
        /// Where it is.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// A file of the project cannot be read.
    #[error("{name} cannot be read")]
    File {
        /// Which one.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The name of the folder is not text.
    #[error("the path of the project is not UTF-8")]
    NotText,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Page {
    version: u32,
    #[serde(default)]
    projects: BTreeMap<String, Trusted>,
}

impl TrustBook {
    /// Reads the book. One that does not exist trusts nothing.
    pub fn open(path: &Path) -> Result<Self, TrustError> {
        let failed = |source| TrustError::Book { path: path.to_owned(), source };
        let projects = match File::open(path) {
            Ok(file) => {
                let (_, bytes) =
                    read_plain(&file, MAX_BOOK_BYTES).map_err(|unfit| failed(io::Error::other(unfit)))?;
                let page: Page = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
                page.projects
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        Ok(TrustBook { path: path.to_owned(), projects })
    }

    /// A book that trusts nothing.
    #[must_use]
    pub fn empty() -> Self {
        TrustBook { path: PathBuf::new(), projects: BTreeMap::new() }
    }

    /// How these bytes of a file stand.
    #[must_use]
    pub fn trust(&self, root: &Path, name: &str, bytes: &[u8]) -> Trust {
        let known = root.to_str().and_then(|root| self.projects.get(root)?.files.get(name));
        match known {
            Some(hash) if *hash == hash_of(bytes) => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Unknown,
        }
    }

    /// The projects, by their roots.
    pub fn projects(&self) -> impl Iterator<Item = (&Path, &Trusted)> {
        self.projects.iter().map(|(root, trusted)| (Path::new(root), trusted))
    }

    /// Trusts these files of a project, as they are, and no others of it.
    pub fn add(&mut self, root: &Path, files: &[ProjectFile], now: Timestamp) -> Result<(), TrustError> {
        let root = root.to_str().ok_or(TrustError::NotText)?.to_owned();
        let files = files.iter().map(|file| (file.name.to_owned(), hash_of(&file.bytes))).collect();
        self.change(|projects| drop(projects.insert(root, Trusted { trusted_at: now, files })))
    }

    /// Takes the trust in a project back; whether there was any.
    pub fn revoke(&mut self, root: &Path) -> Result<bool, TrustError> {
        let root = root.to_str().ok_or(TrustError::NotText)?.to_owned();
        let mut was_there = false;
        self.change(|projects| was_there = projects.remove(&root).is_some())?;
        Ok(was_there)
    }

    /// Changes the book as it is now on disk: another process may have written since it was read.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, Trusted>)) -> Result<(), TrustError> {
        let failed = |source| TrustError::Book { path: self.path.clone(), source };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        private_dir::ensure(folder).map_err(|error| failed(io::Error::other(error)))?;
        let private =
            |path: &Path| OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        let lock = private(&self.path.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut projects = Self::open(&self.path)?.projects;
        change(&mut projects);
        let new = self.path.with_extension("new");
        let write = || {
            let page = serde_json::to_vec_pretty(&Page { version: 1, projects: projects.clone() })?;
            let mut file = private(&new)?;
            file.write_all(&page)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(failed)?;
        self.projects = projects;
        Ok(())
    }
}

/// The files of a project that may name programs. A link is none of them: what it leads to is not the project's.
pub fn project_files(root: &Path) -> Result<Vec<ProjectFile>, TrustError> {
    let mut files = Vec::new();
    for name in FILES {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(CWD, root.join(name), flags, Mode::empty()).map_err(io::Error::from) {
            Ok(file) => {
                let (_, bytes) = read_plain(&File::from(file), MAX_FILE_BYTES)
                    .map_err(|unfit| TrustError::File { name, source: io::Error::other(unfit) })?;
                files.push(ProjectFile { name, bytes });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(source) => return Err(TrustError::File { name, source }),
        }
    }
    Ok(files)
}

fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_system_time(std::time::SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn what_was_trusted_is_trusted_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (book, root) = (dir.path().join("state/trust.json"), dir.path().join("project"));
        std::fs::create_dir_all(root.join(".switchboard")).unwrap();
        std::fs::write(root.join(".switchboard/config.toml"), "one").unwrap();
        let files = project_files(&root).unwrap();
        assert_eq!(files.iter().map(|file| file.name).collect::<Vec<_>>(), [".switchboard/config.toml"]);
        let mut trust = TrustBook::open(&book).unwrap();
        let name = files[0].name;
        assert_eq!(trust.trust(&root, name, b"one"), Trust::Unknown);
        trust.add(&root, &files, now()).unwrap();
        let again = TrustBook::open(&book).unwrap();
        assert_eq!(again.trust(&root, name, b"one"), Trust::Trusted);
        assert_eq!(again.trust(&root, name, b"two"), Trust::Changed);
        assert_eq!(again.trust(&root, ".mcp.json", b"one"), Trust::Unknown, "each file for itself");
        assert_eq!(again.trust(dir.path(), name, b"one"), Trust::Unknown, "in another project it is another");
        assert_eq!(std::fs::metadata(&book).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(trust.revoke(&root).unwrap() && !trust.revoke(&root).unwrap());
        assert_eq!(TrustBook::open(&book).unwrap().trust(&root, name, b"one"), Trust::Unknown);
    }

    #[test]
    fn two_who_write_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/trust.json");
        let (mut one, mut other) = (TrustBook::open(&path).unwrap(), TrustBook::open(&path).unwrap());
        one.add(Path::new("/a"), &[], now()).unwrap();
        other.add(Path::new("/b"), &[], now()).unwrap();
        assert_eq!(TrustBook::open(&path).unwrap().projects().count(), 2);
    }

    #[test]
    fn a_damaged_book_trusts_nothing_and_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trust.json");
        for damage in ["", "{", "[]", "{\"version\":1,\"projects\":3}"] {
            std::fs::write(&path, damage).unwrap();
            assert!(matches!(TrustBook::open(&path), Err(TrustError::Book { .. })), "{damage}");
            let mut stale = TrustBook { path: path.clone(), projects: BTreeMap::new() };
            assert!(stale.add(Path::new("/a"), &[], now()).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), damage);
        }
    }

    #[test]
    fn links_pipes_and_floods_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".mcp.json");
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(project_files(dir.path()).is_err());
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, vec![b' '; MAX_FILE_BYTES + 1]).unwrap();
        assert!(project_files(dir.path()).is_err());
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(CWD, &file, rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
        assert!(project_files(dir.path()).is_err());
    }
}
