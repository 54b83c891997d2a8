//! The far handle and its connection: one for many callers, replies in any order, death noticed, life resumed.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt;
use serde_json::{Value, json};
use support::{World, comms, event_seq, globs, meta, publish, text, wait_until, within};
use swb_bus::topics::{Delivery, Retention, Topics};
use swb_bus::transport::ServerLimits;
use swb_bus::{BusCallError, BusHandle};
use swb_proto::event::{Gap, GapReason};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;

async fn connect(world: &World) -> BusHandle {
    BusHandle::connect(&world.socket).await.unwrap()
}

fn kept(path: &Path) -> Arc<Topics> {
    Topics::with_sequence_file(Retention::default(), path, SystemTime::now).unwrap()
}

#[tokio::test]
async fn connecting_to_nobody_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nobody.sock");
    let error = BusHandle::connect(&path).await.unwrap_err();
    assert_eq!(error.socket, path);
    assert!(error.to_string().contains("nobody.sock"), "{error}");
}

#[tokio::test]
async fn replies_are_matched_by_id_whatever_their_order() {
    let world = World::new();
    let bus = connect(&world).await;
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let bus = bus.clone();
            tokio::spawn(async move { bus.request("agents/wait", comms(&n.to_string())).await })
        })
        .collect();
    wait_until("all are at work", || world.record.started() == 20).await;
    for (n, call) in calls.into_iter().enumerate().rev() {
        world.record.release(&n.to_string());
        let reply = within("its reply", call).await.unwrap().unwrap().unwrap();
        assert_eq!(text(&reply), n.to_string());
    }
    assert_eq!(world.connections(), 1, "all on one connection");
}

#[tokio::test]
async fn the_context_of_the_connection_holds_for_every_call() {
    let world = World::new();
    let context = meta(r#"{"actor":{"kind":"agent","id":"ada"},"workspace_id":"ws_1"}"#);
    let bus = BusHandle::connect_as(&world.socket, context).await.unwrap();
    let plain = bus.request("agents/who", comms("")).await.unwrap().unwrap();
    let correlated = bus.with(meta(r#"{"correlation_id":"cor_1"}"#));
    let correlated = correlated.request("agents/who", comms("")).await.unwrap().unwrap();
    for reply in [&plain, &correlated] {
        let who: Value = serde_json::from_str(text(reply)).unwrap();
        assert_eq!((&who["actor"], &who["workspace"]), (&json!("agent:ada"), &json!("ws_1")));
    }
    assert!(text(&correlated).contains("cor_1"));
}

#[tokio::test]
async fn the_death_of_the_daemon_fails_every_pending_call_at_once() {
    let mut world = World::new();
    let bus = connect(&world).await;
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move { bus.request("agents/leak", comms("x")).await })
        })
        .collect();
    wait_until("all are in flight", || world.bus.in_flight() == 50).await;
    world.crash().await;
    for call in calls {
        assert_eq!(within("a pending call", call).await.unwrap(), Err(BusCallError::Recv));
    }
    wait_until("notifications have nowhere to go", || bus.notify("agents", comms("")).is_err()).await;
    assert_eq!(bus.notify("agents", comms("")), Err(BusCallError::Send));
}

#[tokio::test]
async fn calls_go_on_when_the_daemon_is_back_and_with_the_same_context() {
    let mut world = World::new();
    let context = meta(r#"{"actor":{"kind":"agent","id":"ada"}}"#);
    let bus = BusHandle::connect_as(&world.socket, context).await.unwrap();
    for _ in 0..5 {
        world.crash().await;
        let waiting = tokio::spawn({
            let bus = bus.clone();
            async move { bus.request("agents/who", comms("")).await }
        });
        tokio::task::yield_now().await;
        world.restart(Topics::in_memory(Retention::default()));
        // The call made while the daemon was away waited for it, or failed clearly if it was caught by the crash.
        match within("the waiting call", waiting).await.unwrap() {
            Ok(reply) => assert!(text(&reply.unwrap()).contains("agent:ada"), "the greeting came first"),
            Err(error) => assert_eq!(error, BusCallError::Recv),
        }
        let reply = within("a new call", bus.request("agents/who", comms(""))).await.unwrap().unwrap();
        assert!(text(&reply).contains("agent:ada"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_for_ever_for_a_daemon_that_stays_away() {
    let mut world = World::new();
    let bus = connect(&world).await;
    world.crash().await;
    wait_until("the death was noticed", || bus.notify("agents", comms("")).is_err()).await;
    assert_eq!(bus.request("agents/echo", comms("x")).await, Err(BusCallError::Send));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_dies_again_and_again_never_leaves_a_caller_hanging() {
    let mut world = World::new();
    let context = meta(r#"{"actor":{"kind":"agent","id":"ada"}}"#);
    let bus = BusHandle::connect_as(&world.socket, context).await.unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (bus, stop) = (bus.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut answered = 0_u32;
                while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                    match within("a reply or an error", bus.request("agents/who", comms(""))).await {
                        Ok(reply) => {
                            let reply = reply.unwrap();
                            assert!(text(&reply).contains("agent:ada"), "never somebody else: {reply:?}");
                            answered += 1;
                        }
                        Err(error) => assert_eq!(error, BusCallError::Recv),
                    }
                }
                answered
            })
        })
        .collect();
    for _ in 0..20 {
        let requests = &Arc::clone(&world.bus);
        wait_until("some calls went through", || {
            requests.stats().requests.load(std::sync::atomic::Ordering::Relaxed) > 50
        })
        .await;
        world.crash().await;
        world.restart(Topics::in_memory(Retention::default()));
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    for caller in callers {
        assert!(within("a caller", caller).await.unwrap() > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_resume_from_their_cursor_without_loss_or_duplicate() {
    let mut world = World::new();
    let topics = Topics::in_memory(Retention { events: 100_000, bytes: usize::MAX });
    world.crash().await;
    world.restart(Arc::clone(&topics));
    let bus = connect(&world).await;
    let mut all = bus.subscribe(Vec::new(), None).await.unwrap();
    let mut some = bus.subscribe(globs(&["a.c"]), None).await.unwrap();
    let reader = tokio::spawn(async move {
        for expected in 1..=600 {
            assert_eq!(event_seq(&within("an event", all.next()).await.unwrap()), expected);
        }
    });
    let mut n = 0;
    for _ in 0..6 {
        for _ in 0..100 {
            n += 1;
            publish(&topics, if n % 2 == 0 { "a.b" } else { "a.c" }, n);
        }
        // Only the connection dies; the events are still there when it is back.
        world.crash().await;
        world.restart(Arc::clone(&topics));
    }
    within("the reader", reader).await.unwrap();
    for expected in 1..=300 {
        let delivery = within("an event", some.next()).await.unwrap();
        assert_eq!(event_seq(&delivery), expected * 2 - 1);
    }
}

#[tokio::test]
async fn what_a_crash_took_is_told_by_one_gap() {
    let mut world = World::new();
    let path = world.dir.path().join("seq");
    world.crash().await;
    world.restart(kept(&path));
    let bus = connect(&world).await;
    let mut events = bus.subscribe(Vec::new(), None).await.unwrap();
    publish(world.bus.topics(), "a.b", 1);
    assert_eq!(event_seq(&within("the first", events.next()).await.unwrap()), 1);
    world.crash().await;
    world.restart(kept(&path));
    let head = world.bus.topics().head();
    publish(world.bus.topics(), "a.b", 2);
    let missed = within("the gap", events.next()).await.unwrap();
    let Delivery::Gap(gap) = missed else { panic!("{missed:?}") };
    assert_eq!(gap, Gap { from: 2, to: head, reason: GapReason::Crash });
    assert_eq!(event_seq(&within("the second", events.next()).await.unwrap()), head + 1);
}

#[tokio::test]
async fn a_stream_ends_when_the_daemon_that_came_back_does_not_know_its_cursor() {
    let mut world = World::new();
    let bus = connect(&world).await;
    let mut events = bus.subscribe(Vec::new(), None).await.unwrap();
    publish(world.bus.topics(), "a.b", 1);
    assert_eq!(event_seq(&within("the first", events.next()).await.unwrap()), 1);
    world.crash().await;
    world.restart(Topics::in_memory(Retention::default()));
    assert!(within("the end", events.next()).await.is_none());
    assert!(within("still the end", events.next()).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_consumer_loses_nothing_that_the_daemon_keeps() {
    const LAST: u64 = 20_000;
    let topics = Topics::in_memory(Retention { events: 100_000, bytes: usize::MAX });
    let world = World::build(ServerLimits::default(), topics);
    let bus = connect(&world).await;
    let mut slow = bus.subscribe(Vec::new(), None).await.unwrap();
    let mut quick = bus.subscribe(globs(&["a.c"]), None).await.unwrap();
    for n in 1..=LAST {
        publish(world.bus.topics(), if n == LAST { "a.c" } else { "a.b" }, n);
    }
    // Once the last event is here, the queue of the slow one has long overflowed; calls on the connection still work.
    assert_eq!(event_seq(&within("the last event", quick.next()).await.unwrap()), LAST);
    assert!(bus.request("agents/echo", comms("x")).await.unwrap().is_ok());
    for expected in 1..=LAST {
        assert_eq!(event_seq(&within("an event", slow.next()).await.unwrap()), expected);
    }
    wait_until("only two subscriptions are open", || world.bus.topics().subscriptions() == 2).await;
}

#[tokio::test]
async fn a_notification_sent_just_before_letting_go_still_arrives() {
    let world = World::new();
    for round in 1..=20 {
        let bus = connect(&world).await;
        let call = tokio::spawn({
            let bus = bus.clone();
            async move { bus.request("agents/wait", comms("x")).await }
        });
        wait_until("a call is at work", || world.record.started() == round).await;
        for _ in 0..20 {
            bus.notify("agents/note", comms("x")).unwrap();
        }
        call.abort();
        drop(bus);
        wait_until("all arrived", || world.record.notices().len() == round * 20).await;
        wait_until("the connection is gone", || world.connections() == 0).await;
    }
    wait_until("no work is left", || world.record.dropped() == 20).await;
}

#[tokio::test]
async fn letting_go_of_a_daemon_that_is_away_ends_the_attempts() {
    let mut world = World::new();
    let bus = connect(&world).await;
    world.crash().await;
    drop(bus);
    world.restart(Topics::in_memory(Retention::default()));
    let other = connect(&world).await;
    assert!(other.request("agents/echo", comms("x")).await.unwrap().is_ok());
    assert_eq!(world.connections(), 1, "nobody else came");
}

/// A daemon that greets and then takes nothing more from its socket.
async fn deaf_daemon(path: &Path) -> tokio::net::UnixStream {
    let listener = UnixListener::bind(path).unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
    let hello: Value = serde_json::from_str(&line).unwrap();
    let result = json!({
        "namespace": "helios.localbus.v1", "namespaces": [], "dialects": [],
        "server": { "name": "deaf", "version": "0" }, "head": 0,
        "limits": { "max_payload_bytes": 0, "max_line_bytes": 0, "max_in_flight": 0, "max_subscriptions": 0 },
    });
    let reply = json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result });
    stream.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn notifications_to_a_daemon_that_does_not_read_are_dropped_with_full() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deaf.sock");
    let daemon = tokio::spawn({
        let path = path.clone();
        async move { deaf_daemon(&path).await }
    });
    wait_until("it listens", || path.exists()).await;
    let bus = within("the greeting", BusHandle::connect(&path)).await.unwrap();
    let _stream = daemon.await.unwrap();
    let large = comms(&"x".repeat(64 * 1024));
    let fills_up = async {
        let mut sent = 0_usize;
        loop {
            match bus.notify("agents/note", large.clone()) {
                Ok(()) => sent += 1,
                Err(error) => return (sent, error),
            }
            tokio::task::yield_now().await;
        }
    };
    let (sent, error) = within("the buffer is full", fills_up).await;
    assert_eq!(error, BusCallError::Full);
    assert!(sent < 200, "bounded: {sent} messages of 64 KiB");
    // A request waits for room, and no longer than its caller wants to.
    assert!(bus.request("agents/echo", comms("x")).now_or_never().is_none());
    let hurried = bus.with(meta(r#"{"timeout_ms":1}"#));
    let error =
        within("the deadline", hurried.request("agents/echo", comms("x"))).await.unwrap().unwrap_err();
    assert_eq!(error.code, swb_proto::error::ERR_TIMEOUT);
}

#[tokio::test]
async fn lines_that_make_no_sense_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("odd.sock");
    let daemon = tokio::spawn({
        let path = path.clone();
        async move {
            let mut stream = deaf_daemon(&path).await;
            let mut line = String::new();
            let odd = "nonsense\n{}\n[]\n\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"?\"}}\n\
                {\"jsonrpc\":\"2.0\",\"id\":\"00000000-0000-0000-0000-000000000009\",\"result\":{}}\n\
                {\"jsonrpc\":\"2.0\",\"method\":\"events.event\",\"params\":{\"subscription\":\"sub_9\"}}\n";
            stream.write_all(odd.as_bytes()).await.unwrap();
            BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
            let request: Value = serde_json::from_str(&line).unwrap();
            let reply =
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": request["params"], "novelty": 1 });
            stream.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
            stream
        }
    });
    wait_until("it listens", || path.exists()).await;
    let bus = within("the greeting", BusHandle::connect(&path)).await.unwrap();
    let reply = within("the reply", bus.request("agents/echo", comms("x"))).await.unwrap().unwrap();
    assert_eq!(text(&reply), "x");
    drop(daemon.await.unwrap());
}
