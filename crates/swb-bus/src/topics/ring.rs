//! The ring of recent events, the numbers, and the subscribers who sleep. Everything here happens under one lock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use slab::Slab;
use swb_journal::sequence::{Reservation, Resume, SequenceFile};
use swb_proto::event::{EventType, Gap, GapReason};
use swb_proto::id::{EventId, IdMint};
use swb_proto::{Actor, EventEnvelope, Meta, Timestamp, Topic};

use super::event::{Delivery, Event};
use super::filter::Filter;
use super::{PublishError, Retention};
use crate::request_id;

/// How many numbers one reservation on disk covers: what a crash skips at most.
const BLOCK: u64 = 65_536;
/// Topics are few and named in the code. A bus that sees more than this has ids in its topic names.
const MAX_TOPICS: usize = 1024;
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
    topics: HashMap<Topic, TopicState>,
    topic_floor: u64,
    subscribers: Slab<Subscriber>,
    mint: IdMint,
    numbers: Option<Numbers>,
    closed: bool,
}

#[derive(Debug)]
struct TopicState {
    number: u32,
    last: u64,
}

#[derive(Debug)]
struct Subscriber {
    filter: Filter,
    /// Set while it sleeps.
    waker: Option<Waker>,
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
    /// Nothing yet; it will be woken.
    Asleep,
    /// Nothing that matches so far, but there is more to look at.
    KeepLooking,
    /// Nothing, and nothing more to come.
    End,
}

impl Ring {
    pub(super) fn new(retention: Retention, file: Option<SequenceFile>, resume: Resume) -> Self {
        let topic = |(number, (name, last)): (usize, (String, u64))| {
            let number = u32::try_from(number).ok()?;
            Some((Topic::try_from(name).ok()?, TopicState { number, last }))
        };
        Ring {
            events: VecDeque::new(),
            bytes: 0,
            retention,
            last_seq: resume.last_seq,
            crashed_to: if resume.skipped_from.is_some() { resume.last_seq } else { 0 },
            topics: resume.topics.into_iter().enumerate().filter_map(topic).collect(),
            topic_floor: resume.topic_floor,
            subscribers: Slab::new(),
            mint: IdMint::default(),
            // Nothing is reserved yet, so the first event writes the first reservation.
            numbers: file.map(|file| Numbers { file, reserved_to: resume.last_seq, failures: 0 }),
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

    pub(super) fn reservation_failures(&self) -> u64 {
        self.numbers.as_ref().map_or(0, |numbers| numbers.failures)
    }

    pub(super) fn push(
        &mut self,
        topic: Topic,
        scope: &Meta,
        actor: Option<&Actor>,
        payload: Box<RawValue>,
        now: SystemTime,
    ) -> Result<u64, PublishError> {
        if self.closed {
            return Err(PublishError::Closed);
        }
        let new_topic = !self.topics.contains_key(&topic);
        if new_topic {
            if self.topics.len() >= MAX_TOPICS {
                return Err(PublishError::TooManyTopics(MAX_TOPICS));
            }
            let number = u32::try_from(self.topics.len()).unwrap_or(u32::MAX);
            self.topics.insert(topic.clone(), TopicState { number, last: self.topic_floor });
        }
        // A topic that the disk does not know would start at 1 again after a crash.
        self.reserve_if_needed(new_topic);
        self.last_seq += 1;
        let state = self.topics.get_mut(&topic).expect("inserted above");
        state.last += 1;
        let (number, sequence) = (state.number, state.last);
        let id = EventId::from_ulid(self.mint.next(unix_millis(now), request_id::random_bits));
        self.bytes += payload.get().len();
        let envelope = EventEnvelope {
            subscription: None,
            id,
            r#type: EventType::Event,
            topic,
            ts: Timestamp::from_system_time(now),
            seq: self.last_seq,
            sequence: Some(sequence),
            actor: actor.cloned(),
            workspace_id: scope.workspace_id.clone(),
            lane_id: scope.lane_id.clone(),
            session_id: scope.session_id.clone(),
            terminal_id: scope.terminal_id.clone(),
            correlation_id: scope.correlation_id.clone(),
            payload,
        };
        self.events.push_back(Arc::new(Event::new(envelope, number)));
        self.trim();
        Ok(self.last_seq)
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
        let topics =
            self.topics.iter().map(|(topic, state)| (topic.as_str().to_owned(), state.last)).collect();
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

    /// The wakers of those who sleep and want the newest event.
    pub(super) fn wakers_for_newest(&mut self) -> Vec<Waker> {
        let Some(newest) = self.events.back() else { return Vec::new() };
        let wake = |(_, subscriber): (usize, &mut Subscriber)| {
            let wanted =
                subscriber.waker.is_some() && subscriber.filter.wants(newest.topic_number, newest.topic());
            wanted.then(|| subscriber.waker.take()).flatten()
        };
        self.subscribers.iter_mut().filter_map(wake).collect()
    }

    pub(super) fn add_subscriber(&mut self, filter: Filter) -> usize {
        self.subscribers.insert(Subscriber { filter, waker: None })
    }

    pub(super) fn remove_subscriber(&mut self, slot: usize) {
        self.subscribers.remove(slot);
    }

    /// Moves what the subscriber in `slot` wants next into `out`, from `next` on. With a waker, it sleeps if there is
    /// nothing.
    pub(super) fn take(
        &mut self,
        slot: usize,
        next: &mut u64,
        lagged: bool,
        out: &mut VecDeque<Delivery>,
        waker: Option<&Waker>,
    ) -> Found {
        let oldest = self.oldest();
        if *next < oldest {
            let reason = match (lagged, *next <= self.crashed_to) {
                (true, _) => GapReason::Lagged,
                (false, true) => GapReason::Crash,
                (false, false) => GapReason::Trimmed,
            };
            out.push_back(Delivery::Gap(Gap { from: *next, to: oldest - 1, reason }));
            *next = oldest;
        }
        let subscriber = &mut self.subscribers[slot];
        let start = usize::try_from(*next - oldest).unwrap_or(usize::MAX);
        for event in self.events.range(start.min(self.events.len())..).take(SCAN) {
            *next = event.seq() + 1;
            if subscriber.filter.wants(event.topic_number, event.topic()) {
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
        subscriber.waker = waker.cloned();
        Found::Asleep
    }

    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        if let Some(numbers) = &mut self.numbers {
            let topics =
                self.topics.iter().map(|(topic, state)| (topic.as_str().to_owned(), state.last)).collect();
            let exact = Reservation { used_to: self.last_seq, reserved_to: self.last_seq, topics };
            if let Err(error) = numbers.file.reserve(exact) {
                tracing::warn!(%error, "the last sequence number was not kept; the next start skips a range");
            }
        }
        self.subscribers.iter_mut().filter_map(|(_, subscriber)| subscriber.waker.take()).collect()
    }
}

pub(super) fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
