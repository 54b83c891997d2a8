//! Which session a thread of a front end is, and what it was told to answer. A file, because both outlive the daemon:
//! the one who answers may come back a day later.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use swb_journal::registry::{Found, Registry};
use swb_proto::id::{ApprovalId, RunId, SessionId};

use crate::failure::Failure;

/// A conversation of a front end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thread {
    /// The client's name for it.
    pub(super) thread_id: String,
    /// What it is here.
    pub(super) session_id: SessionId,
    /// The last questions that it was told of. They stay when they were answered, so that the same answer may come twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<Waiting>,
}

/// A run that ended a stream with questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    /// Which run.
    pub(super) run_id: RunId,
    /// Where its next stream goes on.
    pub(super) after: u64,
    /// The questions.
    pub(super) interrupts: Vec<ApprovalId>,
    /// Calls that it was told of and whose results it was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<String>,
}

type Turn = tokio::sync::Mutex<()>;

/// All threads.
#[derive(Debug, Clone)]
pub(crate) struct Threads {
    registry: Arc<Mutex<Registry<Thread>>>,
    making: Arc<Mutex<HashMap<String, Arc<Turn>>>>,
}

impl Threads {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (registry, found) = Registry::open(path, |thread: &Thread| &thread.thread_id)?;
        if found != Found::default() {
            let Found { torn_bytes, damaged_lines } = found;
            tracing::warn!(path = %path.display(), torn_bytes, damaged_lines, "threads were cut short or damaged");
        }
        Ok(Threads { registry: Arc::new(Mutex::new(registry)), making: Arc::default() })
    }

    /// Held while a thread gets its session: two requests for a new one must not make two.
    pub(super) async fn turn(&self, thread_id: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever is at it holds its own.
            making.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(making.entry(thread_id.to_owned()).or_default())
        };
        turn.lock_owned().await
    }

    pub(super) fn get(&self, thread_id: &str) -> Option<Thread> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).get(thread_id).cloned()
    }

    /// Keeps a thread. When this returns, it is on disk.
    pub(super) async fn put(&self, thread: Thread) -> Result<(), Failure> {
        let registry = Arc::clone(&self.registry);
        let put = move || {
            let mut registry = registry.lock().unwrap_or_else(PoisonError::into_inner);
            if registry.get(&thread.thread_id) == Some(&thread) { Ok(()) } else { registry.put(thread) }
        };
        tokio::task::spawn_blocking(put)
            .await?
            .map_err(|error| Failure::internal("the thread cannot be kept", &error))
    }
}
