//! Requests that have no answer yet, by id: what `$/cancel` and a shutdown can reach.
//!
//! Sharded by id, so that callers on different threads seldom meet at one lock; each critical section is one hash-map
//! operation. An entry lives exactly as long as its [`Entry`] guard, which its caller holds.

use std::collections::hash_map;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::cancel::{CancelSignal, StopReason};
use crate::request_id::ById;

const SHARDS: usize = 16;
type Shard = Mutex<ById<CancelSignal>>;

#[derive(Debug, Default)]
pub(crate) struct InFlight {
    shards: [Shard; SHARDS],
    emptied: Notify,
}

impl InFlight {
    /// A place for the request; `None` if one with this id is in flight already.
    pub(crate) fn register(self: &Arc<Self>, id: Uuid) -> Option<Entry> {
        let id = id.as_u128();
        let signal = match lock(self.shard(id)).entry(id) {
            hash_map::Entry::Occupied(_) => return None,
            hash_map::Entry::Vacant(free) => free.insert(CancelSignal::new()).clone(),
        };
        Some(Entry { table: Arc::clone(self), id, signal, answered: false })
    }

    /// Asks the request to stop; false if it is unknown or already stopping.
    pub(crate) fn cancel(&self, id: Uuid) -> bool {
        let signal = lock(self.shard(id.as_u128())).get(&id.as_u128()).cloned();
        signal.is_some_and(|signal| signal.stop(StopReason::Cancelled))
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Asks every request to stop.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        for shard in &self.shards {
            let signals: Vec<_> = lock(shard).values().cloned().collect();
            for signal in signals {
                signal.stop(reason);
            }
        }
    }

    /// Returns once no request is in flight.
    pub(crate) async fn emptied(&self) {
        loop {
            let changed = self.emptied.notified();
            if self.len() == 0 {
                return;
            }
            changed.await;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "any bits of the id choose a shard")]
    fn shard(&self, id: u128) -> &Shard {
        &self.shards[(id >> 64) as usize % SHARDS]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing in here can panic half way, so a poisoned lock still guards a whole map.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of one request in the table. Dropped without an answer, it tells the handler that nobody waits any more.
#[derive(Debug)]
pub(crate) struct Entry {
    table: Arc<InFlight>,
    id: u128,
    pub(crate) signal: CancelSignal,
    answered: bool,
}

impl Entry {
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.answered {
            self.signal.stop(StopReason::CallerGone);
        }
        let now_empty = {
            let mut shard = lock(self.table.shard(self.id));
            shard.remove(&self.id);
            shard.is_empty()
        };
        if now_empty {
            // Only a shutdown waits for this; without a waiter it is one atomic load.
            self.table.emptied.notify_waiters();
        }
    }
}
