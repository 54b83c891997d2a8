//! Rotation that loses nothing: the full file gets an archive name, and a fresh one takes its place in one step.
//!
//! Under the lock of the full file: the fresh file is made under a private name and locked; the full one gets its
//! archive name as a second name (a hard link, which never replaces anything); then the fresh one is renamed over the
//! bus. At every moment the bus exists and every message has a name. A crash in between leaves the archive name on the
//! live file; readers skip an archive that is the live file, and the next rotation uses the name it finds.
//! Writers that waited on the full file notice, after getting its lock, that the bus is another file now.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::folder::{Folder, OpenError, OpenErrorKind};
use super::identity::FileIdentity;
use super::lock;
use super::segment::{self, ArchiveStamp};
use super::timestamp::{Civil, Timestamp};

/// Archives the bus, whose lock the caller holds. Returns the fresh file, locked.
pub(super) fn rotate(
    folder: &Folder,
    side: &str,
    name: &str,
    full: &File,
    now: Timestamp,
) -> Result<File, OpenError> {
    let fail = |error: io::Error| OpenError { path: folder.path.join(name), kind: OpenErrorKind::Io(error) };
    let stat = rustix::fs::fstat(full).map_err(|errno| fail(errno.into()))?;
    let private = format!("{side}-fresh-{}", std::process::id());
    // A leftover of a crashed process with our number is nobody's.
    let _ = rustix::fs::unlinkat(folder, &private, AtFlags::empty());
    let fresh = folder.open_file(&private, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
    let placed = (|| {
        rustix::fs::fchmod(&fresh, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
        if !lock::try_exclusive(&fresh)? {
            return Err(Errno::WOULDBLOCK.into());
        }
        let archive = name_archive(folder, name, FileIdentity::from(&stat), now)?;
        rustix::fs::renameat(folder, &private, folder, name)?;
        Ok::<String, io::Error>(archive)
    })();
    match placed {
        Ok(archive) => {
            move_index(folder, side, name, &archive);
            Ok(fresh)
        }
        Err(error) => {
            let _ = rustix::fs::unlinkat(folder, &private, AtFlags::empty());
            Err(fail(error))
        }
    }
}

/// Gives the live file its archive name, and returns it.
fn name_archive(folder: &Folder, name: &str, live: FileIdentity, now: Timestamp) -> io::Result<String> {
    loop {
        let archives = segment::archives(folder, name)?;
        let newest = archives.last();
        if let Some(newest) = newest
            && newest.inode == live.inode
        {
            return Ok(newest.name.clone());
        }
        let newest = newest.and_then(|archive| ArchiveStamp::of(&archive.name, name));
        let archive = ArchiveStamp::after(newest.as_ref(), &second(now)).file_name(name);
        match rustix::fs::linkat(folder, name, folder, &archive, AtFlags::empty()) {
            Ok(()) => return Ok(archive),
            // Someone without our lock (a manual rotation) took the name: look again.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn second(now: Timestamp) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = now.to_utc().civil();
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The index follows its file; if it cannot, the next reader builds another.
fn move_index(folder: &Folder, side: &str, name: &str, archive: &str) {
    if let Ok(side) = folder.side(side, false) {
        let _ = rustix::fs::renameat(
            &side,
            super::index::file_name(name),
            &side,
            super::index::file_name(archive),
        );
    }
}
