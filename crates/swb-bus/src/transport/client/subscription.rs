//! Subscriptions of a far bus: queues that outlive the connection they are fed by.
//!
//! Each has a key of its own and, per connection, the id the daemon gave it. On a new connection it is asked for again
//! from its cursor. A queue that overflows stops taking events; once its consumer has emptied it, the daemon is asked
//! again from the consumer's cursor, so a slow consumer loses nothing that the daemon still keeps.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};

use swb_proto::TopicGlob;
use swb_proto::events::{SubscribeParams, SubscribeResponse};
use swb_proto::id::SubscriptionId;
use uuid::Uuid;

use super::RemoteBus;
use super::calls::Reply;
use crate::request_id;
use crate::topics::Delivery;

/// Events that may wait for their consumer.
pub(super) const QUEUE: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_key: HashMap<u64, State>,
    /// Keys by the id of this connection.
    by_id: HashMap<SubscriptionId, u64>,
    /// Keys by the request that opens them.
    opening: HashMap<Uuid, u64>,
    made: u64,
}

#[derive(Debug)]
struct State {
    topics: Vec<TopicGlob>,
    queue: VecDeque<Delivery>,
    /// The `seq` of the newest delivery in the queue; `None` until the daemon has said where it starts.
    queued_to: Option<u64>,
    id: Option<SubscriptionId>,
    overflowed: bool,
    refused: bool,
    waker: Option<Waker>,
}

impl Subscriptions {
    /// A new subscription, not yet asked for.
    pub(super) fn add(&mut self, topics: Vec<TopicGlob>) -> u64 {
        self.made += 1;
        self.by_key.insert(self.made, State::new(topics));
        self.made
    }

    /// The reply to `request` will open the subscription.
    pub(super) fn expect(&mut self, key: u64, request: Uuid) {
        self.opening.insert(request, key);
    }

    /// A reply came: if it opens a subscription, its events are on their way. Returns an id that nobody wants any more.
    pub(super) fn opened(&mut self, request: Uuid, reply: &Reply) -> Option<SubscriptionId> {
        let key = self.opening.remove(&request)?;
        let response =
            reply.as_ref().ok().and_then(|text| serde_json::from_str::<SubscribeResponse>(text.get()).ok());
        match (self.by_key.get_mut(&key), response) {
            (None, response) => response.map(|response| response.subscription),
            (Some(state), None) => {
                // The daemon does not know this cursor: the stream has ended, and its consumer must hear of it.
                state.refused = true;
                state.wake();
                None
            }
            (Some(state), Some(response)) => {
                state.queued_to.get_or_insert(response.after);
                state.id = Some(response.subscription.clone());
                self.by_id.insert(response.subscription, key);
                None
            }
        }
    }

    pub(super) fn deliver(&mut self, id: &SubscriptionId, delivery: Delivery) {
        let Some(state) = self.by_id.get(id).and_then(|key| self.by_key.get_mut(key)) else { return };
        if state.overflowed || state.queue.len() >= QUEUE {
            state.overflowed = true;
            return;
        }
        state.queued_to = Some(delivery.seq());
        state.queue.push_back(delivery);
        state.wake();
    }

    /// The connection is gone: ids of the old one mean nothing on the next.
    pub(super) fn disconnected(&mut self) {
        self.by_id.clear();
        self.opening.clear();
        for state in self.by_key.values_mut() {
            state.id = None;
        }
    }

    /// What to ask a new connection for.
    pub(super) fn resume_all(&mut self) -> Vec<(Uuid, SubscribeParams)> {
        let keys: Vec<u64> =
            self.by_key.iter().filter(|(_, state)| state.queued_to.is_some()).map(|(key, _)| *key).collect();
        keys.into_iter().filter_map(|key| self.resume(key)).collect()
    }

    fn resume(&mut self, key: u64) -> Option<(Uuid, SubscribeParams)> {
        let state = self.by_key.get_mut(&key)?;
        state.overflowed = false;
        let params = SubscribeParams { topics: state.topics.clone(), after: state.queued_to };
        let request = request_id::next();
        self.opening.insert(request, key);
        Some((request, params))
    }
}

impl State {
    fn new(topics: Vec<TopicGlob>) -> Self {
        State {
            topics,
            queue: VecDeque::new(),
            queued_to: None,
            id: None,
            overflowed: false,
            refused: false,
            waker: None,
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A stream of events from another process. It survives the connection.
#[derive(Debug)]
pub struct RemoteSubscription {
    bus: Arc<RemoteBus>,
    key: u64,
    cursor: u64,
}

impl RemoteSubscription {
    pub(super) fn new(bus: Arc<RemoteBus>, key: u64) -> Self {
        RemoteSubscription { bus, key, cursor: 0 }
    }

    pub(super) fn starting_at(mut self, after: u64) -> Self {
        self.cursor = after;
        self
    }

    /// The next delivery; `None` if the daemon that came back does not know the cursor.
    pub async fn next(&mut self) -> Option<Delivery> {
        let delivery = std::future::poll_fn(|cx| {
            let link = &self.bus.0;
            let mut shared = link.lock();
            let Some(state) = shared.subscriptions.by_key.get_mut(&self.key) else {
                return Poll::Ready(None);
            };
            if let Some(delivery) = state.queue.pop_front() {
                return Poll::Ready(Some(delivery));
            }
            if state.refused {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            if state.overflowed
                && let Some(old) = state.id.take()
            {
                // Caught up with the queue: ask for what did not fit into it.
                shared.subscriptions.by_id.remove(&old);
                let resume = shared.subscriptions.resume(self.key);
                drop(shared);
                link.unsubscribe(old);
                if let Some((request, params)) = resume {
                    link.send(Some(request), "events/subscribe", &params.into());
                }
            }
            Poll::Pending
        })
        .await?;
        self.cursor = delivery.seq();
        Some(delivery)
    }

    /// Where to resume.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}

impl Drop for RemoteSubscription {
    fn drop(&mut self) {
        let mut shared = self.bus.0.lock();
        let id = shared.subscriptions.by_key.remove(&self.key).and_then(|state| state.id);
        if let Some(id) = id {
            shared.subscriptions.by_id.remove(&id);
            drop(shared);
            self.bus.0.unsubscribe(id);
        }
    }
}
