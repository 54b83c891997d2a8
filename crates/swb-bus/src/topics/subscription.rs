//! A cursor into the ring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use super::Topics;
use super::event::{Delivery, Event};
use super::filter::Filter;
use super::keeper::{Behind, Replay, Step};
use super::ring::Found;

/// How many steps of a replay are taken at once.
const STEPS: usize = 64;

/// A stream of events, inside the process.
#[derive(Debug)]
pub struct Subscription {
    topics: Arc<Topics>,
    slot: usize,
    filter: Filter,
    /// The `seq` to look at next.
    next: u64,
    /// Taken from the ring, not yet handed on.
    taken: VecDeque<Delivery>,
    /// Where the consumer is.
    cursor: u64,
    /// What was missing at the start was told, so whatever is missing from now on is the subscriber's own slowness.
    under_way: bool,
    /// Set while it reads what was kept before the ring.
    replay: Option<Replay>,
    /// The same as `under_way` when that began.
    replay_lagged: bool,
}

impl Subscription {
    pub(super) fn new(topics: Arc<Topics>, slot: usize, filter: Filter, after: u64, whole: bool) -> Self {
        Subscription {
            topics,
            slot,
            filter,
            next: after + 1,
            taken: VecDeque::new(),
            cursor: after,
            under_way: whole,
            replay: None,
            replay_lagged: false,
        }
    }

    /// The next delivery; `None` once the bus is closed and everything was handed out.
    pub async fn next(&mut self) -> Option<Delivery> {
        if self.taken.is_empty() {
            // A subscriber that never finds the ring empty must still let others run.
            tokio::task::coop::consume_budget().await;
        }
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same for callers that poll.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        match self.refill(Some(cx.waker())) {
            Found::Some => Poll::Ready(self.hand_on()),
            Found::End => Poll::Ready(None),
            Found::Nothing => Poll::Pending,
            Found::KeepLooking | Found::Behind(_) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Ready when [`Subscription::take_now`] will give a delivery. Never ready again after the end.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.refill(Some(cx.waker())) {
            Found::Some => Poll::Ready(()),
            Found::Nothing | Found::End => Poll::Pending,
            Found::KeepLooking | Found::Behind(_) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// The next delivery if there is one already.
    pub fn take_now(&mut self) -> Option<Delivery> {
        loop {
            match self.refill(None) {
                Found::Some => return self.hand_on(),
                Found::KeepLooking | Found::Behind(_) => {}
                Found::End | Found::Nothing => {
                    self.cursor = self.next - 1;
                    return None;
                }
            }
        }
    }

    /// The last `seq` that was handed on or looked at in vain: where to resume.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    fn refill(&mut self, waker: Option<&Waker>) -> Found {
        if !self.taken.is_empty() {
            return Found::Some;
        }
        let has_keeper = self.topics.keeper.is_some();
        loop {
            let lagged = std::mem::replace(&mut self.under_way, true);
            let ring = self.topics.shared();
            let (next, filter, taken) = (&mut self.next, &mut self.filter, &mut self.taken);
            let found = ring.take(self.slot, next, lagged, filter, taken, has_keeper);
            drop(ring);
            match (found, waker) {
                (Found::Behind(behind), _) => return self.catch_up(behind),
                // Something has come in between looking and lying down.
                (Found::Nothing, Some(waker))
                    if !self.topics.exclusive().sleep(self.slot, self.next, waker) => {}
                (found, _) => return found,
            }
        }
    }

    /// Takes a few steps through what was kept before the ring. It is read from a disk, so the ring is free meanwhile,
    /// and others run in between.
    fn catch_up(&mut self, behind: Behind) -> Found {
        let Some(keeper) = self.topics.keeper.as_deref() else { return Found::KeepLooking };
        if self.replay.is_none() {
            self.replay_lagged = behind.lagged;
            self.replay = Replay::new(keeper, self.next);
        }
        let behind = Behind { lagged: self.replay_lagged, ..behind };
        for _ in 0..STEPS {
            let step = match &mut self.replay {
                Some(replay) => replay.step(self.next, behind, |topic| self.filter.wants_topic(topic)),
                // What is kept cannot be read: it is missing like all the rest.
                None => behind.skip(self.next),
            };
            let Step::Found { gap, event, next } = step else { continue };
            self.taken.extend(gap.map(Delivery::Gap));
            self.taken.extend(event.map(|event| Delivery::Event(Arc::new(Event::kept(*event)))));
            self.next = next;
            if next >= behind.oldest {
                self.replay = None;
                break;
            }
        }
        if self.taken.is_empty() { Found::KeepLooking } else { Found::Some }
    }

    fn hand_on(&mut self) -> Option<Delivery> {
        let delivery = self.taken.pop_front()?;
        self.cursor = delivery.seq();
        Some(delivery)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.topics.exclusive().remove_subscriber(self.slot);
        self.topics.audience.fetch_add(1, Ordering::Release);
    }
}
