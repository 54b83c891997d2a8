//! The agents' door: the control socket once more, in a folder that holds nothing else.
//!
//! A cell hides the folder of sockets and shows what an agent may reach. A socket that is shown by itself is that of one
//! daemon, and dead with it; a folder shows whatever lies in it now. So the socket has a second name here, and the cell is
//! shown the folder, to be looked at and not to be changed. The folder stays when the daemon goes: the cells that were
//! built around it hold on to this very one.

use std::io;
use std::path::PathBuf;

use crate::paths::Paths;
use crate::private_dir;

/// Gives the socket its second name, in place of the one that an earlier daemon has left.
pub(crate) fn open(paths: &Paths) -> io::Result<()> {
    private_dir::ensure(&paths.door()).map_err(io::Error::other)?;
    let new = paths.door().join(".new");
    remove(&new)?;
    std::fs::hard_link(paths.control_socket(), &new)?;
    std::fs::rename(&new, socket(paths))
}

/// Takes the second name away.
pub(crate) fn close(paths: &Paths) -> io::Result<()> {
    remove(&socket(paths))
}

/// The socket as it is seen through the door.
pub(crate) fn socket(paths: &Paths) -> PathBuf {
    paths.door().join("control.sock")
}

fn remove(path: &PathBuf) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn the_folder_stays_and_leads_to_the_newest_daemon() {
        let dir = tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").unwrap();
        let paths = Paths::under(dir.path());
        private_dir::ensure(&paths.sockets).unwrap();
        let mut folder = None;
        for _ in 0..3 {
            let _ = std::fs::remove_file(paths.control_socket());
            let listener = UnixListener::bind(paths.control_socket()).unwrap();
            // A daemon that was killed has not closed it.
            open(&paths).unwrap();
            let inode = std::fs::metadata(paths.door()).unwrap().ino();
            assert_eq!(*folder.get_or_insert(inode), inode);
            let _client = UnixStream::connect(socket(&paths)).unwrap();
            listener.accept().unwrap();
        }
        close(&paths).unwrap();
        close(&paths).unwrap();
        assert_eq!(std::fs::read_dir(paths.door()).unwrap().count(), 0);
    }
}
