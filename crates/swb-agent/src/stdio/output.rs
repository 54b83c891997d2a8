//! Frames on their way out.
//!
//! Senders write whole frames into one buffer; a thread writes it, as much at a time as there is. When the parent does
//! not read, the buffer fills up to its limit and senders wait, and with them the turn: memory stays bounded, and no
//! frame is lost or cut. When the parent has gone, every sender is told at once.
//!
//! Waking the writer costs more than making a frame. Whoever has many at once puts them in one by one and works
//! [`Output::in_bursts`]: the writer is woken when the work stops to wait for something, so a lone frame still goes out
//! at once, and a flood goes out in large pieces.

use std::fs::File;
use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use swb_proto::agent::encode;
use tokio::sync::Notify;

/// Senders wait while more than this is pending.
const LIMIT: usize = 512 * 1024;
/// So much is worth waking the writer for, even if there is more to come.
const BURST: usize = 32 * 1024;

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
    /// The writer sleeps until it is woken.
    asleep: bool,
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
        self.put(frame).await?;
        self.release();
        Ok(())
    }

    /// Puts one frame behind the others, when there is room for it. Only within [`Self::in_bursts`], which sees to it
    /// that it goes out.
    pub(crate) async fn put(&self, frame: &(impl Serialize + Sync)) -> Result<(), Gone> {
        if let Some(done) = self.try_put(frame) {
            return done;
        }
        loop {
            let changed = self.0.changed.notified();
            if let Some(done) = self.try_put(frame) {
                return done;
            }
            self.release();
            changed.await;
        }
    }

    /// Does the work; what it has put goes out whenever it waits for something, and at its end.
    pub(crate) async fn in_bursts<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            self.release();
            polled
        })
        .await
    }

    /// Sends one small frame at once, whether there is room for it or not. Only for what is rare.
    pub(crate) fn post(&self, frame: &impl Serialize) {
        {
            let mut state = self.0.state();
            if !state.gone {
                append(frame, &mut state.pending);
            }
        }
        self.release();
    }

    /// `None` if there is no room.
    fn try_put(&self, frame: &impl Serialize) -> Option<Result<(), Gone>> {
        let mut state = self.0.state();
        if state.gone {
            return Some(Err(Gone));
        }
        if state.pending.len() >= LIMIT {
            return None;
        }
        append(frame, &mut state.pending);
        if state.pending.len() >= BURST {
            self.wake(state);
        }
        Some(Ok(()))
    }

    /// Lets the writer have what is there.
    fn release(&self) {
        let state = self.0.state();
        if !state.pending.is_empty() {
            self.wake(state);
        }
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::take(&mut state.asleep) {
            // It wants the lock first of all.
            drop(state);
            self.0.filled.notify_one();
        }
    }

    /// Returns once the parent has gone.
    pub(crate) async fn gone(&self) {
        self.until(|state| state.gone).await;
    }

    /// Waits until everything is written, but not for ever.
    pub(crate) async fn flush(&self, patience: Duration) {
        self.release();
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
                state.asleep = true;
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

/// Our own words always have a JSON form; one that had none would leave no trace.
fn append(frame: &impl Serialize, pending: &mut Vec<u8>) {
    let _ = encode(frame, pending);
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, pipe};

    use super::*;

    fn output() -> (BufReader<std::io::PipeReader>, Output) {
        let (reader, writer) = pipe().unwrap();
        (BufReader::new(reader), Output::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap())
    }

    #[tokio::test]
    async fn what_was_put_goes_out_as_soon_as_the_work_waits() {
        let (mut reader, output) = output();
        let work = output.in_bursts(async {
            output.put(&1).await.unwrap();
            output.put(&2).await.unwrap();
            // For ever: nothing but the waiting itself can send them on their way.
            std::future::pending::<()>().await;
        });
        let read = tokio::task::spawn_blocking(move || {
            let mut lines = [0; 4];
            reader.read_exact(&mut lines).unwrap();
            lines
        });
        tokio::select! {
            () = work => unreachable!(),
            lines = read => assert_eq!(&lines.unwrap(), b"1\n2\n"),
        }
    }

    #[tokio::test]
    async fn a_flood_waits_for_the_reader_and_arrives_whole() {
        const COUNT: usize = 3 * LIMIT / 64;
        let (reader, output) = output();
        let word = "x".repeat(64);
        let flooding = output.in_bursts(async {
            for number in 0..COUNT {
                output.put(&(number, &word)).await.unwrap();
                assert!(output.0.state().pending.len() < LIMIT + 100, "memory is bounded");
            }
        });
        let reading = tokio::task::spawn_blocking(move || {
            reader
                .lines()
                .take(COUNT)
                .enumerate()
                .all(|(at, line)| line.unwrap().starts_with(&format!("[{at},")))
        });
        let ((), in_order) = tokio::join!(flooding, reading);
        assert!(in_order.unwrap());
    }
}
