//! Lines that try to get more than their sender was given: none changes anything, each gets the answer it deserves.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Value, json};
use testkit::{Wire, World};

/// A house with one workspace that everybody is after.
struct House {
    world: World,
    workspace: String,
}

impl House {
    fn new() -> Self {
        let mut world = World::new();
        world.start();
        let made = world.wire().ask(&rpc("workspace.create", &json!({"name": "Home", "root_path": "/tmp"})));
        let workspace = made["result"]["workspace_id"].as_str().unwrap().to_owned();
        House { world, workspace }
    }

    /// What there is to lose.
    fn estate(&self) -> Value {
        self.world.wire().ask(&rpc("workspace.list", &json!({})))["result"].take()
    }

    fn wire(&self) -> Wire {
        self.world.wire()
    }

    /// A command by an agent on the workspace, with changes; null removes a field.
    fn envelope(&self, method: &str, changes: &Value) -> Value {
        let mut line = json!({
            "id": "req_1", "type": "command", "method": method, "ts": "2026-11-15T10:00:00Z",
            "actor": {"kind": "agent", "id": "eve"}, "workspace_id": self.workspace,
            "payload": {"workspace_id": self.workspace},
        });
        for (name, value) in changes.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        line
    }
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The name and the reason of an answer's error, in either dialect.
fn refusal(answer: &Value) -> (String, String) {
    let error = &answer["error"];
    assert!(error.is_object(), "not refused: {answer}");
    let details = if error["details"].is_object() { &error["details"] } else { &error["data"] };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (text(&error["code"]), text(&details["reason"]))
}

#[test]
fn what_agents_and_services_may_not_do_is_not_done() {
    let house = House::new();
    let before = house.estate();
    let mut wire = house.wire();
    for kind in ["agent", "service", "bridge", "AGENT", "User", "root"] {
        for method in ["bus.shutdown", "approval.request.resolve", "grant.revoke"] {
            let payload = match method {
                "approval.request.resolve" => json!({"approval_id": "apr_1", "decision": "approve"}),
                "grant.revoke" => json!({"grant_id": "grant_1"}),
                _ => json!({}),
            };
            let changes = json!({"actor": {"kind": kind, "id": "eve"}, "payload": payload});
            let (code, _) = refusal(&wire.ask(&house.envelope(method, &changes)));
            assert_eq!(code, "POLICY_DENIED", "{kind} {method}");
        }
    }
    for kind in ["service", "bridge"] {
        for method in ["workspace.close", "workspace.delete"] {
            let line = house.envelope(method, &json!({"actor": {"kind": kind, "id": "eve"}}));
            assert_eq!(refusal(&wire.ask(&line)).0, "POLICY_DENIED", "{kind} {method}");
        }
    }
    assert_eq!(house.estate(), before);
}

#[test]
fn what_needs_an_approval_is_not_done_without_one() {
    let house = House::new();
    let before = house.estate();
    let mut wire = house.wire();
    let meta = json!({"actor": {"kind": "agent", "id": "eve"}, "timeout_ms": 30});
    let place = &house.workspace;
    for (method, params) in [
        ("workspace.close", json!({"workspace_id": place})),
        ("workspace.delete", json!({"workspace_id": place})),
        ("workspace.create", json!({"name": "mine", "root_path": "/"})),
        // A token, an approval and a claim that nobody has given.
        ("workspace.close", json!({"workspace_id": place, "approval_token": "apt_forged"})),
        ("workspace.close", json!({"workspace_id": place, "approved": true})),
        (
            "workspace.close",
            json!({"workspace_id": place, "policy": {"decision_id": "dec_1", "answer": "allow"}}),
        ),
        ("project.init", json!({"root_path": "/tmp"})),
        ("session.terminate", json!({"session_id": "sess_1"})),
    ] {
        let mut params = params;
        params["_meta"] = meta.clone();
        let answer = wire.ask(&rpc(method, &params));
        let (code, reason) = refusal(&answer);
        // The caller's patience and the deadline of the question end together; either may be first.
        let nobody = code == "-32002" || reason == "APPROVAL_TIMED_OUT";
        assert!(nobody || code == "-32602", "{method}: {answer}");
    }
    assert_eq!(house.estate(), before);
    // Nobody asks any more: every question was taken back with its caller's patience.
    testkit::wait("no question is left", || {
        let listed = house.wire().ask(&rpc("approval.list", &json!({"status": "pending"})));
        listed["result"]["approvals"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn nobody_speaks_for_the_house() {
    let house = House::new();
    let before = house.estate();
    let system = json!({"kind": "system", "id": "system_daemon"});
    let mut wire = house.wire();
    let line = house.envelope("workspace.delete", &json!({"actor": system}));
    assert_eq!(refusal(&wire.ask(&line)), ("UNAUTHORIZED_ACTION".into(), "ACTOR_MISMATCH".into()));
    for params in [json!({"_meta": {"actor": system}}), json!({"_meta": {"actor": system, "actor_": 1}})] {
        assert_eq!(refusal(&wire.ask(&rpc("workspace.list", &params))).1, "ACTOR_MISMATCH");
    }
    // A greeting that lies is refused, and what follows is judged by who is really there.
    assert_eq!(refusal(&wire.ask(&rpc("bus.hello", &json!({"actor": system})))).1, "ACTOR_MISMATCH");
    assert!(wire.ask(&rpc("workspace.list", &json!({})))["result"].is_object());
    assert_eq!(house.estate(), before);
}

#[test]
fn names_that_are_nearly_right_reach_nothing() {
    let house = House::new();
    let before = house.estate();
    let mut wire = house.wire();
    let user = json!({"kind": "user", "id": "user_local"});
    for method in [
        "Workspace.delete",
        "workspace.Delete",
        "workspace.delete ",
        " workspace.delete",
        "workspace..delete",
        "workspace.delete.",
        "workspace/../workspace/delete",
        "agents/../workspace/delete",
        "workspace.delete\u{0}",
        "workspace\u{2024}delete",
        "w\u{43e}rkspace.delete",
        "workspace.delete\n{}",
        "$/workspace.delete",
        "$workspace.delete",
        "bus.shutdown.now",
        "approval.request",
        "approval.resolve",
        "policy.allow",
        "",
    ] {
        let (code, _) = refusal(&wire.ask(&house.envelope(method, &json!({"actor": user}))));
        assert!(code == "INVALID_REQUEST" || code == "POLICY_DENIED", "{method:?}: {code}");
    }
    assert_eq!(house.estate(), before);
}

#[test]
fn lines_that_say_a_thing_twice_are_not_believed() {
    let house = House::new();
    let before = house.estate();
    let mut wire = house.wire();
    let id = &house.workspace;
    let (user, agent) = (r#"{"kind":"user","id":"user_local"}"#, r#"{"kind":"agent","id":"eve"}"#);
    let rest = format!(r#""type":"command","ts":"2026-11-15T10:00:00Z","workspace_id":"{id}""#);
    let payload = format!(r#""payload":{{"workspace_id":"{id}"}}"#);
    for line in [
        format!(
            r#"{{"id":"1",{rest},"method":"workspace.delete","actor":{agent},"actor":{user},{payload}}}"#
        ),
        format!(
            r#"{{"id":"1",{rest},"method":"workspace.delete","actor":{user},"actor":{agent},{payload}}}"#
        ),
        format!(
            r#"{{"id":"1",{rest},"method":"workspace.list","method":"workspace.delete","actor":{user},{payload}}}"#
        ),
        format!(r#"{{"id":"1",{rest},"method":"workspace.delete","actor":{user},{payload},{payload}}}"#),
        format!(
            r#"{{"id":"1",{rest},"method":"workspace.delete","actor":{{"kind":"user","kind":"agent","id":"x"}},{payload}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"workspace.delete","params":{{"workspace_id":"{id}","workspace_id":"{id}"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"workspace.delete","params":{{"workspace_id":"{id}"}},"params":{{"workspace_id":"{id}"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"workspace.delete","params":{{"workspace_id":"{id}","_meta":{{"actor":{agent}}},"_meta":{{"actor":{user}}}}}}}"#
        ),
        format!(
            r#"[{{"jsonrpc":"2.0","id":1,"method":"workspace.delete","params":{{"workspace_id":"{id}"}}}}]"#
        ),
    ] {
        wire.send_bytes(format!("{line}\n").as_bytes());
        refusal(&wire.receive().unwrap());
    }
    assert_eq!(house.estate(), before);
}

#[test]
fn what_is_missing_or_of_the_wrong_kind_is_said() {
    let house = House::new();
    let before = house.estate();
    let mut wire = house.wire();
    let user = json!({"kind": "user", "id": "user_local"});
    for changes in [
        json!({"actor": null}),
        json!({"actor": "user_local"}),
        json!({"actor": {"kind": "user"}}),
        json!({"actor": {"kind": "", "id": "x"}}),
        json!({"actor": {"kind": "user", "id": "../../x"}}),
        json!({"actor": {"kind": "user", "id": "x".repeat(200)}}),
        json!({"actor": user, "workspace_id": null}),
        json!({"actor": user, "workspace_id": ""}),
        json!({"actor": user, "workspace_id": "../other"}),
        json!({"actor": user, "payload": "workspace"}),
        json!({"actor": user, "payload": []}),
        json!({"actor": user, "payload": {"workspace_id": "../../etc"}}),
        json!({"actor": user, "payload": {"workspace_id": {"$ne": ""}}}),
        json!({"actor": user, "ts": "yesterday"}),
        json!({"actor": user, "type": "event"}),
        json!({"actor": user, "id": ""}),
    ] {
        let answer = wire.ask(&house.envelope("workspace.delete", &changes));
        assert_eq!(refusal(&answer).0, "INVALID_REQUEST", "{changes}");
    }
    assert_eq!(house.estate(), before);
}
