//! Frames on their way out.
//!
//! Senders append whole frames to one buffer; a thread writes it, as much at a time as there is. When the parent does
//! not read, the buffer fills up to its limit and senders wait, and with them the turn: memory stays bounded, and no
//! frame is lost or cut. When the parent has gone, every sender is told at once.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use swb_proto::agent::encode;
use tokio::sync::Notify;

/// Senders wait while more than this is pending.
const LIMIT: usize = 512 * 1024;

/// The parent does not listen any more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the parent has closed its end")]
pub(crate) struct Gone;

/// The sending end; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Output(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    /// The writer has taken what was pending, has finished, or has given up.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    writing: bool,
    /// How often the parent has taken what was there.
    writes: u64,
    gone: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    /// Starts writing to the file.
    pub(crate) fn start(file: File) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = file.try_clone()?;
        let (writer, watcher) = (Arc::clone(&shared), Arc::clone(&shared));
        std::thread::spawn(move || write(file, &writer));
        std::thread::spawn(move || {
            wait_for_reader_to_go(&watched);
            give_up(&watcher);
        });
        Ok(Output(shared))
    }

    /// Sends one frame, when there is room for it.
    pub(crate) async fn send(&self, frame: &(impl Serialize + Sync)) -> Result<(), Gone> {
        let mut line = Vec::new();
        // Our own words always have a JSON form.
        if encode(frame, &mut line).is_err() {
            return Ok(());
        }
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.0.state();
                if state.gone {
                    return Err(Gone);
                }
                if state.pending.len() < LIMIT {
                    state.pending.append(&mut line);
                    self.0.filled.notify_one();
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Sends one small frame at once, whether there is room for it or not. Only for what is rare.
    pub(crate) fn post(&self, frame: &impl Serialize) {
        let mut line = Vec::new();
        let mut state = self.0.state();
        if encode(frame, &mut line).is_ok() && !state.gone {
            state.pending.append(&mut line);
            self.0.filled.notify_one();
        }
    }

    /// Returns once the parent has gone.
    pub(crate) async fn gone(&self) {
        self.until(|state| state.gone).await;
    }

    /// Waits until everything is written, but not for ever.
    pub(crate) async fn flush(&self, patience: Duration) {
        let written = self.until(|state| state.gone || (state.pending.is_empty() && !state.writing));
        // A parent that does not read has no right to keep us.
        let _ = tokio::time::timeout(patience, written).await;
    }

    /// A number that grows whenever the parent has taken something.
    pub(crate) fn progress(&self) -> u64 {
        self.0.state().writes
    }

    async fn until(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if condition(&self.0.state()) {
                return;
            }
            changed.await;
        }
    }
}

fn write(mut file: File, shared: &Shared) {
    let mut taken = Vec::new();
    loop {
        {
            let mut state = shared.state();
            if std::mem::take(&mut state.writing) {
                state.writes += 1;
            }
            if state.pending.is_empty() {
                shared.changed.notify_waiters();
            }
            while state.pending.is_empty() && !state.gone {
                state = shared.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.gone {
                return;
            }
            taken.clear();
            std::mem::swap(&mut taken, &mut state.pending);
            state.writing = true;
        }
        shared.changed.notify_waiters();
        if file.write_all(&taken).is_err() {
            give_up(shared);
            return;
        }
        if taken.capacity() > LIMIT {
            // The room for one large frame is given back.
            taken = Vec::new();
        }
    }
}

fn give_up(shared: &Shared) {
    shared.state().gone = true;
    shared.filled.notify_all();
    shared.changed.notify_waiters();
}

fn wait_for_reader_to_go(file: &File) {
    let mut fds = [PollFd::new(file, PollFlags::empty())];
    loop {
        let woken = poll(&mut fds, None);
        if woken.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            return;
        }
    }
}
