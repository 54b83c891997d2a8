//! The end of a request before its answer: cancelled, too late, abandoned, or the bus is closing.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use support::{PATIENCE, TestBus, comms, meta, text, wait_until, within};
use swb_bus::topics::{Retention, Topics};
use swb_bus::{BusCallError, BusHandle, StopReason};
use swb_proto::error::{ERR_CANCELLED, ERR_SHUTTING_DOWN, ERR_TIMEOUT};
use swb_proto::{BusPayload, BusResult};
use tokio::task::JoinHandle;
use uuid::Uuid;

type Answer = Result<BusResult, BusCallError>;

/// Starts a request that waits until it is released.
fn waiting(handle: &BusHandle, id: Option<Uuid>, name: &str) -> JoinHandle<Answer> {
    let (handle, payload) = (handle.clone(), comms(name));
    tokio::spawn(async move { handle.request_with_id(id, "agents/wait".into(), payload).await })
}

#[tokio::test]
async fn cancel_stops_the_work_and_the_caller_gets_one_clear_error() {
    let TestBus { bus, record } = TestBus::new();
    let id = Uuid::from_u128(1);
    let call = waiting(&bus.handle(), Some(id), "x");
    let other = waiting(&bus.handle(), Some(Uuid::from_u128(2)), "other");
    wait_until("both are at work", || record.started() == 2).await;
    bus.handle().notify("$/cancel", BusPayload::CancelRequest { id }).unwrap();
    let error = within("the cancelled caller", call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, ERR_CANCELLED);
    wait_until("the work was dropped", || record.dropped() == 1).await;
    assert_eq!(record.finished(), 0, "it did not run to its end");
    assert_eq!(bus.stats().cancelled.load(Ordering::Relaxed), 1);
    record.release("other");
    assert_eq!(text(&within("the other", other).await.unwrap().unwrap().unwrap()), "other");
}

#[tokio::test]
async fn cancel_by_request_is_the_same_and_an_unknown_id_is_no_error() {
    let TestBus { bus, record } = TestBus::new();
    let id = Uuid::from_u128(1);
    let call = waiting(&bus.handle(), Some(id), "x");
    wait_until("it is at work", || record.started() == 1).await;
    for _ in 0..3 {
        let reply = bus.handle().request("$/cancel", BusPayload::CancelRequest { id }).await.unwrap();
        assert_eq!(reply, Ok(BusPayload::Empty), "the second and third find nothing to do");
    }
    assert_eq!(within("the caller", call).await.unwrap().unwrap().unwrap_err().code, ERR_CANCELLED);
    assert_eq!(bus.stats().cancelled.load(Ordering::Relaxed), 1);
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn a_handler_that_ignores_cancellation_does_not_hold_its_caller() {
    let TestBus { bus, .. } = TestBus::new();
    let id = Uuid::from_u128(1);
    let handle = bus.handle();
    let call =
        tokio::spawn(async move { handle.request_with_id(Some(id), "agents/leak".into(), comms("x")).await });
    wait_until("it is in flight", || bus.in_flight() == 1).await;
    assert!(bus.cancel(id));
    assert_eq!(within("the caller", call).await.unwrap().unwrap().unwrap_err().code, ERR_CANCELLED);
}

#[tokio::test]
async fn cancelling_a_request_also_ends_the_calls_it_made() {
    let TestBus { bus, record } = TestBus::new();
    let id = Uuid::from_u128(1);
    let handle = bus.handle();
    let call = tokio::spawn(async move {
        handle.request_with_id(Some(id), "agents/relay".into(), comms("agents/relay agents/wait x")).await
    });
    wait_until("the third in the chain is at work", || record.started() == 3).await;
    assert!(bus.cancel(id));
    assert_eq!(within("the caller", call).await.unwrap().unwrap().unwrap_err().code, ERR_CANCELLED);
    wait_until("all three were dropped", || record.dropped() == 3).await;
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn dropping_the_callers_future_stops_the_work() {
    let TestBus { bus, record } = TestBus::new();
    let call = waiting(&bus.handle(), None, "x");
    wait_until("it is at work", || record.started() == 1).await;
    call.abort();
    wait_until("the work was dropped", || record.dropped() == 1).await;
    assert_eq!((record.finished(), bus.in_flight()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_forgets_its_reply_does_not_hang_a_caller_with_a_deadline() {
    let TestBus { bus, .. } = TestBus::new();
    let patient = bus.handle().with(meta(r#"{"timeout_ms":50}"#));
    let error = patient.request("agents/leak", comms("x")).await.unwrap().unwrap_err();
    assert_eq!((error.code, error.retryable()), (ERR_TIMEOUT, true));
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_passed_deadline_stops_the_work() {
    let TestBus { bus, record } = TestBus::new();
    let patient = bus.handle().with(meta(r#"{"timeout_ms":50}"#));
    let error = patient.request("agents/wait", comms("x")).await.unwrap().unwrap_err();
    assert_eq!(error.code, ERR_TIMEOUT);
    wait_until("the work was dropped", || record.dropped() == 1).await;
    assert_eq!(record.finished(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_bus_has_a_deadline_for_callers_who_have_none() {
    let topics = Topics::in_memory(Retention::default());
    let TestBus { bus, .. } =
        TestBus::build(topics, |builder| builder.default_timeout(Duration::from_millis(50)));
    let error = bus.handle().request("agents/leak", comms("x")).await.unwrap().unwrap_err();
    assert_eq!(error.code, ERR_TIMEOUT);
    let unbounded = bus.handle().with(meta(r#"{"timeout_ms":18446744073709551615}"#));
    assert!(unbounded.request("agents/echo", comms("x")).await.unwrap().is_ok(), "no deadline that far");
}

#[tokio::test]
async fn shutdown_waits_for_what_is_in_flight_and_for_what_it_calls() {
    let TestBus { bus, record } = TestBus::new();
    let handle = bus.handle();
    let call = tokio::spawn(async move { handle.request("agents/relay", comms("agents/wait x")).await });
    wait_until("the inner call is at work", || record.started() == 2).await;
    let closing = tokio::spawn({
        let bus = std::sync::Arc::clone(&bus);
        async move { bus.shutdown(PATIENCE).await }
    });
    let mut refused = false;
    wait_until("new requests are refused", || {
        refused = bus.handle().notify("agents/echo", comms("x")) == Err(BusCallError::Send);
        refused
    })
    .await;
    assert_eq!(bus.handle().request("agents/echo", comms("x")).await, Err(BusCallError::Send));
    record.release("x");
    assert_eq!(text(&within("the request in flight", call).await.unwrap().unwrap().unwrap()), "x");
    within("the shutdown", closing).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_fails_what_does_not_finish_so_that_nobody_waits_for_ever() {
    let TestBus { bus, record } = TestBus::new();
    let calls: Vec<_> = (0..50)
        .map(|n| {
            let handle = bus.handle();
            let method = ["agents/wait", "agents/leak"][n % 2];
            tokio::spawn(async move { handle.request(method, comms("x")).await })
        })
        .collect();
    wait_until("all are in flight", || bus.in_flight() == 50).await;
    bus.shutdown(Duration::from_millis(10)).await;
    for call in calls {
        let error = within("a pending caller", call).await.unwrap().unwrap().unwrap_err();
        assert_eq!(error.code, ERR_SHUTTING_DOWN);
    }
    assert_eq!(bus.handle().request("agents/echo", comms("x")).await, Err(BusCallError::Send));
    assert_eq!(bus.handle().notify("agents/echo", comms("x")), Err(BusCallError::Send));
    wait_until("the work was dropped", || record.dropped() == 25).await;
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_in_the_middle_of_a_rush_leaves_nobody_waiting() {
    for _ in 0..50 {
        let TestBus { bus, .. } = TestBus::new();
        let callers: Vec<_> = (0..20)
            .map(|_| {
                let handle = bus.handle();
                tokio::spawn(async move {
                    loop {
                        match handle.request("agents/leak", comms("x")).await {
                            Ok(answer) => assert_eq!(answer.unwrap_err().code, ERR_SHUTTING_DOWN),
                            Err(error) => return error,
                        }
                    }
                })
            })
            .collect();
        bus.shutdown(Duration::ZERO).await;
        for caller in callers {
            assert_eq!(within("a caller", caller).await.unwrap(), BusCallError::Send);
        }
        assert_eq!(bus.in_flight(), 0);
    }
}

#[tokio::test]
async fn a_handler_learns_why_it_shall_stop() {
    use std::sync::Arc;
    use swb_bus::{Bus, BusHandler, CallContext};
    use tokio::sync::{mpsc, oneshot};

    struct Tells(mpsc::UnboundedSender<StopReason>);
    impl BusHandler for Tells {
        fn prefix(&self) -> &str {
            "tells"
        }
        fn handle_request(&self, _: &str, _: BusPayload, _: oneshot::Sender<BusResult>) {}
        fn handle_call(&self, ctx: CallContext, _: &str, _: BusPayload, reply: oneshot::Sender<BusResult>) {
            let told = self.0.clone();
            tokio::spawn(async move {
                let _reply = reply;
                let _ = told.send(ctx.cancel_signal().cancelled().await);
            });
        }
    }
    let (told, mut reasons) = mpsc::unbounded_channel();
    let bus = Bus::builder(Topics::in_memory(Retention::default())).register(Tells(told)).build();
    let start = |id: u128, bus: &Arc<Bus>| {
        let handle = bus.handle();
        let id = Some(Uuid::from_u128(id));
        tokio::spawn(async move { handle.request_with_id(id, "tells".into(), BusPayload::Empty).await })
    };
    let cancelled = start(1, &bus);
    wait_until("it is in flight", || bus.in_flight() == 1).await;
    bus.cancel(Uuid::from_u128(1));
    assert_eq!(within("a reason", reasons.recv()).await, Some(StopReason::Cancelled));
    within("the caller", cancelled).await.unwrap().unwrap().unwrap_err();

    let abandoned = start(2, &bus);
    wait_until("it is in flight", || bus.in_flight() == 1).await;
    abandoned.abort();
    assert_eq!(within("a reason", reasons.recv()).await, Some(StopReason::CallerGone));

    let _stopped = start(3, &bus);
    wait_until("it is in flight", || bus.in_flight() == 1).await;
    bus.shutdown(Duration::ZERO).await;
    assert_eq!(within("a reason", reasons.recv()).await, Some(StopReason::ShuttingDown));
}
