//! Who has a session open: an advisory lock on its file, held as long as the file is.
//!
//! A list of sessions asks for the lock, too, to tell which are live, and holds it for a moment. So one that is taken is
//! asked for again before it counts as taken: a list never keeps an agent from starting.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

/// A list lets go within microseconds; even on a busy machine this is long.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// Why the lock was not taken.
#[derive(Debug)]
pub(super) enum LockError {
    InUse,
    Io(io::Error),
}

/// Takes the lock for as long as the file is open.
pub(super) fn take(file: &File) -> Result<(), LockError> {
    take_pausing(file, || std::thread::park_timeout(BETWEEN))
}

fn take_pausing(file: &File, mut pause: impl FnMut()) -> Result<(), LockError> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => pause(),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
    }
    Err(LockError::InUse)
}

/// Whether somebody holds the lock.
pub(super) fn is_held(file: &File) -> bool {
    let held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !held {
        // Closing the file would do the same a little later.
        let _ = file.unlock();
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_keeps_nobody_from_taking_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::options().append(true).create(true).open(dir.path().join("file")).unwrap();
        let (looking, taking) = (open(), open());
        looking.try_lock_shared().unwrap();
        take_pausing(&taking, || looking.unlock().unwrap()).unwrap();
        assert!(is_held(&looking));
        assert!(matches!(take_pausing(&looking, || ()), Err(LockError::InUse)));
        drop(taking);
        assert!(!is_held(&looking));
        take(&open()).unwrap();
    }
}
