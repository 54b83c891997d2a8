//! What is told of events beyond this process: a keeper takes those of weight before anybody sees them, and reads them
//! back when the ring has forgotten them, or when another process had published them.
//!
//! The bus knows no files: whoever builds [`Topics`](super::Topics) brings the keeper. Without one, what the ring has
//! forgotten is a gap.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use swb_proto::EventEnvelope;
use swb_proto::event::{Gap, GapReason};

use super::event::Event;

/// Keeps events.
pub trait Keeper: Send + Sync + fmt::Debug {
    /// The payload of an event as everybody may see it. Called for every event, before it has its place.
    fn show(&self, topic: &str, payload: Box<RawValue>) -> Box<RawValue>;

    /// Whether events of a topic are kept. Asked once for each topic.
    fn keeps(&self, topic: &str) -> bool;

    /// Keeps events of one topic and one scope; says how many could not be. Called in the order of events, while nobody
    /// else can publish: it must be quick and must not publish.
    fn keep(&self, events: &[Arc<Event>]) -> usize;

    /// The place of the last event that was kept; 0 if there is none. Numbers go on behind it.
    fn last_kept(&self) -> u64;

    /// The kept events after a place; none if they cannot be read.
    fn kept_after(&self, seq: u64) -> Option<Box<dyn KeptEvents>>;
}

/// Kept events, in order.
pub trait KeptEvents: Send + Sync + fmt::Debug {
    /// Goes a bounded way and says what it found.
    fn next(&mut self) -> Kept;
}

/// What was found among kept events.
#[derive(Debug)]
pub enum Kept {
    /// The next one.
    Event(Box<EventEnvelope>),
    /// Nothing so far; there is more to look at.
    KeepLooking,
    /// There are no more.
    End,
}

/// A subscriber that is behind the ring and reads what was kept.
#[derive(Debug)]
pub(super) struct Replay {
    events: Box<dyn KeptEvents>,
}

/// Where the ring begins, for a subscriber that is behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    /// The oldest event of the ring.
    pub(super) oldest: u64,
    /// Numbers up to here were skipped by a crash.
    pub(super) crashed_to: u64,
    /// It was here before and has been overtaken.
    pub(super) lagged: bool,
}

/// One step of a replay.
#[derive(Debug)]
pub(super) enum Step {
    /// A range without kept events, and what comes behind it: an event, or the ring.
    Found { gap: Option<Gap>, event: Option<Box<EventEnvelope>>, next: u64 },
    /// Nothing so far.
    KeepLooking,
}

impl Behind {
    /// On to the ring, without anything that lies before it.
    pub(super) fn skip(&self, next: u64) -> Step {
        Step::Found { gap: self.gap(next, self.oldest - 1), event: None, next: self.oldest }
    }

    /// The range from `next` up to `to` is missing.
    fn gap(&self, next: u64, to: u64) -> Option<Gap> {
        let reason = match (self.lagged, next <= self.crashed_to && to >= self.crashed_to) {
            (true, _) => GapReason::Lagged,
            (false, true) => GapReason::Crash,
            (false, false) => GapReason::Trimmed,
        };
        (next <= to).then_some(Gap { from: next, to, reason })
    }
}

impl Replay {
    pub(super) fn new(keeper: &dyn Keeper, next: u64) -> Option<Self> {
        Some(Replay { events: keeper.kept_after(next - 1)? })
    }

    /// Goes on from `next`. Events of topics that are not wanted are passed over; they are part of the range before.
    pub(super) fn step(&mut self, next: u64, behind: Behind, wants: impl FnOnce(&str) -> bool) -> Step {
        let to_the_ring = behind.skip(next);
        match self.events.next() {
            Kept::KeepLooking => Step::KeepLooking,
            Kept::Event(event) if event.seq >= behind.oldest => to_the_ring,
            Kept::Event(event) if event.seq < next || !wants(event.topic.as_str()) => Step::KeepLooking,
            Kept::Event(event) => {
                let seq = event.seq;
                Step::Found { gap: behind.gap(next, seq - 1), event: Some(event), next: seq + 1 }
            }
            Kept::End => to_the_ring,
        }
    }
}
