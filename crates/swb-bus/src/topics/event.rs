//! One event in memory, and what a subscriber is handed.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use swb_proto::event::{EventType, Gap};
use swb_proto::id::EventId;
use swb_proto::{EventEnvelope, Timestamp, Topic, topic};

use super::ring::unix_millis;
use crate::request_id;

/// An event, shared by all who read it.
///
/// What a subscription looks at stands first and in this order, beside the count of the `Arc`: handing an event to many
/// subscribers then touches one cache line of it, not three.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    seq: u64,
    pub(super) topic_number: u32,
    envelope: EventEnvelope,
    json: OnceLock<Box<str>>,
}

impl Event {
    pub(super) fn new(envelope: EventEnvelope, topic_number: u32) -> Self {
        Event { seq: envelope.seq, topic_number, envelope, json: OnceLock::new() }
    }

    /// An event that another process published: no table here has its topic.
    pub(super) fn kept(envelope: EventEnvelope) -> Self {
        Event::new(envelope, 0)
    }

    /// Its envelope.
    pub fn envelope(&self) -> &EventEnvelope {
        &self.envelope
    }

    /// Its place among all events.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        self.envelope.topic.as_str()
    }

    /// Its payload as a value of type `T`.
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.envelope.payload.get())
    }

    /// Its envelope as JSON: made once, however many connections send it.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| envelope_json(&self.envelope).into())
    }
}

fn envelope_json(envelope: &EventEnvelope) -> String {
    serde_json::to_string(envelope).expect("an envelope serialises into memory")
}

/// What a subscriber gets next.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// An event.
    Event(Arc<Event>),
    /// A range of events that it does not get; the stream goes on after it.
    Gap(Gap),
}

impl Delivery {
    /// The cursor after this delivery.
    pub fn seq(&self) -> u64 {
        match self {
            Delivery::Event(event) => event.seq(),
            Delivery::Gap(gap) => gap.to,
        }
    }

    /// The delivery as an envelope. A gap becomes the synthetic event `bus.gap`, with the `seq` to go on from.
    pub fn to_envelope(&self, now: SystemTime) -> EventEnvelope {
        match self {
            Delivery::Event(event) => event.envelope.clone(),
            Delivery::Gap(gap) => gap_envelope(gap, now),
        }
    }

    /// The delivery as the JSON of its envelope.
    pub fn with_json<R>(&self, now: SystemTime, use_json: impl FnOnce(&str) -> R) -> R {
        match self {
            Delivery::Event(event) => use_json(event.json()),
            Delivery::Gap(gap) => use_json(&envelope_json(&gap_envelope(gap, now))),
        }
    }

    pub(crate) fn from_envelope(envelope: EventEnvelope) -> Result<Self, serde_json::Error> {
        if envelope.topic.as_str() == topic::GAP {
            return serde_json::from_str(envelope.payload.get()).map(Delivery::Gap);
        }
        Ok(Delivery::Event(Arc::new(Event::kept(envelope))))
    }
}

fn gap_envelope(gap: &Gap, now: SystemTime) -> EventEnvelope {
    EventEnvelope {
        subscription: None,
        id: EventId::from_ulid(ulid::Ulid::from_parts(unix_millis(now), request_id::random_bits() >> 48)),
        r#type: EventType::Event,
        topic: Topic::try_from(topic::GAP).expect("a constant that matches the grammar"),
        ts: Timestamp::from_system_time(now),
        seq: gap.to,
        sequence: None,
        actor: None,
        workspace_id: None,
        lane_id: None,
        session_id: None,
        terminal_id: None,
        correlation_id: None,
        payload: serde_json::value::to_raw_value(gap).expect("a gap serialises into memory"),
    }
}
