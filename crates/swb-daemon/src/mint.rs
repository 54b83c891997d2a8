//! The unique parts of ids that the daemon gives out.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use swb_proto::id::IdMint;
use ulid::Ulid;

/// Makes unique parts that only grow.
#[derive(Debug, Default)]
pub(crate) struct Mint(Mutex<IdMint>);

impl Mint {
    /// The unique part of a new id.
    pub(crate) fn unique(&self) -> Ulid {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next(now, || {
            let mut bytes = [0; 16];
            // Without randomness ids still differ: the mint counts.
            let _ = getrandom::fill(&mut bytes);
            u128::from_le_bytes(bytes)
        })
    }
}
