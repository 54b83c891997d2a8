//! A tail and its ring: one thread per followed file, whatever the number of readers; it ends with the last of them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use swb_journal::message_bus::{FollowFrom, Follower, MessageBus, ReadError};
use tokio::sync::watch;

use super::frame::{self, Frames};
use super::history;
use super::pace::Pace;
use super::ring::{Ring, Taken};
use crate::metrics::Metrics;

/// A tail formats and waits; it needs no more.
const STACK_BYTES: usize = 256 * 1024;

/// One followed file.
#[derive(Debug)]
pub(super) struct Feed {
    ring: Mutex<Ring>,
    news: watch::Sender<News>,
    /// Looks at the file that the tail has begun, and the last one that reached the end.
    begun: AtomicU64,
    done: watch::Sender<u64>,
    /// Wakes the tail.
    wake: SyncSender<()>,
    hasher: RandomState,
}

/// What readers are woken for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct News {
    /// The number of the next frame.
    pub(super) head: u64,
    /// There will be no more.
    pub(super) ended: bool,
}

/// Why a file is not followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no thread for it.
    #[error("no thread can be started")]
    Thread(#[source] io::Error),
}

impl Feed {
    /// Begins to follow a file at its end.
    pub(super) fn start(bus: &MessageBus, metrics: &Arc<Metrics>) -> Result<Arc<Self>, FeedError> {
        let mut follower = bus.follow(&FollowFrom::End)?;
        let (wake, woken) = mpsc::sync_channel(1);
        let waker = wake.clone();
        follower.set_waker(move || raise(&waker));
        let feed = Arc::new(Feed {
            ring: Mutex::default(),
            news: watch::Sender::default(),
            begun: AtomicU64::new(0),
            done: watch::Sender::default(),
            wake,
            hasher: RandomState::new(),
        });
        let tail = Tail { follower, woken, feed: Arc::downgrade(&feed), metrics: Arc::clone(metrics) };
        std::thread::Builder::new()
            .name("swb-tail".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || tail.run())
            .map_err(FeedError::Thread)?;
        Ok(feed)
    }

    pub(super) fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    pub(super) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// The number of the next frame. Whatever was numbered before this call is in the file already.
    pub(super) fn head(&self) -> u64 {
        self.ring().head()
    }

    pub(super) fn take(&self, number: u64) -> Taken {
        self.ring().take(number)
    }

    /// The number after the message with this id, if the ring still has it.
    pub(super) fn after_id(&self, id: &str) -> Option<u64> {
        let id = self.hasher.hash_one(id);
        self.ring().after(|mark| mark.id == Some(id))
    }

    /// The number after this frame, if the ring still has it. All of one is compared, or the id if that is all there is.
    pub(super) fn after_frame(&self, frame: &[u8]) -> Option<u64> {
        if !frame.ends_with(b"\n\n") {
            return frame::id_of(frame).and_then(|id| self.after_id(id));
        }
        let whole = self.hasher.hash_one(frame);
        self.ring().after(|mark| mark.whole == whole)
    }

    /// Returns once the ring has whatever was in the file when this was called.
    pub(super) async fn caught_up(&self) {
        let next = self.begun.load(Ordering::Acquire) + 1;
        let mut done = self.done.subscribe();
        raise(&self.wake);
        // The sender is ours, so it is there.
        let _ = done.wait_for(|done| *done >= next).await;
    }

    /// Ends every stream of this file.
    pub(super) fn end(&self) {
        self.news.send_modify(|news| news.ended = true);
        // Nobody waits for a look that will not come.
        self.done.send_replace(u64::MAX);
        raise(&self.wake);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.news.borrow().ended
    }

    fn publish(&self, frames: Frames) {
        let head = {
            let mut ring = self.ring();
            ring.push(frames);
            ring.head()
        };
        self.news.send_modify(|news| news.head = head);
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        raise(&self.wake);
    }
}

/// A wake-up that is already waiting is as good as another.
fn raise(wake: &SyncSender<()>) {
    match wake.try_send(()) {
        Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
    }
}

struct Tail {
    follower: Follower,
    woken: mpsc::Receiver<()>,
    feed: Weak<Feed>,
    metrics: Arc<Metrics>,
}

impl Tail {
    fn run(mut self) {
        let mut look = 0;
        let mut pace = Pace::default();
        loop {
            look += 1;
            let Some(feed) = self.feed.upgrade() else { return };
            feed.begun.store(look, Ordering::Release);
            drop(feed);
            let polled = self.follower.poll_at_most(pace.messages());
            // Held for these moments only: the last reader's leaving must end this thread.
            let Some(feed) = self.feed.upgrade().filter(|feed| !feed.has_ended()) else { return };
            let polled = match polled {
                Ok(polled) => polled,
                Err(error) => {
                    tracing::warn!(%error, kind = %error.kind, "a message bus is not followed any more");
                    return feed.end();
                }
            };
            let frames = Frames::format(&polled.events, feed.hasher());
            pace.adapt(&frames);
            if !frames.marks.is_empty() {
                self.metrics.tailed.fetch_add(frames.marks.len() as u64, Ordering::Relaxed);
                feed.publish(frames);
            }
            if polled.more {
                continue;
            }
            if !history::is_half_written(&polled) {
                feed.done.send_if_modified(|done| {
                    // The end of the feed is above every look.
                    let later = *done < look;
                    *done = (*done).max(look);
                    later
                });
            }
            drop(feed);
            let woken = match polled.recheck {
                Some(recheck) => self.woken.recv_timeout(recheck),
                None => self.woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if woken == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}
