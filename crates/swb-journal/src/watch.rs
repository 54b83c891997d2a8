//! File-change notification: one watcher per process, shared by all who follow files.
//!
//! The system allows a user few notification instances but many watches in each, so all followers share one instance
//! and subscribe to folders in it. Folders rather than files are watched, because a rotation or an editor puts another
//! file under the same name. Opening and reading are not changes; only what could bring a message wakes anyone.
//!
//! `notify` is used rather than inotify itself: it has the same latency here (one thread hand-over), covers macOS too,
//! and is the one place that would otherwise be written twice.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

type Waker = Box<dyn Fn() + Send + Sync>;

/// Tells one follower that something changed, or that it should stop.
#[derive(Default)]
pub struct Signal {
    state: Mutex<SignalState>,
    raised: Condvar,
    waker: Mutex<Option<Waker>>,
}

#[derive(Default)]
struct SignalState {
    changed: bool,
    stopped: bool,
}

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

impl Signal {
    /// Says that something changed.
    pub fn raise(&self) {
        lock(&self.state).changed = true;
        self.wake();
    }

    /// Says that the follower should stop.
    pub fn stop(&self) {
        lock(&self.state).stopped = true;
        self.wake();
    }

    /// Whether it should.
    pub fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Calls this too at every change: briefly, it is called on the thread of whoever changed something.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        *lock(&self.waker) = Some(Box::new(waker));
    }

    /// Forgets changes so far: whoever looks now sees them.
    pub fn clear(&self) {
        lock(&self.state).changed = false;
    }

    /// Returns at a change, a stop, or after the timeout; `false` for the last.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let state = lock(&self.state);
        let quiet = |state: &mut SignalState| !state.changed && !state.stopped;
        // Either way the caller looks again; a poisoned lock changes nothing about that.
        match timeout {
            Some(timeout) => {
                let (state, _) = self
                    .raised
                    .wait_timeout_while(state, timeout, quiet)
                    .unwrap_or_else(PoisonError::into_inner);
                state.changed || state.stopped
            }
            None => {
                drop(self.raised.wait_while(state, quiet));
                true
            }
        }
    }

    fn wake(&self) {
        self.raised.notify_all();
        if let Some(waker) = &*lock(&self.waker) {
            waker();
        }
    }
}

/// A follower's interest in a folder; ends when dropped.
#[derive(Debug)]
pub struct Subscription {
    folder: PathBuf,
    signal: Arc<Signal>,
}

/// Asks to be told about files in a folder whose names begin like this.
pub fn subscribe(folder: &Path, prefix: &str, signal: &Arc<Signal>) -> notify::Result<Subscription> {
    let hub = hub();
    // Entered first: an event between the two steps is then not missed.
    let interest = Interest { prefix: prefix.to_owned(), signal: Arc::clone(signal) };
    lock(&hub.interests).entry(folder.to_owned()).or_default().push(interest);
    let subscription = Subscription { folder: folder.to_owned(), signal: Arc::clone(signal) };
    let mut watcher = lock(&hub.watcher);
    if watcher.is_none() {
        *watcher = Some(notify::recommended_watcher(deliver)?);
    }
    if let Some(watcher) = watcher.as_mut() {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    drop(watcher);
    Ok(subscription)
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let hub = hub();
        let mut watcher = lock(&hub.watcher);
        let mut interests = lock(&hub.interests);
        let Some(folder) = interests.get_mut(&self.folder) else { return };
        if let Some(at) = folder.iter().position(|interest| Arc::ptr_eq(&interest.signal, &self.signal)) {
            folder.swap_remove(at);
        }
        if folder.is_empty() {
            interests.remove(&self.folder);
            // The watcher's thread may be waiting for this lock before it can take our request.
            drop(interests);
            if let Some(watcher) = watcher.as_mut() {
                // A folder that is gone is not watched any more anyway.
                let _ = watcher.unwatch(&self.folder);
            }
        }
    }
}

struct Hub {
    watcher: Mutex<Option<RecommendedWatcher>>,
    interests: Mutex<HashMap<PathBuf, Vec<Interest>>>,
}

struct Interest {
    prefix: String,
    signal: Arc<Signal>,
}

fn hub() -> &'static Hub {
    static HUB: OnceLock<Hub> = OnceLock::new();
    HUB.get_or_init(|| Hub { watcher: Mutex::default(), interests: Mutex::default() })
}

/// Runs on the watcher's thread; takes only the lock that nobody holds while asking the watcher for something.
#[expect(clippy::needless_pass_by_value, reason = "the shape of notify's handler")]
fn deliver(event: notify::Result<Event>) {
    let interests = lock(&hub().interests);
    match &event {
        Ok(event) if !event.need_rescan() => {
            if !is_change(event.kind) {
                return;
            }
            for path in &event.paths {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
                let in_folder = path.parent().and_then(|folder| interests.get(folder));
                for interest in
                    in_folder.into_iter().flatten().filter(|interest| name.starts_with(&interest.prefix))
                {
                    interest.signal.raise();
                }
                // The folder itself was moved or removed.
                for interest in interests.get(path).into_iter().flatten() {
                    interest.signal.raise();
                }
            }
        }
        // Events were lost: everybody looks.
        _ => interests.values().flatten().for_each(|interest| interest.signal.raise()),
    }
}

fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
