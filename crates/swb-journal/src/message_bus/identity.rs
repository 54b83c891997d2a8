//! Which file it is, whatever it is called now: its device and its inode.
//!
//! Every append and every look at a kept file asks this of a path, so the question is put as cheaply as the system
//! allows (`statx` for two facts); where it does not allow that, in the old way. Proof: the tests below.

use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

/// Device and inode: what a file is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileIdentity {
    /// Which file has this path now, a link being itself, and how long it is.
    ///
    /// Its times are not asked for: newer kernels owe whoever has seen them a finer one, so that the next write would
    /// have to change the inode as well.
    #[cfg(target_os = "linux")]
    pub(super) fn at(path: &Path) -> Result<(Self, u64), Errno> {
        use rustix::fs::{StatxFlags, makedev, statx};
        let wanted = StatxFlags::INO | StatxFlags::SIZE;
        match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted) {
            Ok(seen) => {
                let device = makedev(seen.stx_dev_major, seen.stx_dev_minor);
                Ok((Self { device, inode: seen.stx_ino }, seen.stx_size))
            }
            // A kernel, or a sandbox, that is older than the question.
            Err(Errno::NOSYS | Errno::PERM) => Self::at_with_times(path),
            Err(errno) => Err(errno),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn at(path: &Path) -> Result<(Self, u64), Errno> {
        Self::at_with_times(path)
    }

    fn at_with_times(path: &Path) -> Result<(Self, u64), Errno> {
        let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((Self::from(&stat), u64::try_from(stat.st_size).unwrap_or(0)))
    }
}

impl From<&rustix::fs::Stat> for FileIdentity {
    fn from(stat: &rustix::fs::Stat) -> Self {
        #[expect(clippy::useless_conversion, reason = "the fields are narrower on other systems")]
        Self { device: u64::from(stat.st_dev), inode: u64::from(stat.st_ino) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_the_same_however_it_is_asked_about() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("real");
        std::fs::write(&path, "four").unwrap();
        let stat = rustix::fs::stat(&path).unwrap();
        assert_eq!(FileIdentity::at(&path), Ok((FileIdentity::from(&stat), 4)));
        assert_eq!(FileIdentity::at(&path), FileIdentity::at_with_times(&path));
        symlink(&path, dir.path().join("link")).unwrap();
        assert_ne!(FileIdentity::at(&dir.path().join("link")), FileIdentity::at(&path));
        assert_eq!(FileIdentity::at(&dir.path().join("none")), Err(Errno::NOENT));
    }
}
