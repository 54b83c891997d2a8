//! Events: published once, numbered twice, read by anyone from anywhere they left off.
//!
//! There is one ring of recent events and every subscriber is a cursor into it. That makes replay and live one and the
//! same thing (no gap and no duplicate at the seam), bounds memory whatever subscribers do (a slow one is overtaken by
//! the end of the ring and told so with one gap), and lets a subscriber take many events under one short lock.
//!
//! Invariants: `seq` counts all events without a hole and never goes back, across crashes too (`swb-journal` keeps the
//! reservation); `sequence` does the same within a topic; every subscriber sees events in `seq` order; whatever a
//! subscriber misses is announced by exactly one gap before the stream goes on.
//!
//! A [`Keeper`] may keep events of weight: then a subscriber whose cursor lies before the ring, of an earlier process
//! too, gets those, and a gap for each range between them.

mod event;
mod filter;
mod keeper;
mod ring;
mod subscription;
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::value::RawValue;
use swb_journal::sequence::{Resume, SequenceError, SequenceFile};
use swb_proto::error::ERR_CURSOR_AHEAD;
use swb_proto::events::ReadResponse;
use swb_proto::{Actor, BusError, EventEnvelope, Meta, TopicGlob};

pub use event::{Delivery, Event};
pub use keeper::{Keeper, Kept, KeptEvents};
pub use subscription::Subscription;

use filter::Filter;
use ring::Ring;

/// How much is kept for replay.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Events at most.
    pub events: usize,
    /// Bytes of their payloads at most.
    pub bytes: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { events: 16_384, bytes: 16 * 1024 * 1024 }
    }
}

/// The wall clock of events, replaceable in tests.
pub type Clock = fn() -> SystemTime;

/// All events of a bus.
#[derive(Debug)]
pub struct Topics {
    ring: RwLock<Ring>,
    head: AtomicU64,
    reservation_failures: AtomicU64,
    /// Rises with every subscriber that comes or goes.
    audience: AtomicU64,
    clock: Clock,
    keeper: Option<Arc<dyn Keeper>>,
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The topic does not follow the grammar.
    #[error(transparent)]
    Topic(#[from] swb_proto::topic::InvalidTopic),
    /// The topic is the bus's own: gaps are told to one subscriber and are no part of the order.
    #[error("the topic {0} is reserved for the bus itself")]
    Reserved(&'static str),
    /// The payload is not a JSON object.
    #[error("the payload of an event must be a JSON object")]
    Payload,
    /// There are as many topics as the bus keeps count of.
    #[error("there are {0} topics already; names of topics must not hold ids")]
    TooManyTopics(usize),
    /// The bus is closed.
    #[error("the bus is closed")]
    Closed,
}

/// Why a subscription was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The cursor is from the future: it belongs to another daemon, or is a mistake.
    #[error("the cursor {after} lies beyond the newest event, {head}")]
    CursorAhead {
        /// The cursor.
        after: u64,
        /// The newest event.
        head: u64,
    },
}

impl From<SubscribeError> for BusError {
    fn from(error: SubscribeError) -> Self {
        let SubscribeError::CursorAhead { head, .. } = error;
        BusError::new(ERR_CURSOR_AHEAD, error.to_string()).with("head", head)
    }
}

impl Topics {
    /// Events that live and die with the process.
    pub fn in_memory(retention: Retention) -> Arc<Self> {
        Self::new(retention, None, Resume::default(), SystemTime::now, None)
    }

    /// Events whose numbers go on where the last process with the same file stopped.
    pub fn with_sequence_file(
        retention: Retention,
        path: &Path,
        clock: Clock,
    ) -> Result<Arc<Self>, SequenceError> {
        let (file, resume) = SequenceFile::open(path, ring::unix_millis(clock()))?;
        Ok(Self::new(retention, Some(file), resume, clock, None))
    }

    /// The same, and events of weight can be read after the ring has forgotten them, and after a restart.
    pub fn kept_by(
        keeper: Arc<dyn Keeper>,
        retention: Retention,
        path: &Path,
        clock: Clock,
    ) -> Result<Arc<Self>, SequenceError> {
        let (file, mut resume) = SequenceFile::open(path, ring::unix_millis(clock()))?;
        let last_kept = keeper.last_kept();
        if last_kept > resume.last_seq {
            // The file was lost, or is an old copy: a number that stands for a kept event is not given out again.
            tracing::warn!(
                last_kept,
                last_seq = resume.last_seq,
                "numbers of events go on behind those that are kept"
            );
            resume.last_seq = last_kept;
            resume.topic_floor = resume.topic_floor.max(last_kept);
            resume.topics.clear();
        }
        Ok(Self::new(retention, Some(file), resume, clock, Some(keeper)))
    }

    fn new(
        retention: Retention,
        file: Option<SequenceFile>,
        resume: Resume,
        clock: Clock,
        keeper: Option<Arc<dyn Keeper>>,
    ) -> Arc<Self> {
        let head = AtomicU64::new(resume.last_seq);
        let ring = RwLock::new(Ring::new(retention, file, resume));
        let (reservation_failures, audience) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Topics { ring, head, reservation_failures, audience, clock, keeper })
    }

    /// Publishes an event and returns its `seq`. `scope` and `actor` say where it belongs and who caused it.
    pub fn publish(
        &self,
        topic: &str,
        scope: &Meta,
        actor: Option<&Actor>,
        payload: &impl Serialize,
    ) -> Result<u64, PublishError> {
        let payload = serde_json::value::to_raw_value(payload).map_err(|_| PublishError::Payload)?;
        self.publish_raw(topic, scope, actor, payload)
    }

    /// The same for a payload that is JSON already.
    pub fn publish_raw(
        &self,
        topic: &str,
        scope: &Meta,
        actor: Option<&Actor>,
        payload: Box<RawValue>,
    ) -> Result<u64, PublishError> {
        self.publish_all(topic, scope, actor, vec![payload])
    }

    /// The same for many at once, at least one, which get places one behind the other. They are kept together and seen
    /// together, which costs a small part of what it costs one by one. Returns the last `seq`.
    pub fn publish_all(
        &self,
        topic: &str,
        scope: &Meta,
        actor: Option<&Actor>,
        payloads: Vec<Box<RawValue>>,
    ) -> Result<u64, PublishError> {
        if topic == swb_proto::topic::GAP {
            return Err(PublishError::Reserved(swb_proto::topic::GAP));
        }
        if payloads.is_empty() || payloads.iter().any(|payload| !payload.get().starts_with('{')) {
            return Err(PublishError::Payload);
        }
        let scope = || Meta {
            actor: actor.cloned(),
            workspace_id: scope.workspace_id.clone(),
            lane_id: scope.lane_id.clone(),
            session_id: scope.session_id.clone(),
            terminal_id: scope.terminal_id.clone(),
            correlation_id: scope.correlation_id.clone(),
            timeout_ms: None,
        };
        let keeper = self.keeper.as_deref();
        let made = payloads.into_iter().map(|payload| match keeper {
            Some(keeper) => (scope(), keeper.show(topic, payload)),
            None => (scope(), payload),
        });
        // What events are made of is copied before the lock is taken.
        let made: Vec<_> = made.collect();
        let (seq, wakers) = {
            let mut ring = self.exclusive();
            let first = ring.head() + 1;
            let seq = ring.push(topic, made, (self.clock)(), keeper)?;
            self.head.store(seq, Ordering::Release);
            self.reservation_failures.store(ring.reservation_failures(), Ordering::Relaxed);
            (seq, ring.wakers_for(first))
        };
        // Outside the lock: a woken subscriber wants it next.
        for waker in wakers {
            waker.wake();
        }
        Ok(seq)
    }

    /// Opens a subscription to events that match any of `globs` (all events if there are none), from after the cursor
    /// `after`, or from now on.
    pub fn subscribe(
        self: &Arc<Self>,
        globs: Vec<TopicGlob>,
        after: Option<u64>,
    ) -> Result<Subscription, SubscribeError> {
        let mut ring = self.exclusive();
        let head = ring.head();
        let after = after.unwrap_or(head);
        if after > head {
            return Err(SubscribeError::CursorAhead { after, head });
        }
        let filter = Filter::new(globs);
        let slot = ring.add_subscriber(filter.clone());
        self.audience.fetch_add(1, Ordering::Release);
        // Nothing is missing yet: whatever will be is the subscriber's own slowness.
        let whole = after + 1 >= ring.oldest();
        drop(ring);
        Ok(Subscription::new(Arc::clone(self), slot, filter, after, whole))
    }

    /// A page of what is kept. Without a cursor it begins at the oldest event and no gap is reported.
    pub fn read(
        self: &Arc<Self>,
        globs: Vec<TopicGlob>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<ReadResponse, SubscribeError> {
        let after = after.unwrap_or_else(|| self.oldest() - 1);
        let mut subscription = self.subscribe(globs, Some(after))?;
        let mut events: Vec<EventEnvelope> = Vec::new();
        while events.len() < limit {
            let Some(delivery) = subscription.take_now() else { break };
            events.push(delivery.to_envelope(self.now()));
        }
        Ok(ReadResponse { next: subscription.cursor(), head: self.head().max(subscription.cursor()), events })
    }

    /// The `seq` of the newest event.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The `seq` of the oldest event that is kept; one more than [`Topics::head`] if none is.
    pub fn oldest(&self) -> u64 {
        self.shared().oldest()
    }

    /// Open subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.shared().subscribers()
    }

    /// Whether anybody who is subscribed wants events of a topic. Looks at every subscriber: ask again only when
    /// [`Topics::audience`] has changed.
    pub fn is_wanted(&self, topic: &str) -> bool {
        self.shared().is_wanted(topic)
    }

    /// A number that changes with every subscriber that comes or goes.
    pub fn audience(&self) -> u64 {
        self.audience.load(Ordering::Acquire)
    }

    /// How many events of weight could not be kept.
    pub fn keep_failures(&self) -> u64 {
        self.shared().keep_failures()
    }

    /// How often a range of numbers could not be reserved on disk.
    pub fn reservation_failures(&self) -> u64 {
        self.reservation_failures.load(Ordering::Relaxed)
    }

    /// The clock that stamps events.
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Takes no more events. Subscribers get what is left and then the end; the exact last numbers are kept on disk.
    pub fn close(&self) {
        let wakers = self.exclusive().close();
        for waker in wakers {
            waker.wake();
        }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Ring> {
        // The ring is changed only by code that cannot panic half way.
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Ring> {
        self.ring.write().unwrap_or_else(PoisonError::into_inner)
    }
}
