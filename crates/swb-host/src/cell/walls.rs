//! What a cell hides, and what it leaves visible there.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, open, statvfs};
use rustix::mount::{MountFlags, mount, mount_bind_recursive, mount_remount};
use serde::{Deserialize, Serialize};

use super::fence;

/// The walls of a cell. Paths are absolute; those that do not exist are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Walls {
    /// Folders that are empty inside, and sockets and files that are nothing.
    pub hidden: Vec<PathBuf>,
    /// Places below hidden ones that are as outside.
    pub shown: Vec<PathBuf>,
    /// Files and folders that can be read but not changed.
    pub read_only: Vec<PathBuf>,
    /// Folders in which what is there can be used, and what is made is gone with the cell. One inside another comes after it.
    pub fenced: Vec<PathBuf>,
    /// Links that are made in hidden folders: where, and where to.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Walls {
    /// Takes away the fences that would keep what is made in this folder from staying: work is done there.
    pub fn leave_open(&mut self, folder: &Path) {
        self.fenced.retain(|fenced| !fenced.starts_with(folder));
    }

    /// Builds them in the mount namespace of this process.
    pub(super) fn build(&self) -> io::Result<()> {
        // Held open, because there is no way to them once their folders are hidden.
        let shown: Vec<(&Path, OwnedFd, bool)> = self
            .shown
            .iter()
            .filter_map(|path| {
                let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
                let is_folder = path.is_dir();
                Some((path.as_path(), place, is_folder))
            })
            .collect();
        for path in &self.fenced {
            fence::build(path).map_err(|error| named(path, error))?;
        }
        for path in &self.hidden {
            hide(path).map_err(|error| named(path, error))?;
        }
        for (path, place, is_folder) in &shown {
            show(path, place, *is_folder).map_err(|error| named(path, error))?;
        }
        for (path, target) in &self.links {
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| named(path, error))?;
            symlink(target, path).map_err(|error| named(path, error))?;
        }
        for path in &self.read_only {
            protect(path).map_err(|error| named(path, error))?;
        }
        for path in &self.hidden {
            // Not before: places to show things had to be made there.
            if path.is_dir() {
                let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                mount_remount(path, MountFlags::BIND | flags, "")
                    .map_err(|error| named(path, error.into()))?;
            }
        }
        Ok(())
    }
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn hide(path: &Path) -> io::Result<()> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if there.is_dir() {
        mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=0700,size=1m")?;
    } else if !there.is_symlink() {
        mount_bind_recursive("/dev/null", path)?;
    }
    Ok(())
}

fn show(path: &Path, place: &OwnedFd, is_folder: bool) -> io::Result<()> {
    if is_folder {
        std::fs::create_dir_all(path)?;
    } else {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        File::create(path)?;
    }
    mount_bind_recursive(format!("/proc/self/fd/{}", place.as_raw_fd()), path)?;
    Ok(())
}

fn protect(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    mount_bind_recursive(path, path)?;
    // What the mount forbids already stays forbidden; a namespace inside may not take it off.
    let forbids = statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let flags = kept
        .into_iter()
        .filter(|(there, _)| forbids.contains(*there))
        .fold(MountFlags::BIND | MountFlags::RDONLY, |flags, (_, kept)| flags | kept);
    mount_remount(path, flags, "")?;
    Ok(())
}
