//! The only ways to open a file of a bus: never through a symlink, never anything but a regular file.
//!
//! Files are judged after opening (by descriptor), not before, so nothing can be swapped in between.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use super::identity::FileIdentity;

/// An open folder; names are looked up in it and nowhere else.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
}

impl Folder {
    /// Opens a regular file by its own name.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> Result<File, OpenError> {
        self.open_known(name, flags).map(|(file, ..)| file)
    }

    /// Opens a regular file by its own name, and says which one it is and how long.
    pub(super) fn open_known(
        &self,
        name: &str,
        flags: OFlags,
    ) -> Result<(File, FileIdentity, u64), OpenError> {
        let fail = |kind| OpenError { path: self.path.join(name), kind };
        // Without NONBLOCK a FIFO would block here before it can be refused.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o644)).map_err(|errno| {
            fail(match errno {
                Errno::LOOP => OpenErrorKind::Symlink,
                Errno::ISDIR | Errno::NXIO | Errno::NODEV => OpenErrorKind::NotRegular,
                errno => OpenErrorKind::Io(errno.into()),
            })
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| fail(OpenErrorKind::Io(errno.into())))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(fail(OpenErrorKind::NotRegular));
        }
        Ok((File::from(fd), FileIdentity::from(&stat), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// The folder of things kept beside a bus; made if wanted.
    pub(super) fn side(&self, name: &str, create: bool) -> Result<Self, OpenError> {
        let path = self.path.join(name);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(&self.fd, name, flags, Mode::empty());
        let fd = match open() {
            Err(Errno::NOENT) if create => {
                match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(errno) => Err(errno),
                }
            }
            other => other,
        };
        let fd = fd.map_err(|errno| OpenError::new(&path, errno))?;
        Ok(Self { fd, path })
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Why a file or folder of a bus was not opened.
#[derive(Debug, Error)]
#[error("cannot open {}", path.display())]
pub struct OpenError {
    /// What was to be opened.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub kind: OpenErrorKind,
}

impl OpenError {
    pub(super) fn new(path: &Path, errno: Errno) -> Self {
        let kind = match errno {
            Errno::LOOP => OpenErrorKind::Symlink,
            Errno::NOTDIR => OpenErrorKind::NotAFolder,
            errno => OpenErrorKind::Io(errno.into()),
        };
        Self { path: path.to_owned(), kind }
    }

    /// Whether it is just not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&self.kind, OpenErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// What was wrong with a file or folder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// A symbolic link where none is followed.
    #[error("is a symlink")]
    Symlink,
    /// A folder, FIFO, device or socket.
    #[error("is not a regular file")]
    NotRegular,
    /// A file where a folder should be.
    #[error("is not a folder")]
    NotAFolder,
    /// The system said no.
    #[error("the system refused")]
    Io(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_bus::BusPath;
    use rustix::fs::CWD;
    use std::os::unix::fs::symlink;

    fn kind(result: Result<File, OpenError>) -> OpenErrorKind {
        result.unwrap_err().kind
    }

    #[test]
    fn symlinks_fifos_and_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("real"), "x").unwrap();
        symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        rustix::fs::mknodat(CWD, dir.path().join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let folder = BusPath::new(dir.path().join("real")).unwrap().open_folder().unwrap();
        for flags in [OFlags::RDONLY, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE] {
            assert!(folder.open_file("real", flags).is_ok());
            assert!(matches!(kind(folder.open_file("link", flags)), OpenErrorKind::Symlink));
            assert!(matches!(kind(folder.open_file("folder", flags)), OpenErrorKind::NotRegular));
            assert!(matches!(kind(folder.open_file("fifo", flags)), OpenErrorKind::NotRegular));
        }
    }
}
