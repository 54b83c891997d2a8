//! What the daemon answers, in both dialects.

use serde_json::{Value, json};
use swb_proto::comms::{AgentsEchoHandle, CommsMessage};
use swb_proto::{BusPayload, Meta};
use testkit::World;

fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc":"2.0","id":1,"method":method,"params":params})
}

fn command(method: &str, payload: Value) -> Value {
    json!({
        "id": "req_1", "type": "command", "method": method, "ts": "2026-02-26T00:00:00.000Z",
        "actor": {"kind": "user", "id": "user_local"}, "workspace_id": "ws_1", "correlation_id": "cor_1", "payload": payload,
    })
}

#[test]
fn the_seeds_methods_answer_and_keep_their_channel() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    let message = json!({"channel_id":"c7","content":"hi"});
    for method in ["agents", "agents.echo", "agents/echo/handle", "agents.echo.handle"] {
        assert_eq!(wire.ask(&rpc(method, message.clone()))["result"], message, "{method}");
        let response = wire.ask(&command(method, message.clone()));
        assert_eq!(
            (&response["status"], &response["result"], &response["id"]),
            (&json!("ok"), &message, &json!("req_1"))
        );
        assert_eq!(response["correlation_id"], "cor_1");
    }
}

#[test]
fn the_same_answers_come_in_process_and_over_the_socket() {
    let mut world = World::new();
    world.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for handle in [world.handle(), world.connect().await] {
            let message = CommsMessage { channel_id: "c".into(), content: "x".into() };
            assert_eq!(handle.call::<AgentsEchoHandle>(message.clone()).await.unwrap(), message);
            let codes = [
                ("nobody/home", BusPayload::Empty),
                ("agents/ada/handle", message.clone().into()),
                ("bus/nonsense", BusPayload::Empty),
            ];
            for (method, payload) in codes {
                assert_eq!(
                    handle.request(method, payload).await.unwrap().unwrap_err().code,
                    -32601,
                    "{method}"
                );
            }
            // A model is asked by the real binary alone (`swb-cli/tests/llm.rs`); what is no question comes back at once.
            let nothing = BusPayload::LlmRequest { channel_id: "c".into(), content: " ".into() };
            for payload in [BusPayload::Empty, nothing] {
                let refused = handle.request("llm/complete", payload).await.unwrap().unwrap_err();
                assert_eq!(refused.code, -32602, "{refused}");
            }
        }
    });
}

#[test]
fn errors_carry_number_name_and_reason() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    let unknown = wire.ask(&rpc("nobody.home", json!({})));
    assert_eq!(unknown["error"]["code"], -32601);
    let unknown = wire.ask(&command("nobody.home", json!({})));
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["details"]["reason"], &unknown["error"]["retryable"]),
        (&json!("INVALID_REQUEST"), &json!("METHOD_NOT_FOUND"), &json!(false))
    );
    assert_eq!((&unknown["status"], &unknown["result"]), (&json!("error"), &Value::Null));
    assert_eq!(wire.ask(&rpc("agents", json!({"channel_id": 5})))["error"]["code"], -32602);
}

#[test]
fn hello_announces_namespaces_versions_and_limits() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    let hello = wire.ask(&rpc(
        "bus.hello",
        json!({"namespace":"helios.localbus.v1","client":{"name":"t","version":"1"}}),
    ))["result"]
        .take();
    assert_eq!(hello["namespace"], "helios.localbus.v1");
    assert!(hello["namespaces"].as_array().unwrap().contains(&json!("helios.agui.v1")));
    assert_eq!(
        (&hello["server"]["name"], &hello["limits"]["max_payload_bytes"]),
        (&json!("switchboard"), &json!(1_048_576))
    );
    let refused = wire.ask(&rpc("bus.hello", json!({"namespace":"helios.localbus.v9"})));
    assert_eq!(refused["error"]["data"]["reason"], "UNSUPPORTED_NAMESPACE");
}

#[test]
fn the_context_of_hello_holds_for_later_calls_and_their_events() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    wire.ask(&rpc("bus.hello", json!({"actor":{"kind":"agent","id":"ada"},"workspace_id":"ws_9"})));
    let after = world.bus().topics().head();
    wire.ask(&rpc("agents", json!({"channel_id":"c","content":"x","_meta":{"correlation_id":"cor_5"}})));
    let page = wire.ask(&rpc("events.read", json!({"after":after})))["result"].take();
    let event = &page["events"][0];
    assert_eq!(
        (&event["topic"], &event["actor"]["id"], &event["workspace_id"], &event["correlation_id"]),
        (&json!("agents.replied"), &json!("ada"), &json!("ws_9"), &json!("cor_5"))
    );
    assert_eq!((&page["next"], &page["head"]), (&json!(after + 1), &json!(after + 1)));
}

#[test]
fn events_are_replayed_and_continued_in_both_dialects() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    let message = json!({"channel_id":"c","content":"x"});
    wire.ask(&rpc("agents", message.clone()));
    let after = world.bus().topics().head();
    wire.ask(&rpc("agents", message.clone()));
    let mut late = world.wire();
    let subscribed = late.ask(&command("events.subscribe", json!({"topics":["agents.*"],"after":after})));
    assert_eq!(subscribed["result"]["after"], after);
    let replayed = late.receive().unwrap();
    assert_eq!(
        (&replayed["type"], &replayed["seq"], &replayed["topic"], &replayed["subscription"]),
        (&json!("event"), &json!(after + 1), &json!("agents.replied"), &subscribed["result"]["subscription"])
    );
    wire.ask(&rpc("agents", message));
    assert_eq!(late.receive().unwrap()["seq"], after + 2);
    let other =
        late.ask(&rpc("events.subscribe", json!({"topics":["agents.*"],"after":after + 1})))["result"].take();
    let notification = late.receive().unwrap();
    assert_eq!(
        (
            &notification["method"],
            &notification["params"]["event"]["seq"],
            &notification["params"]["subscription"]
        ),
        (&json!("events.event"), &json!(after + 2), &other["subscription"])
    );
    // A notification is never answered, whatever becomes of it.
    late.send(&json!({"jsonrpc":"2.0","method":"agents","params":{"channel_id":"c","content":"quietly"}}));
    assert_eq!(
        late.ask(&rpc("events.unsubscribe", json!({"subscription":other["subscription"]})))["result"],
        json!({})
    );
}

#[test]
fn in_process_calls_speak_as_who_they_are() {
    let mut world = World::new();
    world.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let after = world.bus().topics().head();
    runtime.block_on(async {
        let actor = swb_proto::Actor::new("agent", "bob").unwrap();
        let handle = world.handle().with(Meta { actor: Some(actor), ..Meta::default() });
        handle
            .call::<AgentsEchoHandle>(CommsMessage { channel_id: "c".into(), content: "x".into() })
            .await
            .unwrap();
    });
    let page = world.bus().topics().read(vec![], Some(after), 10).unwrap();
    assert_eq!(page.events[0].actor.as_ref().unwrap().id.as_str(), "bob");
}

#[test]
fn discover_describes_what_is_served() {
    let mut world = World::new();
    world.start();
    let document = world.wire().ask(&rpc("rpc.discover", json!({})))["result"].take();
    let names: Vec<&str> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    for name in [
        "bus.hello",
        "rpc.discover",
        "events.subscribe",
        "events.unsubscribe",
        "$/cancel",
        "$/ping",
        "agents.echo.handle",
        "llm.complete",
    ] {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
}
