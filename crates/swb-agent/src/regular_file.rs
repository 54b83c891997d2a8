//! Opening a regular file, and nothing else.
//!
//! A path names a place, and what stands there can change between two looks. So the file is pinned first, without
//! opening it for real (a device may act when it is opened, a FIFO waits for its other end), looked at, and then the
//! pinned file itself is opened. A link in the last place is refused: whoever follows links on purpose has done so
//! before, and judged where they led.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotUsable {
    #[error("it is a symbolic link")]
    Link,
    #[error("it is {0}, not a regular file")]
    Other(&'static str),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub(crate) struct RegularFile {
    pub(crate) file: File,
    pub(crate) size: u64,
}

impl RegularFile {
    /// Opens the file; never waits for anybody, and changes nothing.
    pub(crate) fn open(path: &Path) -> Result<Self, NotUsable> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        let file = {
            let pin = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let pinned = File::from(rustix::fs::open(path, pin, Mode::empty()).map_err(io::Error::from)?);
            check(&pinned.metadata()?)?;
            // The way through /proc is itself a link, and it leads to the pinned file only.
            rustix::fs::open(in_proc(&pinned), flags - OFlags::NOFOLLOW, Mode::empty())
        };
        #[cfg(not(target_os = "linux"))]
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Err(NotUsable::Link),
            file => file,
        };
        let file = File::from(file.map_err(io::Error::from)?);
        let metadata = file.metadata()?;
        check(&metadata)?;
        Ok(RegularFile { file, size: metadata.len() })
    }

    /// Where it lies, whatever names led to it.
    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(in_proc(&self.file))
    }
}

impl Read for RegularFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

fn in_proc(file: &impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

fn check(metadata: &Metadata) -> Result<(), NotUsable> {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    Err(if kind.is_file() {
        return Ok(());
    } else if kind.is_symlink() {
        NotUsable::Link
    } else if kind.is_dir() {
        NotUsable::Other("a folder")
    } else if kind.is_fifo() {
        NotUsable::Other("a pipe")
    } else if kind.is_socket() {
        NotUsable::Other("a socket")
    } else {
        NotUsable::Other("a device")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn refusal(path: &Path) -> String {
        RegularFile::open(path).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        symlink(&file, dir.path().join("link")).unwrap();
        symlink(dir.path(), dir.path().join("around")).unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        assert_eq!(refusal(&fifo), "it is a pipe, not a regular file");
        assert_eq!(refusal(&dir.path().join("link")), "it is a symbolic link");
        assert_eq!(refusal(&dir.path().join("socket")), "it is a socket, not a regular file");
        assert_eq!(refusal(dir.path()), "it is a folder, not a regular file");
        assert_eq!(refusal(Path::new("/dev/zero")), "it is a device, not a regular file");
        assert!(refusal(&dir.path().join("none")).contains("No such file"));
        let mut opened = RegularFile::open(&dir.path().join("around/file")).unwrap();
        let mut text = String::new();
        opened.file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), opened.size), ("x", 1));
        assert_eq!(opened.real_path().unwrap(), file.canonicalize().unwrap());
    }
}
