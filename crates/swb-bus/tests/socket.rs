//! The control socket: two dialects, told apart line by line, answered in kind.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use serde_json::{Value, json};
use support::wire::{command, message, rpc};
use support::{World, wait_until};
use swb_proto::error::{ERR_CANCELLED, ERR_INVALID_PARAMS, ERR_METHOD_NOT_FOUND};

#[tokio::test]
async fn each_line_is_answered_in_its_own_dialect() {
    let world = World::new();
    let mut client = world.client().await;
    let reply = client.ask(&rpc(1, "agents.echo.handle", message("hi"))).await;
    assert_eq!(
        reply,
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "channel_id": "chan_1", "content": "hi" } })
    );
    let mut reply = client.ask(&command("req_1", "agents.echo.handle", message("hi"), json!({}))).await;
    assert!(reply["ts"].take().is_string());
    let result = json!({ "channel_id": "chan_1", "content": "hi" });
    let expected = json!({
        "id": "req_1", "type": "response", "status": "ok", "ts": null, "result": result, "error": null,
    });
    assert_eq!(reply, expected);
}

#[tokio::test]
async fn errors_have_a_number_in_one_dialect_and_a_name_in_the_other() {
    let world = World::new();
    let mut client = world.client().await;
    let reply = client.ask(&rpc(1, "agents.refuse", message("no"))).await;
    let error = json!({ "code": -32000, "message": "no", "data": { "reason": "REFUSED" } });
    assert_eq!(reply, json!({ "jsonrpc": "2.0", "id": 1, "error": error }));
    let reply = client.ask(&command("req_1", "agents.refuse", message("no"), json!({}))).await;
    let error = json!({
        "code": "INTERNAL_ERROR", "message": "no", "retryable": false, "details": { "reason": "REFUSED" },
    });
    assert_eq!(
        (&reply["status"], &reply["result"], &reply["error"]),
        (&json!("error"), &Value::Null, &error)
    );
    let reply = client.ask(&command("req_2", "nobody.knows", json!({}), json!({}))).await;
    assert_eq!(reply["error"]["code"], "INVALID_REQUEST");
    assert_eq!(reply["error"]["details"]["reason"], "METHOD_NOT_FOUND");
}

#[tokio::test]
async fn a_response_has_the_commands_id_and_its_correlation() {
    let world = World::new();
    let mut client = world.client().await;
    for (id, method) in [("req_a", "agents.echo"), ("req_b", "agents.wait"), ("req_c", "nobody.x")] {
        world.record.release("x");
        let line = command(id, method, message("x"), json!({ "correlation_id": "cor_7" }));
        let reply = client.ask(&line).await;
        assert_eq!((&reply["id"], &reply["correlation_id"]), (&json!(id), &json!("cor_7")), "{method}");
    }
    let reply = client.ask(&command("req_d", "agents.echo", message("x"), json!({}))).await;
    assert!(reply.get("correlation_id").is_none(), "{reply}");
}

#[tokio::test]
async fn dotted_and_slashed_names_mean_the_same_method() {
    let world = World::new();
    let mut client = world.client().await;
    for name in ["agents.method.x", "agents/method/x", "agents.method/x"] {
        let result = client.call(1, name, message("")).await;
        assert_eq!(result["content"], "agents/method/x");
        let reply = client.ask(&command("req_1", name, message(""), json!({}))).await;
        assert_eq!(reply["result"]["content"], "agents/method/x");
    }
}

#[tokio::test]
async fn json_rpc_is_answered_by_the_book() {
    let world = World::new();
    let mut client = world.client().await;
    // Ids come back as they were written, whatever their type.
    for id in ["1", "\"a\"", "-7", "1.5", "null", "\"\\u0061\\\"\""] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"$/ping"}}"#);
        let expected: Value = serde_json::from_str(id).unwrap();
        let reply = client.ask(&line).await;
        assert_eq!((&reply["id"], reply["result"]["head"].as_u64()), (&expected, Some(0)));
    }
    for (line, code, id) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"foobar"}"#, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"agents","params":[1]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"agents","params":{"content":1}}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"$/ping"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","method":"foobar, "params":"bar","baz]"#, -32700, Value::Null),
    ] {
        let reply = client.ask(line).await;
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &id), "{line}");
        assert_eq!(reply["jsonrpc"], "2.0");
    }
}

#[tokio::test]
async fn batches_are_refused_and_nothing_in_them_runs() {
    let world = World::new();
    let mut client = world.client().await;
    let inner = rpc(1, "agents.publish", message("a.b"));
    for batch in ["[]".to_owned(), format!("[{inner}]"), format!("[{inner},{inner}]")] {
        let reply = client.ask(&batch).await;
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32600), &Value::Null));
        assert_eq!(reply["error"]["data"]["reason"], "BATCH_NOT_SUPPORTED");
    }
    assert_eq!(world.bus.topics().head(), 0);
}

#[tokio::test]
async fn a_notification_is_never_answered_not_even_with_an_error() {
    let world = World::new();
    let mut client = world.client().await;
    for notification in [
        r#"{"jsonrpc":"2.0","method":"agents.note","params":{"channel_id":"c","content":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"agents.note","params":{"channel_id":1}}"#,
        r#"{"jsonrpc":"2.0","method":"agents.note","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"agents.note","params":{"_meta":{"workspace_id":""}}}"#,
        r#"{"jsonrpc":"2.0","method":"nobody.x"}"#,
        r#"{"jsonrpc":"2.0","method":"$/ping"}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":77}}"#,
    ] {
        client.send(notification).await;
    }
    client.assert_usable().await;
    wait_until("the good one arrived", || world.record.notices() == ["agents/note"]).await;
    let unrouted = world.bus.stats().notifications_unrouted.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(unrouted, 1, "a method that nobody knows is counted, wherever it came from");
}

#[tokio::test]
async fn replies_may_overtake_each_other() {
    let world = World::new();
    let mut client = world.client().await;
    for id in 1..=3 {
        client.send(&rpc(id, "agents.wait", message(&id.to_string()))).await;
    }
    wait_until("all are at work", || world.record.started() == 3).await;
    client.assert_usable().await;
    for id in [2, 3, 1] {
        world.record.release(&id.to_string());
        assert_eq!(client.recv().await["id"], id);
    }
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_own_wire_id_in_either_dialect() {
    let world = World::new();
    let mut client = world.client().await;
    let mut stranger = world.client().await;
    client.send(&rpc(1, "agents.wait", message("x"))).await;
    client.send(&command("req_1", "agents.wait", message("x"), json!({}))).await;
    wait_until("both are at work", || world.record.started() == 2).await;
    // The ids of one connection mean nothing on another.
    assert_eq!(stranger.call(5, "$/cancel", json!({ "id": 1 })).await, json!({}));
    assert_eq!(world.bus.in_flight(), 2);

    client.send(r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}"#).await;
    let reply = client.recv().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &json!(ERR_CANCELLED)));
    client.send(&command("req_2", "$/cancel", json!({ "id": "req_1" }), json!({}))).await;
    let (first, second) = (client.recv().await, client.recv().await);
    let answers = if first["id"] == "req_1" { [first, second] } else { [second, first] };
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!("req_1"), &json!("req_2")));
    assert_eq!(answers[0]["error"]["details"]["reason"], "CANCELLED");
    assert_eq!(answers[1]["status"], "ok");
    wait_until("the work was dropped", || world.record.dropped() == 2).await;
    assert_eq!(world.record.finished(), 0);
    client.assert_usable().await;
    let reply = client.ask(&rpc(3, "$/cancel", json!({ "nothing": 1 }))).await;
    assert_eq!(reply["error"]["code"], ERR_INVALID_PARAMS);
}

#[tokio::test]
async fn the_greeting_sets_the_context_of_later_calls() {
    let world = World::new();
    let mut client = world.client().await;
    let who = async |client: &mut support::wire::Wire, params: Value| -> Value {
        let result = client.call(1, "agents.who", params).await;
        serde_json::from_str(result["content"].as_str().unwrap()).unwrap()
    };
    assert_eq!(who(&mut client, message("")).await["actor"], "user:user_local");
    let context = json!({ "actor": { "kind": "agent", "id": "ada" }, "workspace_id": "ws_9" });
    let hello = client.call(2, "bus.hello", context).await;
    assert_eq!(hello["namespace"], "helios.localbus.v1");
    let known = who(&mut client, message("")).await;
    assert_eq!((&known["actor"], &known["workspace"]), (&json!("agent:ada"), &json!("ws_9")));
    // A line's own context wins, field by field.
    let mut params = message("");
    params["_meta"] = json!({ "correlation_id": "cor_3", "workspace_id": "ws_1", "timeout_ms": 60_000 });
    let mixed = who(&mut client, params).await;
    let expected = json!({
        "actor": "agent:ada", "workspace": "ws_1", "correlation": "cor_3", "depth": 0, "deadline": true,
    });
    assert_eq!(mixed, expected);
    // Another connection knows nothing of it.
    assert_eq!(who(&mut world.client().await, message("")).await["actor"], "user:user_local");
}

#[tokio::test]
async fn a_greeting_that_is_answered_late_sets_the_context_all_the_same() {
    let world = World::new();
    for (client_name, seen) in [("late", "agent:ada"), ("late and unwelcome", "user:user_local")] {
        let mut client = world.client().await;
        let greeting = json!({
            "client": { "name": client_name, "version": "1" }, "actor": { "kind": "agent", "id": "ada" },
        });
        // Not waited for: what stands behind a greeting is said in its context, whenever that is known.
        client.send(&rpc(1, "bus.hello", greeting)).await;
        client.send(&rpc(2, "agents.who", message(""))).await;
        let mut other = world.client().await;
        other.assert_usable().await;
        world.record.release(client_name);
        let (hello, who) = (client.recv().await, client.recv().await);
        assert_eq!((&hello["id"], &who["id"]), (&json!(1), &json!(2)));
        assert_eq!(hello.get("error").is_some(), client_name != "late");
        let who: Value = serde_json::from_str(who["result"]["content"].as_str().unwrap()).unwrap();
        assert_eq!(who["actor"], seen, "{client_name}");
        let later = client.call(3, "agents.who", message("")).await;
        assert!(later["content"].as_str().unwrap().contains(seen), "{later}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_its_greeting_leaves_nothing_behind() {
    let world = World::new();
    let mut client = world.client().await;
    client.send(&rpc(1, "bus.hello", json!({ "client": { "name": "late", "version": "1" } }))).await;
    client.send(&rpc(2, "agents.echo", message("x"))).await;
    wait_until("it is connected", || world.connections() == 1).await;
    drop(client);
    wait_until("the connection is gone", || world.connections() == 0).await;
}

#[tokio::test]
async fn a_refused_command_is_answered_with_its_correlation() {
    let world = World::new();
    let mut client = world.client().await;
    for (what, more) in [
        ("another type", json!({ "type": "event" })),
        ("an unknown type", json!({ "type": "x" })),
        ("no id", json!({ "id": null })),
        ("no time", json!({ "ts": "yesterday" })),
        ("no workspace", json!({ "workspace_id": null })),
        ("a bad session", json!({ "session_id": "" })),
        ("no actor", json!({ "actor": null })),
        ("no method", json!({ "method": "" })),
        ("an unknown method", json!({ "method": "nobody.knows" })),
        ("no payload", json!({ "payload": [] })),
    ] {
        let mut more = more;
        more["correlation_id"] = json!("cor_7");
        let reply = client.ask(&command("req_1", "agents.who", message(""), more)).await;
        assert_eq!(
            (&reply["status"], &reply["correlation_id"]),
            (&json!("error"), &json!("cor_7")),
            "{what}"
        );
    }
    // One that cannot be read is left out and does not break the answer.
    let bad = json!({ "correlation_id": "a \"quoted\" one" });
    let reply = client.ask(&command("req_1", "agents.who", message(""), bad)).await;
    assert_eq!((&reply["status"], reply.get("correlation_id")), (&json!("error"), None));
}

#[tokio::test]
async fn a_method_outside_the_table_does_not_exist_outside_the_process() {
    let world = World::new();
    let mut client = world.client().await;
    for method in ["llm.other", "bus", "$/nothing", "$", "events.nothing"] {
        let reply = client.ask(&rpc(1, method, json!({}))).await;
        assert_eq!(reply["error"]["code"], ERR_METHOD_NOT_FOUND, "{method}: {reply}");
    }
}

#[tokio::test]
async fn a_reply_that_never_comes_is_told_in_kind() {
    let world = World::new();
    let mut client = world.client().await;
    let reply = client.ask(&command("req_1", "agents.drop", message("x"), json!({}))).await;
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!("INTERNAL_ERROR"), &json!("req_1")));
    assert_eq!(reply["error"]["details"]["reason"], "REPLY_DROPPED");
    let reply = client.ask(&command("req_2", "agents.panic", message("x"), json!({}))).await;
    assert_eq!(reply["error"]["details"]["reason"], "HANDLER_PANICKED");
    let mut params = message("x");
    params["_meta"] = json!({ "timeout_ms": 1 });
    let reply = client.ask(&rpc(3, "agents.leak", params)).await;
    assert_eq!(reply["error"]["code"], swb_proto::error::ERR_TIMEOUT);
    client.assert_usable().await;
}

#[tokio::test]
async fn each_command_is_judged_by_its_own_context() {
    let world = World::new();
    let mut client = world.client().await;
    let who = |more: Value| command("req_1", "agents.who", message(""), more);
    let ada = json!({ "actor": { "kind": "agent", "id": "ada" } });
    let bob = json!({ "actor": { "kind": "agent", "id": "bob" }, "workspace_id": "ws_1" });
    let nameless = json!({ "actor": { "kind": "agent", "id": "" } });
    for (more, seen) in [
        (&ada, Some(("agent:ada", "ws_123"))),
        (&ada, Some(("agent:ada", "ws_123"))),
        (&bob, Some(("agent:bob", "ws_1"))),
        (&nameless, None),
        (&nameless, None),
        (&bob, Some(("agent:bob", "ws_1"))),
        (&ada, Some(("agent:ada", "ws_123"))),
        (&json!({ "workspace_id": null }), None),
        (&json!({ "workspace_id": "ada" }), Some(("user:user_local", "ada"))),
        (&json!({ "session_id": "ada" }), Some(("user:user_local", "ws_123"))),
        (&ada, Some(("agent:ada", "ws_123"))),
    ] {
        let reply = client.ask(&who(more.clone())).await;
        match seen {
            None => assert_eq!(reply["error"]["code"], "INVALID_REQUEST", "{more}"),
            Some((actor, workspace)) => {
                let known: Value =
                    serde_json::from_str(reply["result"]["content"].as_str().unwrap()).unwrap();
                assert_eq!(
                    (&known["actor"], &known["workspace"]),
                    (&json!(actor), &json!(workspace)),
                    "{more}"
                );
            }
        }
    }
    // A method that needs a workspace does not get it from the line before.
    let bare = json!({ "workspace_id": null });
    assert_eq!(client.ask(&command("req_2", "bus.hello", json!({}), bare.clone())).await["status"], "ok");
    let reply = client.ask(&who(bare)).await;
    assert_eq!(reply["error"]["details"]["reason"], "MISSING_CONTEXT_ID");
}
