//! A fence around a folder: what is there is as outside, and what is made there is gone with the cell.
//!
//! Whoever may write into a folder may make any name in it, also one that matters only because it is there: a start file of
//! a shell. No mount can stand where nothing is, and making an empty file for it would itself change what the shell does.
//! So an empty folder of the cell's own is laid over the real one, and in it everything that the real one holds, each under
//! its name. Nothing that is made beside it reaches the real folder. What is there cannot be removed or replaced as a
//! whole, only written.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

/// Most things in a fenced folder; each of them is a mount.
const MOST: usize = 10_000;
/// What may be made in one, in bytes.
const SIZE: &str = "256m";

/// Builds one. A folder that is not there needs none.
pub(super) fn build(folder: &Path) -> io::Result<()> {
    let Ok(there) = std::fs::symlink_metadata(folder) else { return Ok(()) };
    if !there.is_dir() {
        return Ok(());
    }
    let names: Vec<_> = std::fs::read_dir(folder)?
        .take(MOST + 1)
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    if names.len() > MOST {
        return Err(io::Error::other(format!("there are more than {MOST} things in it")));
    }
    // The way to what is there, once something lies over it.
    let held = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let real = format!("/proc/self/fd/{}", held.as_raw_fd());
    let options = format!("mode={:o},size={SIZE}", there.mode() & 0o777);
    let options = std::ffi::CString::new(options)?;
    mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
    for name in names {
        // What cannot be brought over, or is gone already, is not there: the safe way to be wrong.
        let _ = bring_over(&Path::new(&real).join(&name), &folder.join(&name));
    }
    Ok(())
}

fn bring_over(from: &Path, to: &Path) -> io::Result<()> {
    let kind = std::fs::symlink_metadata(from)?;
    if kind.is_symlink() {
        return symlink(std::fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        std::fs::create_dir(to)?;
    } else {
        File::create(to)?;
    }
    Ok(mount_bind_recursive(from, to)?)
}
