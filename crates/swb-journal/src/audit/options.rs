//! How a log is written.

use std::time::Duration;

/// When an append counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// In the file: it outlives the process, however that ends. The caller writes, together with whoever waits.
    #[default]
    Written,
    /// On the disk: it outlives a power cut. A thread of the log writes and syncs for all who wait.
    Synced,
}

/// How a log is written. The defaults suit the daemon.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// When an append counts as done.
    pub durability: Durability,
    /// A segment that would grow beyond this is followed by the next one.
    pub segment_bytes: u64,
    /// So is one that was begun this long ago, because only whole segments can be purged.
    pub segment_age: Duration,
    /// How many bytes may wait to be written. Beyond it a start or an event is refused; an end never is, because what has
    /// been done must be recorded, and there are no more ends than starts that were let in.
    pub queue_bytes: usize,
    /// Go on in a new segment if the last one is damaged, instead of refusing. The damage stays and `verify` shows it.
    pub accept_damage: bool,
}

impl Default for AuditOptions {
    fn default() -> Self {
        AuditOptions {
            durability: Durability::default(),
            segment_bytes: 16 << 20,
            segment_age: Duration::from_secs(24 * 60 * 60),
            queue_bytes: 16 << 20,
            accept_damage: false,
        }
    }
}
