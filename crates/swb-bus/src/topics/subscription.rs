//! A cursor into the ring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Topics;
use super::event::Delivery;
use super::filter::Filter;
use super::ring::Found;

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
            Found::KeepLooking => {
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
            Found::KeepLooking => {
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
                Found::KeepLooking => {}
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
        loop {
            let lagged = std::mem::replace(&mut self.under_way, true);
            let found = self.topics.shared().take(&mut self.next, lagged, &mut self.filter, &mut self.taken);
            match (found, waker) {
                // Something has come in between looking and lying down.
                (Found::Nothing, Some(waker))
                    if !self.topics.exclusive().sleep(self.slot, self.next, waker) => {}
                (found, _) => return found,
            }
        }
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
    }
}
