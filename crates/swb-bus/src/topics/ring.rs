//! The ring of recent events, the numbers, and the subscribers who sleep. Everything here happens under one lock,
//! which those who only read share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use slab::Slab;
use swb_journal::sequence::{Reservation, Resume, SequenceFile};
use swb_proto::event::{EventType, Gap, GapReason};
use swb_proto::id::{EventId, IdMint};
use swb_proto::{EventEnvelope, Meta, Timestamp, Topic};

use super::event::{Delivery, Event};
use super::filter::Filter;
use super::keeper::{Behind, Keeper};
use super::table::{MAX_TOPICS, TopicTable};
use super::{PublishError, Retention};
use crate::request_id;

/// How many numbers one reservation on disk covers: what a crash skips at most.
const BLOCK: u64 = 65_536;
/// How many events a subscriber takes under one lock, and how many it looks at.
const BATCH: usize = 64;
const SCAN: usize = 4096;

#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    retention: Retention,
    last_seq: u64,
    /// Numbers up to here were skipped by a crash of an earlier process.
    crashed_to: u64,
    topics: TopicTable,
    /// The stamp of the last event, and its millisecond: events of a burst share one.
    stamp: (u64, Timestamp),
    subscribers: Slab<Subscriber>,
    /// The slots of those who sleep, so that an event costs what its sleepers cost, not what all subscribers do.
    asleep: Vec<usize>,
    mint: IdMint,
    numbers: Option<Numbers>,
    /// How many events of weight could not be kept.
    keep_failures: u64,
    closed: bool,
}

#[derive(Debug)]
struct Subscriber {
    filter: Filter,
    /// Set while it sleeps.
    waker: Option<Waker>,
    /// It stands in [`Ring::asleep`].
    listed: bool,
    /// It slept up to here: nothing before it was for this subscriber, and need not be looked at again. Most of it may
    /// have left the ring long ago.
    slept_to: u64,
}

/// The reservation on disk.
#[derive(Debug)]
struct Numbers {
    file: SequenceFile,
    reserved_to: u64,
    failures: u64,
}

/// What a subscriber found.
pub(super) enum Found {
    /// At least one delivery was taken.
    Some,
    /// Nothing yet.
    Nothing,
    /// Nothing that matches so far, but there is more to look at.
    KeepLooking,
    /// What comes next lies before the ring; a keeper may have it.
    Behind(Behind),
    /// Nothing, and nothing more to come.
    End,
}

impl Ring {
    pub(super) fn new(retention: Retention, file: Option<SequenceFile>, resume: Resume) -> Self {
        Ring {
            events: VecDeque::new(),
            bytes: 0,
            retention,
            last_seq: resume.last_seq,
            crashed_to: if resume.skipped_from.is_some() { resume.last_seq } else { 0 },
            topics: TopicTable::new(resume.topics, resume.topic_floor),
            stamp: (0, Timestamp::from_system_time(UNIX_EPOCH)),
            subscribers: Slab::new(),
            asleep: Vec::new(),
            mint: IdMint::default(),
            // Nothing is reserved yet, so the first event writes the first reservation.
            numbers: file.map(|file| Numbers { file, reserved_to: resume.last_seq, failures: 0 }),
            keep_failures: 0,
            closed: false,
        }
    }

    pub(super) fn head(&self) -> u64 {
        self.last_seq
    }

    pub(super) fn oldest(&self) -> u64 {
        self.events.front().map_or(self.last_seq + 1, |event| event.seq())
    }

    pub(super) fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    pub(super) fn keep_failures(&self) -> u64 {
        self.keep_failures
    }

    /// Whether anybody who is subscribed wants events of a topic.
    pub(super) fn is_wanted(&self, topic: &str) -> bool {
        self.subscribers.iter().any(|(_, subscriber)| subscriber.filter.wants_topic(topic))
    }

    pub(super) fn reservation_failures(&self) -> u64 {
        self.numbers.as_ref().map_or(0, |numbers| numbers.failures)
    }

    /// Gives events their places. What they are made of comes owned: copying it is not done under the lock.
    pub(super) fn push(
        &mut self,
        topic: &str,
        made: Vec<(Meta, Box<RawValue>)>,
        now: SystemTime,
        keeper: Option<&dyn Keeper>,
    ) -> Result<u64, PublishError> {
        if self.closed {
            return Err(PublishError::Closed);
        }
        let known = self.topics.number(topic);
        let number = match known {
            Some(number) => number,
            None => {
                let topic = Topic::try_from(topic)?;
                self.topics.add(topic).ok_or(PublishError::TooManyTopics(MAX_TOPICS))?
            }
        };
        let millis = unix_millis(now);
        if self.stamp.0 != millis {
            self.stamp = (millis, Timestamp::from_system_time(now));
        }
        let mut is_new = known.is_none();
        let mut events = Vec::with_capacity(made.len());
        for (scope, payload) in made {
            // A topic that the disk does not know would start at 1 again after a crash.
            self.reserve_if_needed(std::mem::take(&mut is_new));
            events.push(self.place(number, millis, scope, payload));
        }
        if let Some(keeper) = keeper
            && self.topics.is_kept(number, |topic| keeper.keeps(topic))
        {
            // Those who listen are told all the same; that some will not be there later is counted and shown.
            self.keep_failures += keeper.keep(&events) as u64;
        }
        self.events.extend(events);
        self.trim();
        Ok(self.last_seq)
    }

    fn place(&mut self, number: u32, millis: u64, scope: Meta, payload: Box<RawValue>) -> Arc<Event> {
        self.last_seq += 1;
        let (topic, sequence) = self.topics.count(number);
        let id = EventId::from_ulid(self.mint.next(millis, request_id::random_bits));
        self.bytes += payload.get().len();
        let envelope = EventEnvelope {
            subscription: None,
            id,
            r#type: EventType::Event,
            topic,
            ts: self.stamp.1.clone(),
            seq: self.last_seq,
            sequence: Some(sequence),
            actor: scope.actor,
            workspace_id: scope.workspace_id,
            lane_id: scope.lane_id,
            session_id: scope.session_id,
            terminal_id: scope.terminal_id,
            correlation_id: scope.correlation_id,
            payload,
        };
        Arc::new(Event::new(envelope, number))
    }

    fn trim(&mut self) {
        // The newest event always stays, whatever its size.
        while self.events.len() > 1
            && (self.events.len() > self.retention.events || self.bytes > self.retention.bytes)
        {
            if let Some(event) = self.events.pop_front() {
                self.bytes -= event.envelope().payload.get().len();
            }
        }
    }

    fn reserve_if_needed(&mut self, new_topic: bool) {
        let Some(numbers) = &mut self.numbers else { return };
        if !new_topic && self.last_seq < numbers.reserved_to {
            return;
        }
        let reserved_to = self.last_seq + BLOCK;
        let topics = self.topics.counts();
        match numbers.file.reserve(Reservation { used_to: self.last_seq, reserved_to, topics }) {
            Ok(()) => numbers.reserved_to = reserved_to,
            Err(error) => {
                // Events must not stop because a disk did: numbers go on in memory, the failure is counted and shown,
                // and the next block tries again.
                numbers.failures += 1;
                numbers.reserved_to = reserved_to;
                tracing::error!(%error, "sequence numbers are not reserved: they may repeat after a crash");
            }
        }
    }

    /// The wakers of those who sleep and want the newest event. Those from `first` on came with it, and are like it.
    pub(super) fn wakers_for(&mut self, first: u64) -> Vec<Waker> {
        let Some(newest) = self.events.back() else { return Vec::new() };
        let mut wakers = Vec::with_capacity(self.asleep.len());
        self.asleep.retain(|slot| {
            let subscriber = &mut self.subscribers[*slot];
            if !subscriber.filter.wants(newest) {
                return true;
            }
            wakers.extend(subscriber.waker.take());
            subscriber.listed = false;
            subscriber.slept_to = first;
            false
        });
        wakers
    }

    pub(super) fn add_subscriber(&mut self, filter: Filter) -> usize {
        self.subscribers.insert(Subscriber { filter, waker: None, listed: false, slept_to: 0 })
    }

    pub(super) fn remove_subscriber(&mut self, slot: usize) {
        if self.subscribers.remove(slot).listed {
            self.asleep.retain(|listed| *listed != slot);
        }
    }

    /// Copies what a subscriber wants next into `out`, from `next` on. Changes nothing here, so that many can do it at
    /// once: with many subscribers it is what most of the time goes into.
    pub(super) fn take(
        &self,
        slot: usize,
        next: &mut u64,
        lagged: bool,
        filter: &mut Filter,
        out: &mut VecDeque<Delivery>,
        has_keeper: bool,
    ) -> Found {
        *next = self.subscribers[slot].slept_to.max(*next);
        let oldest = self.oldest();
        if *next < oldest && has_keeper {
            return Found::Behind(Behind { oldest, crashed_to: self.crashed_to, lagged });
        }
        if *next < oldest {
            let reason = match (lagged, *next <= self.crashed_to) {
                (true, _) => GapReason::Lagged,
                (false, true) => GapReason::Crash,
                (false, false) => GapReason::Trimmed,
            };
            out.push_back(Delivery::Gap(Gap { from: *next, to: oldest - 1, reason }));
            *next = oldest;
        }
        let start = usize::try_from(*next - oldest).unwrap_or(usize::MAX);
        for event in self.events.range(start.min(self.events.len())..).take(SCAN) {
            *next = event.seq() + 1;
            if filter.wants(event) {
                out.push_back(Delivery::Event(Arc::clone(event)));
                if out.len() >= BATCH {
                    break;
                }
            }
        }
        if !out.is_empty() {
            return Found::Some;
        }
        if *next <= self.last_seq {
            return Found::KeepLooking;
        }
        if self.closed {
            return Found::End;
        }
        Found::Nothing
    }

    /// Lets the subscriber in `slot` sleep until there is an event that it wants; false if it has to look again first.
    pub(super) fn sleep(&mut self, slot: usize, next: u64, waker: &Waker) -> bool {
        if next <= self.last_seq || self.closed {
            return false;
        }
        let subscriber = &mut self.subscribers[slot];
        subscriber.waker = Some(waker.clone());
        if !std::mem::replace(&mut subscriber.listed, true) {
            self.asleep.push(slot);
        }
        true
    }

    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        if let Some(numbers) = &mut self.numbers {
            let topics = self.topics.counts();
            let exact = Reservation { used_to: self.last_seq, reserved_to: self.last_seq, topics };
            if let Err(error) = numbers.file.reserve(exact) {
                tracing::warn!(%error, "the last sequence number was not kept; the next start skips a range");
            }
        }
        for slot in self.asleep.drain(..) {
            let subscriber = &mut self.subscribers[slot];
            (subscriber.listed, subscriber.slept_to) = (false, self.last_seq + 1);
        }
        self.subscribers.iter_mut().filter_map(|(_, subscriber)| subscriber.waker.take()).collect()
    }
}

pub(super) fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
