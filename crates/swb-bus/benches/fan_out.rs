//! One publisher, many subscribers, against a tokio broadcast channel of shared events of the same size; and what a
//! subscriber that never reads costs in memory.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod figures;

use std::sync::Arc;
use std::time::Instant;

use figures::{Unit, Wanted};
use serde_json::value::RawValue;
use swb_bus::topics::{Delivery, Retention, Topics};
use swb_proto::{Actor, Meta};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

const TOPIC: &str = "agent.run.progress";
const STALLED_EVENTS: usize = 1_000_000;

/// An event of the limit: the same strings, no numbers, no order, no replay.
#[expect(dead_code, reason = "carried, not read")]
struct BareEvent {
    topic: String,
    payload: Box<RawValue>,
}

fn payload() -> Box<RawValue> {
    let text = format!(r#"{{"text":"{}"}}"#, "x".repeat(180));
    RawValue::from_string(text).expect("JSON by construction")
}

/// Nanoseconds per delivery until every subscriber has every event.
fn through_topics(runtime: &Runtime, subscribers: usize, events: usize) -> f64 {
    let topics = Topics::in_memory(Retention::default());
    let readers: Vec<_> = (0..subscribers)
        .map(|_| {
            let mut subscription = topics.subscribe(Vec::new(), None).expect("from now on");
            runtime.spawn(async move {
                for _ in 0..events {
                    let delivery = subscription.next().await;
                    assert!(matches!(delivery, Some(Delivery::Event(_))), "nobody lags in this bench");
                }
            })
        })
        .collect();
    let started = Instant::now();
    let publisher = runtime.spawn(async move {
        let (scope, actor) = (Meta::default(), Actor::system());
        for _ in 0..events {
            topics.publish_raw(TOPIC, &scope, Some(&actor), payload()).expect("the bus is open");
            tokio::task::coop::consume_budget().await;
        }
    });
    finish(runtime, started, publisher, readers) / (subscribers * events) as f64
}

fn through_broadcast(runtime: &Runtime, subscribers: usize, events: usize) -> f64 {
    let (sender, _) = broadcast::channel::<Arc<BareEvent>>(Retention::default().events);
    let readers: Vec<_> = (0..subscribers)
        .map(|_| {
            let mut receiver = sender.subscribe();
            runtime.spawn(async move {
                for _ in 0..events {
                    assert!(receiver.recv().await.is_ok(), "nobody lags in this bench");
                }
            })
        })
        .collect();
    let started = Instant::now();
    let publisher = runtime.spawn(async move {
        for _ in 0..events {
            let event = Arc::new(BareEvent { topic: TOPIC.to_owned(), payload: payload() });
            assert!(sender.send(event).is_ok(), "there are receivers");
            tokio::task::coop::consume_budget().await;
        }
    });
    finish(runtime, started, publisher, readers) / (subscribers * events) as f64
}

fn finish(
    runtime: &Runtime,
    started: Instant,
    publisher: tokio::task::JoinHandle<()>,
    readers: Vec<tokio::task::JoinHandle<()>>,
) -> f64 {
    runtime.block_on(async {
        publisher.await.expect("the publisher does not panic");
        for reader in readers {
            reader.await.expect("readers do not panic");
        }
    });
    started.elapsed().as_secs_f64() * 1e9
}

/// Resident memory of this process in kilobytes, if the system tells.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Publishes beside a subscriber that never reads. The ring is filled first: it is the memory that is allowed.
fn stalled_subscriber(events: usize) -> Option<(u64, u64)> {
    let topics = Topics::in_memory(Retention::default());
    let stalled = topics.subscribe(Vec::new(), None).expect("from now on");
    let (scope, actor) = (Meta::default(), Actor::system());
    let publish = |count| {
        for _ in 0..count {
            topics.publish_raw(TOPIC, &scope, Some(&actor), payload()).expect("the bus is open");
        }
    };
    publish(2 * Retention::default().events);
    let before = resident_kb()?;
    publish(events);
    let after = resident_kb()?;
    drop(stalled);
    Some((before, after))
}

fn main() {
    let quick = figures::is_quick();
    let (rounds, deliveries) = if quick { (3, 64_000) } else { (15, 1_000_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    // First, while the allocator has not yet kept anything for later.
    let stalled_events = if quick { STALLED_EVENTS / 10 } else { STALLED_EVENTS };
    let resident = stalled_subscriber(stalled_events);

    figures::heading("fan-out in process, deliveries until everybody has everything, limit: tokio broadcast");
    for subscribers in [1, 8, 64, 1000] {
        // The ring must hold what is published: this bench is about speed, not about lagging.
        let events = (deliveries / subscribers).clamp(64, Retention::default().events);
        let [ours, limit] = figures::take_turns(
            rounds,
            [&mut || through_topics(&runtime, subscribers, events), &mut || {
                through_broadcast(&runtime, subscribers, events)
            }],
        );
        let wanted = if subscribers == 64 { Wanted::RateAtLeast(0.7) } else { Wanted::Rate };
        figures::row(&format!("{subscribers} subscribers"), Unit::PerSecond, &ours, &limit, wanted);
    }
    if let Some((before, after)) = resident {
        let grown = format!("{before} -> {after} kB");
        let what = format!("resident memory, one stalled subscriber, {stalled_events} events");
        figures::figure(&what, &grown, "flat");
    }
}
