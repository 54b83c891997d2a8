//! Where a bus file is.
//!
//! A path is either given directly, or made of names under a root. In the second case the folders are walked one by
//! one without following links, so no link planted inside the root leads out of it.
//!
//! Everything we keep beside a bus lives in one hidden folder next to it, `.<file name>.swb/`.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use super::folder::{Folder, OpenError, OpenErrorKind};
use super::layout;

/// The bus of a project.
pub const PROJECT_BUS: &str = "PROJECT-MESSAGE-BUS.md";
/// The bus of a task.
pub const TASK_BUS: &str = "TASK-MESSAGE-BUS.md";
/// A bus of neither.
pub const PLAIN_BUS: &str = "MESSAGE-BUS.md";

/// The place of one bus file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusPath {
    folder: PathBuf,
    name: String,
    file: PathBuf,
    /// How many of `folder`'s last components must be real folders, not links.
    confined: usize,
    /// The names it was found by, if it lies under a root.
    named: Option<Arc<Named>>,
}

/// A project, or a task of it, under a root.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    root: PathBuf,
    project: String,
    task: Option<String>,
}

impl BusPath {
    /// A bus at this path; a relative one is taken from the current folder.
    ///
    /// # Errors
    /// If the path names no file, or the current folder is not known.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, BusPathError> {
        let given = path.as_ref();
        let not_a_file = || BusPathError::NotAFile { path: given.to_owned() };
        let path = std::path::absolute(given).map_err(|source| BusPathError::CurrentFolder { source })?;
        let name = path.file_name().and_then(OsStr::to_str).ok_or_else(not_a_file)?.to_owned();
        if !matches!(given.components().next_back(), Some(Component::Normal(_))) {
            return Err(not_a_file());
        }
        let folder = path.parent().ok_or_else(not_a_file)?.to_owned();
        Ok(Self { folder, name, file: path, confined: 0, named: None })
    }

    /// The bus of a project, or of one of its tasks, under a root it cannot leave: where it lies already, or where it
    /// would be made. Looks at the disk to tell (`layout` has the rules); for a bus in its usual place that is one look.
    ///
    /// # Errors
    /// If a name is blank or could mean another folder.
    pub fn in_root(root: impl AsRef<Path>, project: &str, task: Option<&str>) -> Result<Self, BusPathError> {
        let root =
            std::path::absolute(root.as_ref()).map_err(|source| BusPathError::CurrentFolder { source })?;
        let project = checked_name("project", project)?.to_owned();
        let task = task.map(|task| checked_name("task", task).map(str::to_owned)).transpose()?;
        Ok(Self::find(Arc::new(Named { root, project, task })))
    }

    fn find(named: Arc<Named>) -> Self {
        let below = layout::find(&named.root, &named.project, named.task.as_deref());
        let folder = named.root.join(&below);
        let name = if named.task.is_some() { TASK_BUS } else { PROJECT_BUS };
        let confined = below.components().count();
        Self { file: folder.join(name), folder, name: name.to_owned(), confined, named: Some(named) }
    }

    /// Whether it lies right below its root, where a bus is made if nothing else is known of it.
    #[must_use]
    pub fn is_in_usual_place(&self) -> bool {
        let usual = |named: &Arc<Named>| 1 + usize::from(named.task.is_some());
        self.named.as_ref().is_some_and(|named| self.confined == usual(named))
    }

    /// Where the bus lies now, if its folder is not there and another layout has one for the same names.
    pub(super) fn moved(&self) -> Option<Self> {
        let named = self.named.as_ref().filter(|_| !layout::is_there(&self.folder))?;
        Some(Self::find(Arc::clone(named))).filter(|found| found.folder != self.folder)
    }

    /// The file's path.
    #[must_use]
    pub fn to_path_buf(&self) -> PathBuf {
        self.file.clone()
    }

    /// The file's path, borrowed.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder the file is in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the folder with everything kept beside the file.
    pub(super) fn side_name(&self) -> String {
        format!(".{}.swb", self.name)
    }

    /// Makes the folders of a bus under a root; the root itself must exist. A direct path is left alone.
    ///
    /// # Errors
    /// If a folder cannot be made or is not a folder.
    pub fn create_folders(&self) -> Result<(), OpenError> {
        self.walk(true).map(drop)
    }

    pub(super) fn open_folder(&self) -> Result<Folder, OpenError> {
        self.walk(false)
    }

    fn walk(&self, create: bool) -> Result<Folder, OpenError> {
        let fail = |errno| OpenError::new(&self.folder, errno);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        if self.confined == 0 {
            let fd = rustix::fs::openat(CWD, &self.folder, flags, Mode::empty()).map_err(fail)?;
            return Ok(Folder { fd, path: self.folder.clone() });
        }
        let components: Vec<_> = self.folder.components().collect();
        let (trusted, checked) = components.split_at(components.len() - self.confined);
        let trusted: PathBuf = trusted.iter().collect();
        let mut fd = rustix::fs::openat(CWD, &trusted, flags, Mode::empty()).map_err(fail)?;
        for component in checked {
            let name = component.as_os_str();
            if create {
                match rustix::fs::mkdirat(&fd, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(fail(errno)),
                }
            }
            fd = match rustix::fs::openat(&fd, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(fd) => fd,
                // Linux answers "not a directory" for a link when both flags are set.
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    let link = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                    let kind = if link { OpenErrorKind::Symlink } else { OpenErrorKind::NotAFolder };
                    return Err(OpenError { path: self.folder.clone(), kind });
                }
                Err(errno) => return Err(fail(errno)),
            };
        }
        Ok(Folder { fd, path: self.folder.clone() })
    }
}

fn checked_name<'a>(which: &'static str, name: &'a str) -> Result<&'a str, BusPathError> {
    if name.trim().is_empty() {
        return Err(BusPathError::BlankName { which });
    }
    if name == "." || name.contains("..") || name.contains(['/', '\\', '\0']) {
        return Err(BusPathError::EscapingName { which, name: name.to_owned() });
    }
    Ok(name)
}

/// Why a text names no bus.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BusPathError {
    /// A folder, the root, or nothing.
    #[error("{} does not name a file", path.display())]
    NotAFile {
        /// As given.
        path: PathBuf,
    },
    /// An empty name.
    #[error("the {which} name is blank")]
    BlankName {
        /// Project or task.
        which: &'static str,
    },
    /// A name that could lead elsewhere.
    #[error("the {which} name {name:?} could leave its folder")]
    EscapingName {
        /// Project or task.
        which: &'static str,
        /// As given.
        name: String,
    },
    /// Relative paths cannot be resolved.
    #[error("the current folder is not known")]
    CurrentFolder {
        /// From the system.
        #[source]
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_linked_project_folder_does_not_lead_out_of_the_root() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("p")).unwrap();
        let bus = BusPath::in_root(root.path(), "p", None).unwrap();
        assert!(matches!(bus.open_folder().unwrap_err().kind, OpenErrorKind::Symlink));
        assert!(matches!(bus.create_folders().unwrap_err().kind, OpenErrorKind::Symlink));
    }

    #[test]
    fn names_that_could_leave_the_root_are_refused() {
        for name in ["..", "../x", "a/b", "a\\b", "x..y", ".", "a\0b"] {
            assert!(
                matches!(BusPath::in_root("/r", name, None), Err(BusPathError::EscapingName { .. })),
                "{name:?}"
            );
            assert!(matches!(
                BusPath::in_root("/r", "p", Some(name)),
                Err(BusPathError::EscapingName { .. })
            ));
        }
        assert!(matches!(
            BusPath::in_root("/r", " ", None),
            Err(BusPathError::BlankName { which: "project" })
        ));
        let path = BusPath::in_root("/r", "my project", Some("t")).unwrap().to_path_buf();
        assert_eq!(path, Path::new("/r/my project/t/TASK-MESSAGE-BUS.md"));
        assert!(matches!(BusPath::new("x/.."), Err(BusPathError::NotAFile { .. })));
    }
}
