//! The buses under the root, opened. An open one keeps its file between posts, which makes a post several times cheaper;
//! which ones are open is forgotten freely.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swb_journal::message_bus::{AppendErrorKind, Appended, BusOptions, BusPath, Draft, MessageBus};
use tokio::task::spawn_blocking;

use crate::failure::Failure;
use crate::messages::Scope;

/// Each holds a few descriptors.
const MOST_OPEN: usize = 64;

#[derive(Debug)]
pub(crate) struct Buses {
    root: PathBuf,
    open: Mutex<HashMap<Scope, Arc<OpenBus>>>,
}

/// One bus, opened twice: for work that may take its time, and for a post that must not.
#[derive(Debug)]
struct OpenBus {
    patient: Arc<MessageBus>,
    quick: MessageBus,
    /// A post went through: the folders are there and the end of the file was in order.
    known: AtomicBool,
}

impl Buses {
    pub(crate) fn new(root: &Path) -> Self {
        Buses { root: root.to_owned(), open: Mutex::default() }
    }

    /// The bus, for reading.
    pub(crate) fn get(&self, scope: &Scope) -> Result<Arc<MessageBus>, Failure> {
        Ok(Arc::clone(&self.open(scope)?.patient))
    }

    /// Posts a message; gives the draft back.
    ///
    /// An append to a bus in order takes microseconds: less than handing it to another thread and waiting for that, which
    /// is two wake-ups. So it is tried here first. Whatever could take longer is done elsewhere: the first post, a search
    /// for an earlier one, and waiting for a lock that somebody holds.
    pub(crate) async fn append(&self, scope: &Scope, draft: Draft) -> Result<(Appended, Draft), Failure> {
        let open = self.open(scope)?;
        if open.known.load(Ordering::Relaxed) && draft.idempotency_key.is_none() {
            match open.quick.append(&draft) {
                Err(error) if matches!(error.kind, AppendErrorKind::LockTimeout { .. }) => {}
                done => return Ok((done?, draft)),
            }
        }
        let done = spawn_blocking(move || {
            let appended = open.patient.append(&draft)?;
            open.known.store(true, Ordering::Relaxed);
            Ok::<_, Failure>((appended, draft))
        });
        done.await?
    }

    fn open(&self, scope: &Scope) -> Result<Arc<OpenBus>, Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bus) = open.get(scope) {
            return Ok(Arc::clone(bus));
        }
        let path = BusPath::in_root(&self.root, scope.project(), scope.task())
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        if open.len() >= MOST_OPEN {
            open.retain(|_, bus| Arc::strong_count(bus) > 1);
        }
        let impatient = BusOptions { lock_timeout: Duration::ZERO, max_retries: 1, ..BusOptions::default() };
        let bus = Arc::new(OpenBus {
            patient: Arc::new(MessageBus::new(path.clone(), BusOptions::default())),
            quick: MessageBus::new(path, impatient),
            known: AtomicBool::new(false),
        });
        open.insert(scope.clone(), Arc::clone(&bus));
        Ok(bus)
    }
}
