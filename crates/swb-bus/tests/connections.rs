//! The life of a connection: who gets in, what is owed at the end, what a vanished client leaves behind (nothing).
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use support::wire::{message, rpc};
use support::{PATIENCE, World, publish, wait_until, within};
use swb_bus::transport::{ControlServer, ServerLimits};
use swb_proto::error::ERR_SHUTTING_DOWN;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn the_socket_is_for_its_owner_alone() {
    let world = World::new();
    let mode = std::fs::metadata(&world.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_path_that_is_taken_is_not_taken_over() {
    let world = World::new();
    let second = ControlServer::listen(Arc::clone(&world.bus), &world.socket, ServerLimits::default());
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    world.client().await.assert_usable().await;
}

#[tokio::test]
async fn a_client_that_finished_writing_still_gets_its_answers() {
    let world = World::new();
    let mut client = world.client().await;
    client.send(&rpc(1, "agents.wait", message("x"))).await;
    client.send(&rpc(2, "agents.echo", message("y"))).await;
    client.writer.shutdown().await.unwrap();
    assert_eq!(client.recv().await["id"], 2);
    world.record.release("x");
    assert_eq!(client.recv().await["result"]["content"], "x");
    assert!(client.next().await.is_none(), "then the daemon closes too");
    wait_until("the connection is gone", || world.connections() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_answers_are_owed_and_paid_to_a_client_that_finished_writing() {
    let world = World::new();
    for _ in 0..10 {
        let mut client = world.client().await;
        let lines: String = (0..60).map(|id| rpc(id, "agents.big", message("300000")) + "\n").collect();
        client.send_bytes(lines.as_bytes()).await;
        client.writer.shutdown().await.unwrap();
        for id in 0..60 {
            assert_eq!(client.recv().await["id"], id);
        }
        assert!(client.next().await.is_none());
    }
}

#[tokio::test]
async fn requests_beyond_the_in_flight_limit_are_owed_to_a_client_that_finished_writing() {
    let world = World::with_limits(ServerLimits { in_flight: 2, ..ServerLimits::default() });
    let mut client = world.client().await;
    for id in 0..10 {
        client.send(&rpc(id, "agents.wait", message("x"))).await;
    }
    client.writer.shutdown().await.unwrap();
    wait_until("two are at work", || world.record.started() == 2).await;
    world.record.release("x");
    let mut ids = Vec::new();
    while let Some(reply) = client.next().await {
        ids.push(reply["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_vanished_client_leaves_nothing_behind() {
    let world = World::new();
    let mut client = world.client().await;
    client.call(1, "events.subscribe", json!({})).await;
    client.call(2, "events.subscribe", json!({ "topics": ["a.*"] })).await;
    for id in 3..10 {
        client.send(&rpc(id, "agents.wait", message("x"))).await;
    }
    wait_until("all are at work", || world.record.started() == 7).await;
    assert_eq!((world.connections(), world.bus.topics().subscriptions()), (1, 2));
    drop(client);
    wait_until("its work was dropped", || world.record.dropped() == 7).await;
    wait_until("its connection is gone", || world.connections() == 0).await;
    assert_eq!((world.bus.in_flight(), world.bus.topics().subscriptions()), (0, 0));
    assert_eq!(world.record.finished(), 0);
}

#[tokio::test]
async fn a_client_that_vanishes_at_its_limit_is_noticed_too() {
    let world = World::with_limits(ServerLimits { in_flight: 1, ..ServerLimits::default() });
    let mut client = world.client().await;
    client.send(&rpc(1, "agents.wait", message("x"))).await;
    wait_until("it is at work", || world.record.started() == 1).await;
    drop(client);
    wait_until("its work was dropped", || world.record.dropped() == 1).await;
    wait_until("its connection is gone", || world.connections() == 0).await;
}

#[tokio::test]
async fn a_client_that_half_closes_and_then_vanishes_is_noticed() {
    let world = World::new();
    let mut client = world.client().await;
    client.send(&rpc(1, "agents.wait", message("x"))).await;
    client.writer.shutdown().await.unwrap();
    wait_until("it is at work", || world.record.started() == 1).await;
    drop(client);
    wait_until("its work was dropped", || world.record.dropped() == 1).await;
    wait_until("its connection is gone", || world.connections() == 0).await;
}

#[tokio::test]
async fn what_was_written_before_hanging_up_still_counts() {
    let world = World::new();
    let mut client = world.client().await;
    // The answers can no longer be delivered; the notifications between the questions must be.
    let mut everything = String::new();
    for n in 0..500_u64 {
        let note = json!({ "jsonrpc": "2.0", "method": format!("agents.note.n{n}"), "params": message("x") });
        everything.push_str(&format!("{}\n{note}\n", rpc(n, "$/ping", json!({}))));
    }
    client.send_bytes(everything.as_bytes()).await;
    drop(client);
    wait_until("every notification arrived", || world.record.notices().len() == 500).await;
    wait_until("the connection is gone", || world.connections() == 0).await;
}

#[tokio::test]
async fn closing_pays_what_is_owed_and_refuses_what_is_new() {
    let mut world = World::new();
    let (mut client, mut idle) = (world.client().await, world.client().await);
    idle.assert_usable().await;
    client.call(1, "events.subscribe", json!({})).await;
    client.send(&rpc(2, "agents.wait", message("x"))).await;
    wait_until("it is at work", || world.record.started() == 1).await;
    let bus = Arc::clone(&world.bus);
    let draining = tokio::spawn(async move { bus.shutdown(PATIENCE).await });
    wait_until("new requests are refused", || {
        world.bus.handle().notify("agents", support::comms("")).is_err()
    })
    .await;
    let refused = client.ask(&rpc(3, "agents.echo", message("late"))).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(ERR_SHUTTING_DOWN)));
    publish(world.bus.topics(), "bus.stopping", 1);
    world.record.release("x");
    within("the drain", draining).await.unwrap();
    let server = world.server.take().unwrap();
    let closing = tokio::spawn(async move { server.close(PATIENCE).await });
    let mut seen: Vec<Value> = Vec::new();
    while let Some(line) = client.next().await {
        seen.push(line);
    }
    assert!(seen.iter().any(|line| line["id"] == 2 && line["result"]["content"] == "x"), "{seen:?}");
    assert!(seen.iter().any(|line| line["params"]["event"]["topic"] == "bus.stopping"), "{seen:?}");
    assert!(idle.next().await.is_none());
    within("the close", closing).await.unwrap();
    assert_eq!(world.connections(), 0);
    assert!(tokio::net::UnixStream::connect(&world.socket).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn closing_does_not_wait_for_ever_for_work_or_for_a_deaf_client() {
    let mut world = World::new();
    let mut busy = world.client().await;
    busy.send(&rpc(1, "agents.leak", message("x"))).await;
    let mut deaf = world.client().await;
    for id in 0..50 {
        deaf.send(&rpc(id, "agents.big", message("100000"))).await;
    }
    wait_until("both are served", || world.bus.in_flight() == 1 && world.connections() == 2).await;
    within("the close", world.server.take().unwrap().close(Duration::from_millis(20))).await;
    wait_until("all connections are gone", || world.connections() == 0).await;
    wait_until("nothing is in flight", || world.bus.in_flight() == 0).await;
}
