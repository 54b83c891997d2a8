//! How a bus is written and followed; the defaults are the format's own.

use std::time::Duration;

/// Settings of one opened bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusOptions {
    /// How long one attempt waits for the writer's lock.
    pub lock_timeout: Duration,
    /// How often a follower looks by itself when the system cannot tell it about changes.
    pub poll_interval: Duration,
    /// Attempts in total, the first included; only a lock timeout is tried again.
    pub max_retries: u32,
    /// The pause before the second attempt; it doubles with each further one.
    pub retry_backoff: Duration,
    /// Whether an append returns only after its bytes are on the disk.
    pub fsync: bool,
    /// Size from which the file is archived before the next append.
    pub auto_rotate: Option<u64>,
    /// Whether posting to a bus under a root makes its missing folders.
    pub create_folders: bool,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_millis(200),
            max_retries: 3,
            retry_backoff: Duration::from_millis(100),
            fsync: false,
            auto_rotate: None,
            create_folders: true,
        }
    }
}
