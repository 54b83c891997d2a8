//! One contract, two places: every fact here holds for a handle inside the daemon and for one across the socket.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::time::Duration;

use support::{World, comms, globs, meta, publish, text, wait_until, within};
use swb_bus::topics::Delivery;
use swb_bus::{BusCallError, BusHandle, CallError};
use swb_proto::comms::{AgentsEchoHandle, CommsMessage, Empty, LlmComplete, LlmRequest};
use swb_proto::control::Ping;
use swb_proto::error::{
    ERR_CANCELLED, ERR_CURSOR_AHEAD, ERR_HANDLER, ERR_INTERNAL, ERR_METHOD_NOT_FOUND, ERR_SHUTTING_DOWN,
    ERR_TIMEOUT,
};
use swb_proto::{BusPayload, Meta};
use uuid::Uuid;

/// A bus and a handle to it, from inside or from outside.
struct Place {
    world: World,
    bus: BusHandle,
}

macro_rules! contract {
    ($($fact:ident)*) => {
        mod in_process {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                let world = super::World::new();
                let bus = world.bus.handle();
                super::$fact(super::Place { world, bus }).await;
            })*
        }
        mod over_the_socket {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                let world = super::World::new();
                let bus = super::BusHandle::connect(&world.socket).await.unwrap();
                super::$fact(super::Place { world, bus }).await;
            })*
        }
    };
}

contract! {
    a_request_gets_its_answer
    a_refusal_is_an_answer
    an_unknown_method_is_not_found
    a_dropped_reply_is_recv
    a_panic_is_one_error
    a_deadline_is_kept
    a_request_is_cancelled_by_its_id
    an_id_in_flight_is_refused
    a_dropped_future_stops_the_work
    a_notification_arrives
    a_lost_notification_is_no_error_of_the_call
    the_context_reaches_the_handler
    typed_calls_have_typed_results
    the_channel_is_threaded_through
    events_arrive_in_order_from_a_cursor
    a_cursor_from_the_future_is_refused
    a_trimmed_range_is_one_gap
    a_dropped_stream_is_unsubscribed
    many_callers_share_one_handle
    a_draining_bus_takes_nothing_new
    a_stopped_bus_answers_what_was_pending
}

async fn a_request_gets_its_answer(Place { bus, .. }: Place) {
    for method in ["agents", "agents/echo", "agents/echo/handle"] {
        let reply = within("the reply", bus.request(method, comms("hi \"there\"\n\u{1F980}"))).await;
        assert_eq!(reply.unwrap().unwrap(), comms("hi \"there\"\n\u{1F980}"));
    }
    let reply = bus.request("agents/method/a/b", comms("")).await.unwrap().unwrap();
    assert_eq!(text(&reply), "agents/method/a/b", "the whole method arrives");
}

async fn a_refusal_is_an_answer(Place { bus, .. }: Place) {
    let error = bus.request("agents/refuse", comms("no")).await.unwrap().unwrap_err();
    assert_eq!((error.code, error.message.as_str(), error.reason()), (ERR_HANDLER, "no", "REFUSED"));
}

async fn an_unknown_method_is_not_found(Place { bus, .. }: Place) {
    for method in ["", "nobody", "nobody/x", "agentsx/y", "a b", "$/nothing", "llm/other", &"x".repeat(500)] {
        let error = bus.request(method, BusPayload::Empty).await.unwrap().unwrap_err();
        assert_eq!(error.code, ERR_METHOD_NOT_FOUND, "{method}");
    }
}

async fn a_dropped_reply_is_recv(Place { bus, .. }: Place) {
    assert_eq!(within("the error", bus.request("agents/drop", comms(""))).await, Err(BusCallError::Recv));
    assert!(bus.request("agents/echo", comms("")).await.unwrap().is_ok());
}

async fn a_panic_is_one_error(Place { bus, .. }: Place) {
    for method in ["agents/panic", "agents/panic_later"] {
        let error = within("the error", bus.request(method, comms(""))).await.unwrap().unwrap_err();
        assert_eq!((error.code, error.reason()), (ERR_INTERNAL, "HANDLER_PANICKED"));
    }
    assert!(bus.request("agents/echo", comms("")).await.unwrap().is_ok());
}

async fn a_deadline_is_kept(Place { world, bus }: Place) {
    let hurried = bus.with(meta(r#"{"timeout_ms":1}"#));
    for method in ["agents/leak", "agents/wait"] {
        let error = within("the deadline", hurried.request(method, comms("x"))).await.unwrap().unwrap_err();
        assert_eq!(error.code, ERR_TIMEOUT);
    }
    wait_until("the work was dropped", || world.record.dropped() == world.record.started()).await;
    wait_until("nothing is in flight", || world.bus.in_flight() == 0).await;
}

async fn a_request_is_cancelled_by_its_id(Place { world, bus }: Place) {
    let id = Uuid::from_u128(0xabc);
    let caller = bus.clone();
    let call =
        tokio::spawn(async move { caller.request_with_id(Some(id), "agents/wait".into(), comms("x")).await });
    wait_until("it is at work", || world.record.started() == 1).await;
    bus.notify("$/cancel", BusPayload::CancelRequest { id }).unwrap();
    let error = within("the caller", call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, ERR_CANCELLED);
    wait_until("the work was dropped", || world.record.dropped() == 1).await;
    assert_eq!(world.record.finished(), 0);
    let again = bus.request("$/cancel", BusPayload::CancelRequest { id }).await.unwrap();
    assert_eq!(again, Ok(BusPayload::Empty));
}

async fn an_id_in_flight_is_refused(Place { world, bus }: Place) {
    let id = Uuid::from_u128(0xabc);
    let caller = bus.clone();
    let first =
        tokio::spawn(async move { caller.request_with_id(Some(id), "agents/wait".into(), comms("x")).await });
    wait_until("it is at work", || world.record.started() == 1).await;
    let second = bus.request_with_id(Some(id), "agents/echo".into(), comms("y")).await;
    assert_eq!(second.unwrap().unwrap_err().reason(), "DUPLICATE_ID");
    world.record.release("x");
    assert_eq!(text(&within("the first", first).await.unwrap().unwrap().unwrap()), "x");
}

async fn a_dropped_future_stops_the_work(Place { world, bus }: Place) {
    let call = tokio::spawn(async move { bus.request("agents/wait", comms("x")).await });
    wait_until("it is at work", || world.record.started() == 1).await;
    call.abort();
    wait_until("the work was dropped", || world.record.dropped() == 1).await;
    assert_eq!(world.record.finished(), 0);
}

async fn a_notification_arrives(Place { world, bus }: Place) {
    for n in 0..100 {
        bus.notify(format!("agents/note/{n}"), comms("x")).unwrap();
    }
    wait_until("all arrived", || world.record.notices().len() == 100).await;
    assert_eq!(world.record.notices(), (0..100).map(|n| format!("agents/note/{n}")).collect::<Vec<_>>());
}

async fn a_lost_notification_is_no_error_of_the_call(Place { world, bus }: Place) {
    bus.notify("nobody/x", BusPayload::Empty).unwrap();
    let unrouted = &world.bus.stats().notifications_unrouted;
    wait_until("it was counted", || unrouted.load(std::sync::atomic::Ordering::Relaxed) == 1).await;
}

async fn the_context_reaches_the_handler(Place { bus, .. }: Place) {
    let agent = bus.with(meta(
        r#"{"actor":{"kind":"agent","id":"ada"},"workspace_id":"ws_1","correlation_id":"cor_1","timeout_ms":60000}"#,
    ));
    for method in ["agents/who", "agents/relay"] {
        let reply = agent.request(method, comms("agents/who")).await.unwrap().unwrap();
        let who: serde_json::Value = serde_json::from_str(text(&reply)).unwrap();
        assert_eq!((&who["actor"], &who["workspace"]), (&"agent:ada".into(), &"ws_1".into()));
        assert_eq!((&who["correlation"], &who["deadline"]), (&"cor_1".into(), &true.into()));
    }
}

async fn typed_calls_have_typed_results(Place { bus, .. }: Place) {
    let asked = CommsMessage { channel_id: "c".into(), content: "x".into() };
    assert_eq!(bus.call::<AgentsEchoHandle>(asked.clone()).await.unwrap(), asked);
    assert_eq!(bus.call::<Ping>(Empty {}).await.unwrap().head, 0);
    let prompt = LlmRequest { channel_id: "c".into(), content: "x".into() };
    let reply = bus.call::<LlmComplete>(prompt).await.unwrap();
    assert_eq!((reply.channel_id.as_str(), reply.content.as_str()), ("c", "completed: x"));
}

async fn the_channel_is_threaded_through(Place { bus, .. }: Place) {
    let asked = BusPayload::CommsMessage { channel_id: "pty0".into(), content: "hi".into() };
    let reply = bus.request("agents/chat/handle", asked).await.unwrap().unwrap();
    let expected = BusPayload::CommsMessage { channel_id: "pty0".into(), content: "completed: hi".into() };
    assert_eq!(reply, expected);
}

async fn events_arrive_in_order_from_a_cursor(Place { world, bus }: Place) {
    for n in 1..=500 {
        publish(world.bus.topics(), "a.b", n);
    }
    let mut all = bus.subscribe(Vec::new(), Some(100)).await.unwrap();
    let mut new = bus.subscribe(globs(&["a.*"]), None).await.unwrap();
    assert_eq!((all.cursor(), new.cursor()), (100, 500));
    for n in 501..=1000 {
        publish(world.bus.topics(), "a.b", n);
    }
    for (stream, after) in [(&mut all, 100), (&mut new, 500)] {
        for expected in after + 1..=1000 {
            let delivery = within("an event", stream.next()).await.unwrap();
            let Delivery::Event(event) = delivery else { panic!("{delivery:?}") };
            assert_eq!((event.seq(), event.envelope().sequence), (expected, Some(expected)));
            assert_eq!(event.payload::<serde_json::Value>().unwrap()["n"], expected);
            assert_eq!(stream.cursor(), expected);
        }
    }
}

async fn a_cursor_from_the_future_is_refused(Place { world, bus }: Place) {
    publish(world.bus.topics(), "a.b", 1);
    let error = bus.subscribe(Vec::new(), Some(2)).await.unwrap_err();
    let CallError::Bus(error) = error else { panic!("{error:?}") };
    assert_eq!((error.code, &error.data.unwrap()["head"]), (ERR_CURSOR_AHEAD, &1.into()));
    assert_eq!(world.bus.topics().subscriptions(), 0);
}

async fn a_trimmed_range_is_one_gap(Place { world, bus }: Place) {
    for n in 1..=20_000 {
        publish(world.bus.topics(), "a.b", n);
    }
    let oldest = world.bus.topics().oldest();
    let mut stream = bus.subscribe(Vec::new(), Some(5)).await.unwrap();
    let first = within("the gap", stream.next()).await.unwrap();
    let Delivery::Gap(gap) = first else { panic!("{first:?}") };
    assert_eq!((gap.from, gap.to), (6, oldest - 1));
    assert_eq!(stream.cursor(), oldest - 1);
    assert_eq!(within("the next", stream.next()).await.unwrap().seq(), oldest);
}

async fn a_dropped_stream_is_unsubscribed(Place { world, bus }: Place) {
    let stream = bus.subscribe(Vec::new(), None).await.unwrap();
    assert_eq!(world.bus.topics().subscriptions(), 1);
    drop(stream);
    wait_until("it is gone", || world.bus.topics().subscriptions() == 0).await;
}

async fn many_callers_share_one_handle(Place { world, bus }: Place) {
    world.record.release("*");
    let callers: Vec<_> = (0..64)
        .map(|task| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for n in 0..50 {
                    let method = ["agents/echo", "agents/wait", "agents/chat"][n % 3];
                    let content = format!("{task}/{n}");
                    let reply = bus.request(method, comms(&content)).await.unwrap().unwrap();
                    assert!(text(&reply).ends_with(&content), "{reply:?}");
                }
            })
        })
        .collect();
    for caller in callers {
        within("a caller", caller).await.unwrap();
    }
    assert!(world.connections() <= 1);
    wait_until("nothing is in flight", || world.bus.in_flight() == 0).await;
}

async fn a_draining_bus_takes_nothing_new(Place { world, bus }: Place) {
    let caller = bus.clone();
    let call = tokio::spawn(async move { caller.request("agents/wait", comms("x")).await });
    wait_until("it is at work", || world.record.started() == 1).await;
    let far = std::sync::Arc::clone(&world.bus);
    let closing = tokio::spawn(async move { far.shutdown(support::PATIENCE).await });
    wait_until("the bus drains", || world.bus.handle().notify("agents", comms("")).is_err()).await;
    assert_eq!(within("the refusal", bus.request("agents/echo", comms("x"))).await, Err(BusCallError::Send));
    world.record.release("x");
    assert_eq!(text(&within("the reply", call).await.unwrap().unwrap().unwrap()), "x");
    within("the shutdown", closing).await.unwrap();
}

async fn a_stopped_bus_answers_what_was_pending(Place { world, bus }: Place) {
    let caller = bus.with(Meta::default());
    let call = tokio::spawn(async move { caller.request("agents/leak", comms("x")).await });
    wait_until("it is in flight", || world.bus.in_flight() == 1).await;
    world.bus.shutdown(Duration::ZERO).await;
    let error = within("the answer", call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, ERR_SHUTTING_DOWN);
}
