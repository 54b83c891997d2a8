//! What the tests share: named waits, a subsystem that misbehaves on request, a bus on a socket, a bare client.
#![allow(dead_code, reason = "every test file uses its own part of this")]

pub(crate) mod probe;
pub(crate) mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use swb_bus::topics::{Delivery, Retention, Topics};
use swb_bus::transport::{ControlServer, ServerLimits};
use swb_bus::{Bus, BusBuilder};
use swb_proto::{BusPayload, Meta, TopicGlob};

use probe::{Desk, Llm, Probe, Record};
use wire::Wire;

/// How long a wait may take before it is called stuck. Far beyond what anything here needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a condition that somebody else brings about.
pub(crate) async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// The output of `future`, which must come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// A message for `agents/*`.
pub(crate) fn comms(content: &str) -> BusPayload {
    BusPayload::CommsMessage { channel_id: "chan_1".into(), content: content.into() }
}

/// The text of a message.
#[track_caller]
pub(crate) fn text(payload: &BusPayload) -> &str {
    match payload {
        BusPayload::CommsMessage { content, .. } => content,
        other => panic!("not a message: {other:?}"),
    }
}

pub(crate) fn globs(patterns: &[&str]) -> Vec<TopicGlob> {
    patterns.iter().map(|pattern| TopicGlob::try_from((*pattern).to_owned()).unwrap()).collect()
}

pub(crate) fn meta(json: &str) -> Meta {
    serde_json::from_str(json).unwrap()
}

/// Publishes `{"n": n}`.
pub(crate) fn publish(topics: &Topics, topic: &str, n: u64) -> u64 {
    topics.publish(topic, &Meta::default(), None, &serde_json::json!({ "n": n })).unwrap()
}

/// The `seq` of an event; a gap is not one.
#[track_caller]
pub(crate) fn event_seq(delivery: &Delivery) -> u64 {
    match delivery {
        Delivery::Event(event) => event.seq(),
        Delivery::Gap(gap) => panic!("a gap where an event was expected: {gap:?}"),
    }
}

/// A bus with the misbehaving subsystem, and what it recorded.
pub(crate) struct TestBus {
    pub(crate) bus: Arc<Bus>,
    pub(crate) record: Arc<Record>,
}

impl TestBus {
    pub(crate) fn new() -> Self {
        Self::build(Topics::in_memory(Retention::default()), |builder| builder)
    }

    pub(crate) fn build(topics: Arc<Topics>, more: impl FnOnce(BusBuilder) -> BusBuilder) -> Self {
        let record = Arc::new(Record::default());
        let builder = Bus::builder(topics).register(Probe::new(&record)).register(Llm);
        let builder = builder.register(Desk(Arc::clone(&record)));
        TestBus { bus: more(builder).build(), record }
    }
}

/// A test bus that listens on a socket of its own.
pub(crate) struct World {
    pub(crate) bus: Arc<Bus>,
    pub(crate) record: Arc<Record>,
    pub(crate) socket: PathBuf,
    pub(crate) server: Option<ControlServer>,
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::build(ServerLimits::default(), Topics::in_memory(Retention::default()))
    }

    pub(crate) fn with_limits(limits: ServerLimits) -> Self {
        Self::build(limits, Topics::in_memory(Retention::default()))
    }

    pub(crate) fn build(limits: ServerLimits, topics: Arc<Topics>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        let TestBus { bus, record } = TestBus::build(topics, |builder| builder);
        let server = Some(ControlServer::listen(Arc::clone(&bus), &socket, limits).unwrap());
        World { bus, record, socket, server, dir }
    }

    pub(crate) async fn client(&self) -> Wire {
        Wire::connect(&self.socket).await
    }

    pub(crate) fn connections(&self) -> u64 {
        self.bus.stats().connections.load(Ordering::Relaxed)
    }

    /// Ends the daemon as a crash would look to its clients: no answer, no farewell.
    pub(crate) async fn crash(&mut self) {
        self.server.take().expect("it runs").close(Duration::ZERO).await;
        wait_until("every connection is gone", || self.connections() == 0).await;
        std::fs::remove_file(&self.socket).unwrap();
    }

    /// A new daemon on the same socket.
    pub(crate) fn restart(&mut self, topics: Arc<Topics>) {
        let TestBus { bus, record } = TestBus::build(topics, |builder| builder);
        self.server =
            Some(ControlServer::listen(Arc::clone(&bus), &self.socket, ServerLimits::default()).unwrap());
        (self.bus, self.record) = (bus, record);
    }
}
