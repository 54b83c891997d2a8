//! The advisory lock on the bus file itself: `flock`, the same one every writer of this format takes.
//!
//! Attempts never block in the kernel, so a timeout needs no signal. A lock that is held is usually free again within
//! microseconds; the wait therefore starts very short and grows to the pace other writers use.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);
/// Takes the exclusive lock, or says that it was held all the time.
pub(super) fn exclusive(file: &File, timeout: Duration) -> io::Result<bool> {
    if attempt(file, FlockOperation::NonBlockingLockExclusive)? {
        return Ok(true);
    }
    let deadline = Instant::now() + timeout;
    let mut wait = FIRST_WAIT;
    loop {
        // Sleeping at once leaves the holder alone: it gets more done than it would with others pulling at the lock.
        std::thread::park_timeout(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
        if attempt(file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
    }
}

/// Gives the lock back.
pub(super) fn release(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::Unlock)?)
}

/// Whether no writer is at work right now.
pub(super) fn is_free(file: &File) -> io::Result<bool> {
    let free = attempt(file, FlockOperation::NonBlockingLockShared)?;
    if free {
        release(file)?;
    }
    Ok(free)
}

/// One attempt at the exclusive lock.
pub(super) fn try_exclusive(file: &File) -> io::Result<bool> {
    attempt(file, FlockOperation::NonBlockingLockExclusive)
}

fn attempt(file: &File, operation: FlockOperation) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_excludes_other_openings_until_released() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (ours, theirs) = (file.reopen().unwrap(), file.reopen().unwrap());
        assert!(exclusive(&ours, Duration::ZERO).unwrap());
        assert!(!exclusive(&theirs, Duration::from_millis(1)).unwrap());
        assert!(!is_free(&theirs).unwrap());
        release(&ours).unwrap();
        assert!(is_free(&theirs).unwrap());
        assert!(exclusive(&theirs, Duration::ZERO).unwrap());
    }
}
