//! Notifications: one bounded queue per subsystem, losses that are counted and do not flood the log.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use support::{PATIENCE, TestBus, comms, wait_until, within};
use swb_bus::topics::{Retention, Topics};
use swb_bus::{Bus, BusCallError, BusHandler};
use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;

/// Takes one notification and then nothing until it is let go.
struct Stuck {
    entered: Arc<AtomicUsize>,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl BusHandler for Stuck {
    fn prefix(&self) -> &str {
        "stuck"
    }
    fn handle_request(&self, _: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(Ok(BusPayload::Empty));
    }
    fn handle_notification(&self, _: &str, _: BusPayload) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let _ = self.gate.lock().unwrap().recv_timeout(PATIENCE);
    }
}

fn count(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[tokio::test]
async fn notifications_arrive_in_order_with_the_whole_method() {
    let TestBus { bus, record } = TestBus::new();
    for n in 0..100 {
        bus.handle().notify(format!("agents/note/{n}"), comms("x")).unwrap();
    }
    wait_until("all arrived", || record.notices().len() == 100).await;
    assert_eq!(record.notices(), (0..100).map(|n| format!("agents/note/{n}")).collect::<Vec<_>>());
    assert_eq!(count(&bus.stats().notifications), 100);
}

#[tokio::test]
async fn a_subsystem_without_use_for_notifications_need_not_say_so() {
    let TestBus { bus, .. } = TestBus::new();
    bus.handle().notify("llm/anything", BusPayload::Empty).unwrap();
    let payload = BusPayload::LlmRequest { channel_id: "c".into(), content: "x".into() };
    assert!(bus.handle().request("llm/complete", payload).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_notification_handler_that_panics_costs_only_that_notification() {
    let TestBus { bus, record } = TestBus::new();
    bus.handle().notify("agents/panic", comms("x")).unwrap();
    bus.handle().notify("agents/after", comms("x")).unwrap();
    wait_until("the next one arrives", || record.notices() == ["agents/after"]).await;
    assert_eq!(count(&bus.stats().panics), 1);
}

#[tokio::test]
async fn notifications_that_nobody_takes_are_counted() {
    let TestBus { bus, .. } = TestBus::new();
    for method in ["nobody/x", "", "$/nothing"] {
        assert_eq!(bus.handle().notify(method, BusPayload::Empty), Ok(()), "{method}");
    }
    assert_eq!(count(&bus.stats().notifications_unrouted), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_full_queue_is_an_error_to_the_sender_and_no_business_of_others() {
    let (release, gate) = mpsc::channel();
    let entered = Arc::new(AtomicUsize::new(0));
    let stuck = Stuck { entered: Arc::clone(&entered), gate: gate.into() };
    let topics = Topics::in_memory(Retention::default());
    let TestBus { bus, record } = TestBus::build(topics, |b| b.register(stuck).notice_capacity(8));
    let handle = bus.handle();
    handle.notify("stuck", BusPayload::Empty).unwrap();
    wait_until("the handler is stuck", || entered.load(Ordering::SeqCst) == 1).await;
    for _ in 0..8 {
        handle.notify("stuck", BusPayload::Empty).unwrap();
    }
    for _ in 0..100 {
        assert_eq!(handle.notify("stuck", BusPayload::Empty), Err(BusCallError::Full));
    }
    assert_eq!(count(&bus.stats().notifications_dropped), 100);
    // Requests to the same subsystem, and notifications to another, do not notice.
    assert!(handle.request("stuck", BusPayload::Empty).await.unwrap().is_ok());
    handle.notify("agents/note", comms("x")).unwrap();
    wait_until("the other subsystem got its own", || record.notices().len() == 1).await;
    drop(release);
    wait_until("the queue runs empty", || entered.load(Ordering::SeqCst) == 9).await;
}

/// Counts log lines of WARN and above.
struct CountingLog(Arc<AtomicUsize>);

impl tracing::Subscriber for CountingLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// 200,000 notifications to `method`; the number of log lines they caused, and the seconds they may have fallen into.
fn flood(bus: &Arc<Bus>, method: &str) -> (usize, usize) {
    let lines = Arc::new(AtomicUsize::new(0));
    let log = CountingLog(Arc::clone(&lines));
    let began = std::time::Instant::now();
    tracing::subscriber::with_default(log, || {
        let handle = bus.handle();
        for _ in 0..200_000 {
            let _ = handle.notify(method, BusPayload::Empty);
        }
    });
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    (lines.load(Ordering::SeqCst), seconds)
}

#[tokio::test]
async fn a_flood_of_notifications_is_a_handful_of_log_lines() {
    let TestBus { bus, .. } = TestBus::new();
    // On one thread nobody empties the queue meanwhile, so nearly all of these are dropped.
    let (lines, seconds) = flood(&bus, "agents/note");
    assert!((1..=seconds + 1).contains(&lines), "{lines} lines in {seconds} s");
    assert_eq!(count(&bus.stats().notifications) + count(&bus.stats().notifications_dropped), 200_000);
    assert!(count(&bus.stats().notifications_dropped) > 190_000);

    let (lines, seconds) = flood(&bus, "nobody/there");
    assert!((1..=seconds + 1).contains(&lines), "{lines} lines in {seconds} s");
    assert_eq!(count(&bus.stats().notifications_unrouted), 200_000);
}

#[tokio::test]
async fn a_log_line_about_a_full_or_dead_bus_does_not_cause_another() {
    let TestBus { bus, .. } = TestBus::new();
    within("the shutdown", bus.shutdown(std::time::Duration::ZERO)).await;
    let (lines, _) = flood(&bus, "agents/note");
    assert_eq!(lines, 0, "the sender is told; the log has nothing to add");
}
