//! The contract of the bus in process: who is asked, what is answered, what a broken handler costs.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use support::{TestBus, comms, text, wait_until, within};
use swb_bus::topics::{Retention, Topics};
use swb_bus::{Bus, BusCallError, BusHandler};
use swb_proto::error::{ERR_HANDLER, ERR_INTERNAL, ERR_INVALID_PARAMS, ERR_METHOD_NOT_FOUND};
use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;

/// A subsystem with nothing but a prefix and an answer: the seed's contract at its smallest.
struct Named(&'static str);

impl BusHandler for Named {
    fn prefix(&self) -> &str {
        self.0
    }
    fn handle_request(&self, method: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let answer = BusPayload::CommsMessage { channel_id: self.0.into(), content: method.into() };
        let _ = reply_tx.send(Ok(answer));
    }
}

fn topics() -> Arc<Topics> {
    Topics::in_memory(Retention::default())
}

#[tokio::test]
async fn the_first_segment_chooses_the_handler_and_it_sees_the_whole_method() {
    let bus = Bus::builder(topics()).register(Named("a")).register(Named("ab")).build();
    for (method, prefix) in [("a", "a"), ("a/x/y", "a"), ("ab", "ab"), ("ab/x", "ab"), ("a/", "a")] {
        let reply = bus.handle().request(method, BusPayload::Empty).await.unwrap().unwrap();
        assert_eq!(reply, BusPayload::CommsMessage { channel_id: prefix.into(), content: method.into() });
    }
    assert_eq!(bus.prefixes(), ["a", "ab"]);
}

#[tokio::test]
async fn a_method_that_nobody_serves_is_answered_with_its_name() {
    let bus = TestBus::new().bus;
    for method in
        ["", "/", "/agents", "nobody", "nobody/x", "agentsx", "Agents/echo", "$", "$/nothing", "$x/y"]
    {
        let error = bus.handle().request(method, comms("x")).await.unwrap().unwrap_err();
        assert_eq!(error.code, ERR_METHOD_NOT_FOUND, "{method}");
    }
    let error = bus.handle().request("nobody/x", comms("x")).await.unwrap().unwrap_err();
    assert!(error.message.contains("nobody.x"), "{error}");
    assert_eq!(bus.in_flight(), 0);
}

#[test]
#[should_panic(expected = "two handlers share the prefix \"a\"")]
fn a_duplicate_prefix_panics_where_it_is_registered() {
    let _ = Bus::builder(topics()).register(Named("a")).register(Named("b")).register(Named("a"));
}

#[test]
fn a_reserved_or_malformed_prefix_panics_where_it_is_registered() {
    for prefix in ["$", "$x", "", "a/b", "a.b", "a b", "ä"] {
        let registered = std::panic::catch_unwind(|| Bus::builder(topics()).register(Named(prefix)));
        assert!(registered.is_err(), "{prefix:?} was taken");
    }
}

#[tokio::test]
async fn an_answer_that_says_no_is_not_a_failed_call() {
    let bus = TestBus::new().bus;
    let error = bus.handle().request("agents/refuse", comms("not today")).await.unwrap().unwrap_err();
    assert_eq!((error.code, error.message.as_str(), error.reason()), (ERR_HANDLER, "not today", "REFUSED"));
}

#[tokio::test]
async fn a_dropped_reply_sender_is_recv_whether_at_once_or_later() {
    let bus = TestBus::new().bus;
    let reply = bus.handle().request("agents/drop", comms("x")).await;
    assert_eq!(reply.unwrap_err(), BusCallError::Recv);

    struct DropsLater;
    impl BusHandler for DropsLater {
        fn prefix(&self) -> &str {
            "later"
        }
        fn handle_request(&self, _: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                drop(reply_tx);
            });
        }
    }
    let bus = Bus::builder(topics()).register(DropsLater).build();
    let reply = within("the dropped reply", bus.handle().request("later", BusPayload::Empty)).await;
    assert_eq!(reply.unwrap_err(), BusCallError::Recv);
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn a_panicking_handler_costs_one_error_and_nothing_else() {
    let bus = TestBus::new().bus;
    for (panics, method) in [(1, "agents/panic"), (2, "agents/panic_later"), (3, "agents/panic")] {
        let error = within(method, bus.handle().request(method, comms("x"))).await.unwrap().unwrap_err();
        assert_eq!((error.code, error.reason()), (ERR_INTERNAL, "HANDLER_PANICKED"));
        assert!(!error.message.contains("panics"), "the inside stays inside: {error}");
        assert_eq!(bus.stats().panics.load(Ordering::Relaxed), panics);
        let reply = bus.handle().request("agents/echo", comms("still here")).await.unwrap().unwrap();
        assert_eq!(text(&reply), "still here");
    }
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn a_panic_after_the_reply_stops_the_work_and_is_still_one_answer() {
    struct RepliesAndPanics;
    impl BusHandler for RepliesAndPanics {
        fn prefix(&self) -> &str {
            "odd"
        }
        fn handle_request(&self, _: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
            let _ = reply_tx.send(Ok(BusPayload::Empty));
            panic!("after the reply");
        }
    }
    let bus = Bus::builder(topics()).register(RepliesAndPanics).build();
    let error = bus.handle().request("odd", BusPayload::Empty).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), "HANDLER_PANICKED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_handler_does_not_delay_another_subsystem() {
    struct Blocks(std::sync::Mutex<std::sync::mpsc::Receiver<()>>, Arc<tokio::sync::Notify>);
    impl BusHandler for Blocks {
        fn prefix(&self) -> &str {
            "blocks"
        }
        fn handle_request(&self, _: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
            self.1.notify_one();
            // Ends only after the other subsystem has answered; a shared queue would never get there.
            let _ = self.0.lock().unwrap().recv_timeout(support::PATIENCE);
            let _ = reply_tx.send(Ok(BusPayload::Empty));
        }
    }
    let (unblock, blocked) = std::sync::mpsc::channel();
    let entered = Arc::new(tokio::sync::Notify::new());
    let bus = Bus::builder(topics())
        .register(Blocks(blocked.into(), Arc::clone(&entered)))
        .register(Named("quick"))
        .build();
    let handle = bus.handle();
    let slow = tokio::spawn(async move { handle.request("blocks", BusPayload::Empty).await });
    within("the handler blocks", entered.notified()).await;
    for _ in 0..100 {
        bus.handle().request("quick", BusPayload::Empty).await.unwrap().unwrap();
    }
    assert!(!slow.is_finished(), "the blocking handler was still at it");
    unblock.send(()).unwrap();
    within("the blocked request", slow).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_ready_reply_needs_no_second_poll() {
    let bus = TestBus::new().bus;
    let handle = bus.handle();
    let first_poll = handle.request("agents/echo", comms("now")).now_or_never();
    assert!(first_poll.is_some(), "dispatch runs on the caller's task");
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own_unless_its_caller_gives_one() {
    let bus = TestBus::new().bus;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..1000 {
        ids.insert(text(&bus.handle().request("agents/id", comms("x")).await.unwrap().unwrap()).to_owned());
    }
    assert_eq!(ids.len(), 1000);
    let id = uuid::Uuid::from_u128(7);
    let reply = bus.handle().request_with_id(Some(id), "agents/id".into(), comms("x")).await;
    assert_eq!(text(&reply.unwrap().unwrap()), id.to_string());
}

#[tokio::test]
async fn an_id_that_is_in_flight_is_refused_and_the_first_request_lives_on() {
    let TestBus { bus, record } = TestBus::new();
    let id = uuid::Uuid::from_u128(7);
    let handle = bus.handle();
    let first =
        tokio::spawn(async move { handle.request_with_id(Some(id), "agents/wait".into(), comms("x")).await });
    wait_until("the first is at work", || record.started() == 1).await;
    let second = bus.handle().request_with_id(Some(id), "agents/wait".into(), comms("y")).await;
    assert_eq!(second.unwrap().unwrap_err().reason(), "DUPLICATE_ID");
    assert!(bus.cancel(id), "the first can still be reached");
    assert!(within("the first", first).await.unwrap().unwrap().is_err());
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn the_channel_is_threaded_through_an_agent_and_the_model() {
    let bus = TestBus::new().bus;
    let asked = BusPayload::CommsMessage { channel_id: "pty0".into(), content: "hi".into() };
    let reply = within("the agent", bus.handle().request("agents/chat/handle", asked)).await;
    let expected = BusPayload::CommsMessage { channel_id: "pty0".into(), content: "completed: hi".into() };
    assert_eq!(reply.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn the_bus_answers_its_own_methods() {
    let bus = TestBus::new().bus;
    let pong = bus.handle().call::<swb_proto::control::Ping>(swb_proto::comms::Empty {}).await.unwrap();
    assert_eq!(pong.head, 0);
    let unknown = BusPayload::CancelRequest { id: uuid::Uuid::from_u128(1) };
    assert_eq!(bus.handle().request("$/cancel", unknown).await.unwrap(), Ok(BusPayload::Empty));
    let error = bus.handle().request("$/cancel", BusPayload::Empty).await.unwrap().unwrap_err();
    assert_eq!(error.code, ERR_INVALID_PARAMS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_of_many_tasks_each_get_their_own_answer() {
    let bus = TestBus::new().bus;
    let tasks: Vec<_> = (0..100)
        .map(|task| {
            let handle = bus.handle();
            tokio::spawn(async move {
                for n in 0..100 {
                    let method = if n % 2 == 0 { "agents/echo" } else { "agents/chat" };
                    let content = format!("{task}/{n}");
                    let reply = handle.request(method, comms(&content)).await.unwrap().unwrap();
                    assert!(text(&reply).ends_with(&content), "{reply:?}");
                }
            })
        })
        .collect();
    for task in tasks {
        within("a caller", task).await.unwrap();
    }
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn a_bus_without_callers_can_be_dropped_and_rebuilt() {
    for _ in 0..100 {
        let bus = TestBus::new().bus;
        bus.shutdown(Duration::ZERO).await;
    }
}
