//! One client's way: from the file to the ring, and back if it falls behind.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use swb_journal::message_bus::{FollowFrom, MessageBus};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Sleep, sleep_until};

use super::feed::{Feed, News};
use super::frame::{self, HEARTBEAT};
use super::history::History;
use super::ring::{Taken, rest};
use crate::metrics::Metrics;

/// A stream as it is being read. Chunks are made when the client can take one, so a slow one holds nothing.
#[derive(Debug)]
pub(super) struct Reader {
    bus: Arc<MessageBus>,
    feed: Arc<Feed>,
    news: watch::Receiver<News>,
    place: Place,
    /// The last frame that was given out, or the id the client came with: where to go on in the file.
    last: Bytes,
    heartbeat: Pin<Box<Sleep>>,
    period: Duration,
    metrics: Arc<Metrics>,
}

/// Where a reader begins, and the `id` line of the message before that; empty for the beginning of the bus.
#[derive(Debug)]
pub(super) enum Begin {
    /// In the file.
    File { history: Box<History>, last: Bytes },
    /// In the ring at a number.
    Ring { next: u64, last: Bytes },
}

#[derive(Debug)]
enum Place {
    /// In the file; taken while a look is under way.
    File(Option<Box<History>>),
    /// In the ring, at this number.
    Ring(u64),
    /// Nowhere: the stream is over.
    End,
}

impl Reader {
    pub(super) fn new(
        bus: Arc<MessageBus>,
        feed: Arc<Feed>,
        begin: Begin,
        period: Duration,
        metrics: Arc<Metrics>,
    ) -> Self {
        let news = feed.news();
        let (place, last) = match begin {
            Begin::File { history, last } => (Place::File(Some(history)), last),
            Begin::Ring { next, last } => (Place::Ring(next), last),
        };
        let heartbeat = Box::pin(sleep_until(Instant::now() + period));
        Reader { bus, feed, news, place, last, heartbeat, period, metrics }
    }

    /// What to send next; `None` at the end. Dropping this future loses nothing but a look at the file.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.news.borrow_and_update().ended {
                return None;
            }
            let chunk = match &mut self.place {
                Place::End => return None,
                Place::File(history) => {
                    let history = history.take()?;
                    self.read_file(history).await?
                }
                Place::Ring(number) => match self.feed.take(*number) {
                    Taken::Frames { frames, skip, next } => {
                        *number = next;
                        self.last = frames.last();
                        rest(&frames, skip)
                    }
                    Taken::Overtaken { behind } => Some(self.fall_back(behind).await?),
                    Taken::Nothing => self.wait().await,
                },
            };
            if let Some(chunk) = chunk {
                return Some(chunk);
            }
        }
    }

    /// One piece of the file; at its end, over to the ring.
    async fn read_file(&mut self, mut history: Box<History>) -> Option<Option<Bytes>> {
        // Noted before the look: what the ring had by then is in the file and will be seen.
        let head = self.feed.head();
        let feed = Arc::clone(&self.feed);
        let (history, piece) = spawn_blocking(move || {
            let piece = history.next(feed.hasher());
            (history, piece)
        })
        .await
        .ok()?;
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                tracing::warn!(%error, kind = %error.kind, "a stream ended");
                self.place = Place::End;
                return None;
            }
        };
        let chunk = rest(&piece.frames, 0);
        if chunk.is_some() {
            self.last = piece.frames.last();
        }
        if piece.end {
            // The tail may be behind us. Once it is not, our last frame is in the ring, unless it was published before
            // `head` or we have none: then nothing from `head` on was seen.
            self.feed.caught_up().await;
            self.place = Place::Ring(self.feed.after_frame(&self.last).map_or(head, |after| after.max(head)));
        } else {
            if let Some(pause) = piece.pause {
                tokio::time::sleep(pause).await;
            }
            self.place = Place::File(Some(history));
        }
        Some(chunk)
    }

    /// The ring has gone on without us: tell the client, and go on from the file behind the last frame it got.
    async fn fall_back(&mut self, behind: u64) -> Option<Bytes> {
        self.metrics.lagged.fetch_add(1, Ordering::Relaxed);
        let from = if self.last.is_empty() {
            // The bus was empty when it came.
            FollowFrom::Beginning
        } else {
            // A frame without an id is no place in the file. The client knows its own last id and comes back with it.
            FollowFrom::After(frame::id_of(&self.last)?.to_owned())
        };
        let bus = Arc::clone(&self.bus);
        let opened = spawn_blocking(move || History::open(&bus, &from)).await.ok()?;
        let (history, _) = opened.ok()?;
        self.place = Place::File(Some(Box::new(history)));
        Some(frame::lagged(behind))
    }

    /// Until there is something new, or it is time to say that there is not.
    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            changed = self.news.changed() => {
                if changed.is_err() {
                    self.place = Place::End;
                }
                None
            }
            () = self.heartbeat.as_mut() => {
                let next = Instant::now() + self.period;
                self.heartbeat.as_mut().reset(next);
                Some(HEARTBEAT)
            }
        }
    }
}
