//! One daemon per runtime folder.
//!
//! The lock is an flock on a file that is never removed: it is free the moment its holder dies, however it dies, and a
//! file that merely exists means nothing. A start that finds it taken waits a little, because a daemon that is just
//! ending (or just starting) settles within that time; if one answers on the socket, it is running.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// Held while the daemon lives.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    _file: File,
}

#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody else holds it.
    Taken,
    Io(io::Error),
}

impl DaemonLock {
    pub(crate) async fn take(path: &Path, socket: &Path) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).open(path).map_err(LockError::Io)?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(DaemonLock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
                Err(TryLockError::WouldBlock) if waited >= PATIENCE || is_served(socket) => {
                    return Err(LockError::Taken);
                }
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(PAUSE).await;
                    waited += PAUSE;
                }
            }
        }
    }
}

/// Whether somebody accepts connections on the socket.
pub(crate) fn is_served(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}
