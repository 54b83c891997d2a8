//! Streams of events: subscribe and unsubscribe on a connection, or read a page at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comms::Empty;
use crate::id::SubscriptionId;
use crate::method::Method;
use crate::payload::body;
use crate::{EventEnvelope, TopicGlob};

/// The most globs one subscription may have.
pub const MAX_GLOBS: usize = 64;
/// The most events one page may hold.
pub const MAX_PAGE: u64 = 1000;

/// `events.subscribe`: which events, from where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscribeParams {
    /// Globs over topics; an event that matches any of them is sent. None: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub topics: Vec<TopicGlob>,
    /// The last `seq` already seen: what came after it is replayed, then the stream goes on live. Absent: only new events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// A subscription is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscribeResponse {
    /// Its name on this connection.
    pub subscription: SubscriptionId,
    /// The cursor it starts from.
    pub after: u64,
    /// The newest event at that moment.
    pub head: u64,
}

/// `events.unsubscribe`: which subscription ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsubscribeParams {
    /// Its name on this connection.
    pub subscription: SubscriptionId,
}

/// `events.read`: a page of what is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadParams {
    /// Globs over topics. None: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub topics: Vec<TopicGlob>,
    /// The last `seq` already seen. Absent: from the oldest that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// How many events at most: 1 to 1000, normally 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u64>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadResponse {
    /// In order; a `bus.gap` stands first if the page begins after a hole.
    pub events: Vec<EventEnvelope>,
    /// The cursor for the next page.
    pub next: u64,
    /// The newest event; the page was the last one when `next` has reached it.
    pub head: u64,
}

/// What a JSON-RPC client gets for each event: the notification `events.event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventNotification {
    /// Which subscription.
    pub subscription: SubscriptionId,
    /// The event.
    pub event: EventEnvelope,
}

body! {
    /// Words of `events/*`.
    EventsBody in Events {
        /// A wish to subscribe.
        Subscribe(SubscribeParams),
        /// Its answer.
        Subscribed(SubscribeResponse),
        /// A wish to end a subscription.
        Unsubscribe(UnsubscribeParams),
        /// A wish for a page.
        Read(ReadParams),
        /// Its answer.
        Page(ReadResponse),
        /// One event for one subscription.
        Event(EventNotification),
    }
}

/// `events/subscribe`.
#[derive(Debug)]
pub enum Subscribe {}
impl Method for Subscribe {
    const NAME: &'static str = "events/subscribe";
    const SUMMARY: &'static str = "Receive events on this connection: from a cursor, or from now on";
    type Params = SubscribeParams;
    type Response = SubscribeResponse;
}

/// `events/unsubscribe`.
#[derive(Debug)]
pub enum Unsubscribe {}
impl Method for Unsubscribe {
    const NAME: &'static str = "events/unsubscribe";
    const SUMMARY: &'static str = "End a subscription of this connection";
    type Params = UnsubscribeParams;
    type Response = Empty;
}

/// `events/read`.
#[derive(Debug)]
pub enum Read {}
impl Method for Read {
    const NAME: &'static str = "events/read";
    const SUMMARY: &'static str = "Read a page of the events that are kept, without subscribing";
    type Params = ReadParams;
    type Response = ReadResponse;
}
