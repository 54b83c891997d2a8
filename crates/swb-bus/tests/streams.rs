//! Events over the socket: subscribe, replay, gap, unsubscribe, in both dialects.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::wire::{Wire, command, message, rpc};
use support::{World, publish, wait_until};
use swb_bus::topics::{Retention, Topics};
use swb_bus::transport::ServerLimits;
use swb_proto::error::{ERR_CURSOR_AHEAD, ERR_INVALID_PARAMS, ERR_OVERLOADED};

fn keeping(events: usize) -> World {
    World::build(ServerLimits::default(), Topics::in_memory(Retention { events, bytes: usize::MAX }))
}

/// The next line, which must be an event of `subscription` in JSON-RPC.
async fn rpc_event(client: &mut Wire, subscription: &str) -> Value {
    let mut line = client.recv().await;
    assert_eq!((&line["jsonrpc"], &line["method"]), (&json!("2.0"), &json!("events.event")), "{line}");
    assert!(line.get("id").is_none(), "a notification: {line}");
    assert_eq!(line["params"]["subscription"], subscription);
    line["params"]["event"].take()
}

#[tokio::test]
async fn events_come_as_notifications_to_a_json_rpc_subscriber() {
    let world = World::new();
    let mut client = world.client().await;
    let opened = client.call(1, "events.subscribe", json!({ "topics": ["a.*"] })).await;
    assert_eq!(opened, json!({ "subscription": "sub_1", "after": 0, "head": 0 }));
    publish(world.bus.topics(), "b.c", 1);
    publish(world.bus.topics(), "a.b", 2);
    let event = rpc_event(&mut client, "sub_1").await;
    assert_eq!(
        (&event["type"], &event["topic"], &event["payload"]),
        (&json!("event"), &json!("a.b"), &json!({ "n": 2 }))
    );
    assert_eq!((&event["seq"], &event["sequence"]), (&json!(2), &json!(1)));
    assert!(event["id"].as_str().unwrap().starts_with("evt_") && event["ts"].is_string());
}

#[tokio::test]
async fn events_come_as_envelopes_to_an_envelope_subscriber() {
    let world = World::new();
    let mut client = world.client().await;
    let line = command("req_1", "events.subscribe", json!({}), json!({ "workspace_id": null }));
    let opened = client.ask(&line).await;
    assert_eq!(opened["result"]["subscription"], "sub_1");
    let mut params = message("agent.done");
    params["_meta"] = json!({ "correlation_id": "cor_1", "session_id": "sess_1" });
    client.send(&rpc(2, "agents.publish", params)).await;
    let (first, second) = (client.recv().await, client.recv().await);
    let event = if first["type"] == "event" { first } else { second };
    assert_eq!((&event["type"], &event["topic"]), (&json!("event"), &json!("agent.done")));
    assert_eq!((&event["subscription"], &event["seq"]), (&json!("sub_1"), &json!(1)));
    assert_eq!((&event["correlation_id"], &event["session_id"]), (&json!("cor_1"), &json!("sess_1")));
    assert_eq!(event["actor"], json!({ "kind": "user", "id": "user_local" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_replays_over_the_socket_and_goes_live_without_gap_or_duplicate() {
    const LAST: u64 = 5000;
    let world = keeping(100_000);
    for n in 1..=1000 {
        publish(world.bus.topics(), "a.b", n);
    }
    let publisher = tokio::spawn({
        let topics = Arc::clone(world.bus.topics());
        async move {
            for n in 1001..=LAST {
                publish(&topics, "a.b", n);
                if n % 32 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    let mut client = world.client().await;
    let opened = client.call(1, "events.subscribe", json!({ "after": 10 })).await;
    assert_eq!(opened["after"], 10);
    for seq in 11..=LAST {
        assert_eq!(rpc_event(&mut client, "sub_1").await["seq"], seq);
    }
    publisher.await.unwrap();
    client.assert_usable().await;
}

#[tokio::test]
async fn a_trimmed_cursor_gets_one_gap_in_either_dialect() {
    let world = keeping(5);
    for n in 1..=20 {
        publish(world.bus.topics(), "a.b", n);
    }
    let gap = json!({ "from": 4, "to": 15, "reason": "trimmed" });
    let mut client = world.client().await;
    client.call(1, "events.subscribe", json!({ "after": 3 })).await;
    let event = rpc_event(&mut client, "sub_1").await;
    assert_eq!((&event["topic"], &event["seq"], &event["payload"]), (&json!("bus.gap"), &json!(15), &gap));
    assert!(event.get("sequence").is_none(), "a gap is no part of the order");
    for seq in 16..=20 {
        assert_eq!(rpc_event(&mut client, "sub_1").await["seq"], seq);
    }
    let mut client = world.client().await;
    client.ask(&command("req_1", "events.subscribe", json!({ "after": 3 }), json!({}))).await;
    let event = client.recv().await;
    assert_eq!(
        (&event["type"], &event["topic"], &event["payload"]),
        (&json!("event"), &json!("bus.gap"), &gap)
    );
    assert_eq!(client.recv().await["seq"], 16);
}

#[tokio::test]
async fn an_unsubscribed_stream_is_silent_and_others_go_on() {
    let world = World::new();
    let mut client = world.client().await;
    client.call(1, "events.subscribe", json!({ "topics": ["a.*"] })).await;
    client.call(2, "events.subscribe", json!({ "topics": ["*"] })).await;
    assert_eq!(client.call(3, "events.unsubscribe", json!({ "subscription": "sub_1" })).await, json!({}));
    publish(world.bus.topics(), "a.b", 1);
    assert_eq!(rpc_event(&mut client, "sub_2").await["seq"], 1);
    client.assert_usable().await;
    let reply = client.ask(&rpc(4, "events.unsubscribe", json!({ "subscription": "sub_1" }))).await;
    assert_eq!(reply["error"]["code"], ERR_INVALID_PARAMS);
    assert_eq!(reply["error"]["data"]["reason"], "UNKNOWN_SUBSCRIPTION");
    assert_eq!(world.bus.topics().subscriptions(), 1);
    // One connection's names mean nothing on another.
    let reply =
        world.client().await.ask(&rpc(1, "events.unsubscribe", json!({ "subscription": "sub_2" }))).await;
    assert_eq!(reply["error"]["data"]["reason"], "UNKNOWN_SUBSCRIPTION");
}

#[tokio::test]
async fn what_cannot_be_subscribed_to_is_refused_with_a_reason() {
    let world = World::with_limits(ServerLimits { subscriptions: 2, ..ServerLimits::default() });
    let mut client = world.client().await;
    let reply = client.ask(&rpc(1, "events.subscribe", json!({ "after": 1 }))).await;
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["data"]["head"]),
        (&json!(ERR_CURSOR_AHEAD), &json!(0))
    );
    for topics in [json!(["A.b"]), json!([""]), json!("a.b"), json!(vec!["a"; 65])] {
        let reply = client.ask(&rpc(1, "events.subscribe", json!({ "topics": topics }))).await;
        assert_eq!(reply["error"]["code"], ERR_INVALID_PARAMS, "{topics}");
    }
    client.call(1, "events.subscribe", json!({})).await;
    client.call(2, "events.subscribe", json!({})).await;
    let reply = client.ask(&rpc(3, "events.subscribe", json!({}))).await;
    assert_eq!(reply["error"]["code"], ERR_OVERLOADED);
    assert_eq!(reply["error"]["data"]["reason"], "TOO_MANY_SUBSCRIPTIONS");
}

#[tokio::test]
async fn a_subscriber_that_stops_reading_lags_alone_and_is_told_from_where_to_go_on() {
    let world = keeping(200);
    let (mut slow, mut quick) = (world.client().await, world.client().await);
    slow.call(1, "events.subscribe", json!({})).await;
    quick.call(1, "events.subscribe", json!({})).await;
    // More than fits into the socket and the connection's buffer.
    const LAST: u64 = 4000;
    for n in 1..=LAST {
        let payload = json!({ "fill": "x".repeat(1000) });
        world.bus.topics().publish("a.b", &swb_proto::Meta::default(), None, &payload).unwrap();
        assert_eq!(rpc_event(&mut quick, "sub_1").await["seq"], n, "others get everything");
    }
    // Everything, in order, with announced holes: nothing twice, nothing lost in silence.
    let (mut next, mut gaps) = (1, 0);
    while next <= LAST {
        let event = rpc_event(&mut slow, "sub_1").await;
        if event["topic"] == "bus.gap" {
            assert_eq!(
                (&event["payload"]["from"], &event["payload"]["reason"]),
                (&json!(next), &json!("lagged"))
            );
            next = event["payload"]["to"].as_u64().unwrap() + 1;
            gaps += 1;
        } else {
            assert_eq!(event["seq"], next);
            next += 1;
        }
    }
    assert!(gaps >= 1);
    slow.assert_usable().await;
}

#[tokio::test]
async fn subscriptions_of_one_connection_share_it_fairly() {
    let world = keeping(100_000);
    let mut client = world.client().await;
    client.call(1, "events.subscribe", json!({ "topics": ["loud.*"] })).await;
    client.call(2, "events.subscribe", json!({ "topics": ["quiet.*"] })).await;
    let publisher = tokio::spawn({
        let topics = Arc::clone(world.bus.topics());
        async move {
            publish(&topics, "quiet.x", 1);
            for _ in 0..20_000 {
                let payload = json!({ "fill": "x".repeat(500) });
                topics.publish("loud.x", &swb_proto::Meta::default(), None, &payload).unwrap();
            }
        }
    });
    publisher.await.unwrap();
    let mut before = 0;
    while client.recv().await["params"]["subscription"] != "sub_2" {
        before += 1;
    }
    assert!(before < 15_000, "the quiet one waited for {before} events of the loud one");
}

#[tokio::test]
async fn a_subscription_ends_with_its_connection() {
    let world = World::new();
    for _ in 0..20 {
        let mut client = world.client().await;
        client.call(1, "events.subscribe", json!({})).await;
        publish(world.bus.topics(), "a.b", 1);
    }
    wait_until("no subscription is left", || world.bus.topics().subscriptions() == 0).await;
}
