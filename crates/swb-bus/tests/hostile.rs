//! Bad input: each case costs its sender one error, never the connection, never anybody else.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use serde_json::{Value, json};
use support::wire::{Wire, command, message, rpc};
use support::{World, wait_until, within};
use swb_bus::transport::ServerLimits;
use swb_proto::MAX_PAYLOAD_BYTES;

/// Sends bytes that must be answered with one error, and shows that the connection and its neighbour are well.
async fn refused(client: &mut Wire, neighbour: &mut Wire, bytes: &[u8]) -> Value {
    client.send_bytes(bytes).await;
    client.send_bytes(b"\n").await;
    let reply = client.recv().await;
    client.assert_usable().await;
    neighbour.assert_usable().await;
    reply
}

#[tokio::test]
async fn every_kind_of_nonsense_gets_one_error_and_the_connection_lives() {
    let world = World::new();
    let (mut client, mut neighbour) = (world.client().await, world.client().await);
    for (bytes, code) in [
        (&b"nonsense"[..], -32700),
        (b"{", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", -32700),
        (b"\xff", -32700),
        (b"\x00", -32700),
        (b"null", -32600),
        (b"42", -32600),
        (b"\"text\"", -32600),
        (b"[1]", -32600),
        (b"{}", -32600),
        (b"{\"id\":1,\"method\":\"$/ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"$/ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"$/ping\"}", -32600),
    ] {
        let shown = String::from_utf8_lossy(bytes).into_owned();
        let reply = refused(&mut client, &mut neighbour, bytes).await;
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &Value::Null), "{shown}");
        assert_eq!(reply["jsonrpc"], "2.0", "a line of no known dialect is answered in JSON-RPC");
    }
    assert_eq!(world.connections(), 2);
}

#[tokio::test]
async fn every_defect_of_a_command_has_its_reason() {
    let world = World::new();
    let (mut client, mut neighbour) = (world.client().await, world.client().await);
    for (more, reason) in [
        (json!({ "type": "query" }), "INVALID_ENVELOPE_TYPE"),
        (json!({ "type": "" }), "MISSING_REQUIRED_FIELD"),
        (json!({ "type": "event" }), "NOT_A_COMMAND"),
        (json!({ "id": null }), "MISSING_REQUIRED_FIELD"),
        (json!({ "method": null }), "MISSING_REQUIRED_FIELD"),
        (json!({ "method": "a b" }), "INVALID_METHOD"),
        (json!({ "ts": null }), "MISSING_REQUIRED_FIELD"),
        (json!({ "ts": "2026-02-26T00:00:00.000" }), "INVALID_TIMESTAMP"),
        (json!({ "ts": "2026-02-30T00:00:00Z" }), "INVALID_TIMESTAMP"),
        (json!({ "payload": null }), "MISSING_REQUIRED_FIELD"),
        (json!({ "payload": [] }), "VALIDATION_ERROR"),
        (json!({ "actor": null }), "MISSING_REQUIRED_FIELD"),
        (json!({ "workspace_id": null }), "MISSING_CONTEXT_ID"),
        (json!({ "session_id": " " }), "MISSING_CONTEXT_ID"),
        (json!({ "terminal_id": "../../etc" }), "INVALID_CONTEXT_ID"),
    ] {
        let line = command("req_1", "agents.echo", message("x"), more.clone());
        let reply = refused(&mut client, &mut neighbour, line.as_bytes()).await;
        assert_eq!((&reply["type"], &reply["status"]), (&json!("response"), &json!("error")), "{more}");
        assert_eq!(reply["error"]["code"], "INVALID_REQUEST", "{more}");
        assert_eq!(reply["error"]["details"]["reason"], reason, "{more}");
        assert_eq!(reply["id"].is_null(), more.get("id").is_some(), "{more}");
    }
}

#[tokio::test]
async fn a_payload_at_the_limit_passes_and_one_byte_more_does_not() {
    let world = World::new();
    let (mut client, mut neighbour) = (world.client().await, world.client().await);
    let filled = |bytes: usize| {
        let frame = json!({ "channel_id": "c", "content": "" }).to_string().len();
        json!({ "channel_id": "c", "content": "x".repeat(bytes - frame) })
    };
    assert_eq!(filled(MAX_PAYLOAD_BYTES).to_string().len(), MAX_PAYLOAD_BYTES);
    let reply = client.ask(&rpc(1, "agents.echo", filled(MAX_PAYLOAD_BYTES))).await;
    assert_eq!(reply["result"], filled(MAX_PAYLOAD_BYTES));
    let reply = client.ask(&command("req_1", "agents.echo", filled(MAX_PAYLOAD_BYTES), json!({}))).await;
    assert_eq!(reply["result"], filled(MAX_PAYLOAD_BYTES));
    let line = rpc(2, "agents.echo", filled(MAX_PAYLOAD_BYTES + 1));
    let reply = refused(&mut client, &mut neighbour, line.as_bytes()).await;
    assert_eq!((&reply["error"]["data"]["reason"], &reply["id"]), (&json!("BACKPRESSURE"), &json!(2)));
    let line = command("req_2", "agents.echo", filled(MAX_PAYLOAD_BYTES + 1), json!({}));
    let reply = refused(&mut client, &mut neighbour, line.as_bytes()).await;
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!("INVALID_REQUEST"), &json!("req_2")));
    assert_eq!(reply["error"]["details"]["reason"], "BACKPRESSURE");
    assert_eq!(reply["error"]["retryable"], false);
}

/// Peak resident memory of this process, in bytes. Tests run one to a process under nextest.
fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_line_of_64_mib_is_dropped_while_it_streams_and_answered_with_its_id() {
    const MIB: usize = 1024 * 1024;
    let world = World::new();
    let (mut client, mut neighbour) = (world.client().await, world.client().await);
    let chunk = vec![b'x'; MIB];
    let before = peak_resident_bytes();
    for (head, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"agents.echo","params":{"content":""#, json!(7)),
        (r#"{"id":"req_7","type":"command","method":"agents.echo","payload":{"content":""#, json!("req_7")),
        ("", Value::Null),
    ] {
        client.send_bytes(head.as_bytes()).await;
        for _ in 0..64 {
            client.send_bytes(&chunk).await;
        }
        neighbour.assert_usable().await;
        client.send_bytes(b"\"}}\n").await;
        let reply = client.recv().await;
        assert_eq!(reply["id"], id);
        let reason = if id == "req_7" { &reply["error"]["details"] } else { &reply["error"]["data"] };
        assert_eq!(reason["reason"], "BACKPRESSURE", "{reply}");
        client.assert_usable().await;
    }
    let grown = peak_resident_bytes() - before;
    assert!(grown < 16 * MIB as u64, "the process grew by {grown} bytes");
}

#[tokio::test]
async fn an_id_that_is_in_flight_is_refused_and_free_again_afterwards() {
    let world = World::new();
    let mut client = world.client().await;
    client.send(&rpc(1, "agents.wait", message("x"))).await;
    wait_until("it is at work", || world.record.started() == 1).await;
    let reply = client.ask(&rpc(1, "agents.echo", message("y"))).await;
    assert_eq!((&reply["id"], &reply["error"]["data"]["reason"]), (&json!(1), &json!("DUPLICATE_ID")));
    world.record.release("x");
    assert_eq!(client.recv().await["result"]["content"], "x", "the first one lives on");
    assert_eq!(client.call(1, "agents.echo", message("z")).await["content"], "z");
    // The number 1 and the text "1" are two ids, and each connection has its own.
    client.send(&rpc(1, "agents.wait", message("later"))).await;
    let reply = client.ask(r#"{"jsonrpc":"2.0","id":"1","method":"$/ping"}"#).await;
    assert_eq!(reply["id"], "1");
    assert_eq!(world.client().await.call(1, "agents.echo", message("z")).await["content"], "z");
}

#[tokio::test]
async fn half_a_line_and_a_stall_hold_up_nobody() {
    let world = World::new();
    let (mut client, mut neighbour) = (world.client().await, world.client().await);
    let line = rpc(1, "agents.echo", message("whole after all"));
    let (first, rest) = line.split_at(20);
    client.send_bytes(first.as_bytes()).await;
    for _ in 0..100 {
        neighbour.assert_usable().await;
    }
    client.send_bytes(rest.as_bytes()).await;
    client.send_bytes(b"\r\n\n\n").await;
    assert_eq!(client.recv().await["result"]["content"], "whole after all");
    client.assert_usable().await;
    // Half a line and good-bye.
    client.send_bytes(first.as_bytes()).await;
    drop(client);
    wait_until("the stalled client is gone", || world.connections() == 1).await;
    neighbour.assert_usable().await;
}

#[tokio::test]
async fn a_client_that_never_reads_costs_a_bounded_amount_and_holds_up_nobody() {
    const MIB: u64 = 1024 * 1024;
    let world = World::new();
    let (deaf, mut neighbour) = (world.client().await, world.client().await);
    let before = peak_resident_bytes();
    let line = format!("{}\n", rpc(1, "agents.big", message("100000")));
    // It asks for 100 MB in all. The daemon stops reading it long before that.
    let asks = async {
        for _ in 0..1000 {
            if deaf.writer.try_write(line.as_bytes()).is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within("the deaf client is full", asks).await;
    let mut events = world.client().await;
    events.call(1, "events.subscribe", json!({})).await;
    for n in 0..100 {
        neighbour.assert_usable().await;
        support::publish(world.bus.topics(), "a.b", n);
        assert_eq!(events.recv().await["params"]["event"]["seq"], n + 1);
    }
    let grown = peak_resident_bytes() - before;
    assert!(grown < 16 * MIB, "the process grew by {grown} bytes");
    drop(deaf);
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_in_the_socket() {
    let world = World::with_limits(ServerLimits { in_flight: 4, ..ServerLimits::default() });
    let mut client = world.client().await;
    for id in 1..=20 {
        client.send(&rpc(id, "agents.wait", message("x"))).await;
    }
    wait_until("as many as may are at work", || world.record.started() == 4).await;
    let mut neighbour = world.client().await;
    neighbour.assert_usable().await;
    assert_eq!(world.record.started(), 4);
    world.record.release("x");
    let mut ids: Vec<u64> = Vec::new();
    for _ in 1..=20 {
        ids.push(client.recv().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>(), "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_stops_asking_still_gets_its_slow_answers_and_events() {
    let world = World::new();
    let mut client = world.client().await;
    client.call(1, "events.subscribe", json!({})).await;
    client.send(&rpc(2, "agents.wait", message("x"))).await;
    wait_until("it is at work", || world.record.started() == 1).await;
    let mut writer = client.writer;
    let flood = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let burst = format!("{}\n", rpc(3, "$/ping", json!({}))).repeat(500);
        while writer.write_all(burst.as_bytes()).await.is_ok() {}
    });
    // Read as bytes, so that this side always keeps up and the daemon always has another line to take.
    let (mut seen, mut chunk) = (Vec::new(), vec![0; 256 * 1024]);
    let (mut answered, mut told, mut asked) = (false, false, false);
    let everything = async {
        use tokio::io::AsyncReadExt;
        while !(answered && told) {
            let bytes = client.reader.read(&mut chunk).await.unwrap();
            seen.extend_from_slice(&chunk[..bytes]);
            answered |= memchr::memmem::find(&seen, b"\"id\":2,").is_some();
            told |= memchr::memmem::find(&seen, b"events.event").is_some();
            // What may still be the beginning of a find stays.
            let kept = seen.len().min(64);
            seen.drain(..seen.len() - kept);
            if !std::mem::replace(&mut asked, true) {
                world.record.release("x");
                support::publish(world.bus.topics(), "a.b", 1);
            }
        }
    };
    within("the slow answer and the event, in the middle of a flood", everything).await;
    flood.abort();
}

#[tokio::test]
async fn more_connections_than_places_are_told_and_turned_away() {
    let world = World::with_limits(ServerLimits { connections: 2, ..ServerLimits::default() });
    let (mut first, mut second) = (world.client().await, world.client().await);
    first.assert_usable().await;
    second.assert_usable().await;
    let mut third = world.client().await;
    let refusal = third.recv().await;
    assert_eq!(refusal["error"]["data"]["reason"], "TOO_MANY_CONNECTIONS");
    assert!(third.next().await.is_none(), "and closed");
    first.assert_usable().await;
    drop(second);
    wait_until("a place is free", || world.connections() == 1).await;
    world.client().await.assert_usable().await;
}

#[tokio::test]
async fn a_rude_crowd_leaves_nothing_behind() {
    let world = World::new();
    for n in 0..200_u32 {
        let mut client = world.client().await;
        match n % 4 {
            0 => {}
            1 => client.send_bytes(b"{\"jsonrpc\":").await,
            2 => client.send(&rpc(1, "agents.wait", message("x"))).await,
            _ => client.send(&rpc(1, "events.subscribe", json!({}))).await,
        }
    }
    let topics = world.bus.topics();
    wait_until("all connections are gone", || world.connections() == 0).await;
    wait_until("all subscriptions are gone", || topics.subscriptions() == 0).await;
    wait_until("no request is in flight", || world.bus.in_flight() == 0).await;
    wait_until("all work was dropped", || world.record.dropped() == world.record.started()).await;
}
