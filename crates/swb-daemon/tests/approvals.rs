//! Approvals through the bus: who may answer, who may look, and what a crash leaves.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::time::Duration;

use serde_json::{Value, json};
use swb_daemon::approvals::Waiting;
use swb_rules::approval::{ApprovalRequest, Binding, Patience, Status};
use swb_rules::policy::{Actor, Ancestor, Input, Resource};
use swb_rules::shell::Risk;
use testkit::{Wire, World, wait};

fn world() -> World {
    let mut world = World::new();
    world.start();
    world
}

fn question(id: &str, agent: &str, above: &[&str]) -> ApprovalRequest {
    let ancestry = above.iter().map(|id| Ancestor { id: (*id).into(), workspace: "ws_1".into() }).collect();
    let actor = Actor::Agent { id: agent.into(), workspace: "ws_1".into(), ancestry };
    ApprovalRequest {
        id: id.into(),
        input: Input::new(actor, "session.create", Resource::Workspace { id: "ws_1".into() }),
        subject: json!({ "method": "session.create" }),
        reason: "agents ask".into(),
        risk: Risk::Medium,
        rules: vec![],
        contained: true,
        session_id: Some(agent.into()),
        correlation_id: None,
        call_id: None,
        token_for: None,
    }
}

fn ask(world: &World, request: ApprovalRequest, patience: Patience) -> Waiting {
    let approvals = world.approvals();
    world.run(async move { approvals.ask(request, patience).await }).unwrap()
}

fn outcome(world: &World, waiting: Waiting) -> Status {
    world.run(waiting.outcome()).unwrap().status
}

/// A call as somebody of this kind and name.
fn call(world: &World, kind: &str, id: &str, method: &str, params: Value) -> Result<Value, Value> {
    let mut wire = world.wire();
    send(&mut wire, kind, id, method, params);
    let answer = wire.receive().unwrap();
    answer.get("result").cloned().ok_or_else(|| answer["error"].clone())
}

fn send(wire: &mut Wire, kind: &str, id: &str, method: &str, mut params: Value) {
    params["_meta"] = json!({ "actor": { "kind": kind, "id": id } });
    wire.send(&json!({"jsonrpc":"2.0","id":1,"method":method,"params":params}));
}

fn user(world: &World, method: &str, params: Value) -> Result<Value, Value> {
    call(world, "user", "ann", method, params)
}

fn topics(world: &World) -> Vec<String> {
    let page =
        user(world, "events.read", json!({"topics": ["approval.*", "grant.*"], "limit": 1000})).unwrap();
    let events = page["events"].as_array().unwrap().iter();
    events.map(|event| event["topic"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_person_answers_once_and_the_second_is_told_the_outcome() {
    let world = world();
    let waiting = ask(&world, question("apr_1", "sess_a", &[]), Patience::Interactive);
    let pending = user(&world, "approval.list", json!({"status": "pending"})).unwrap();
    assert_eq!(pending["approvals"][0]["approval_id"], "apr_1");
    assert_eq!(pending["approvals"][0]["audience"], json!(["sess_a"]));

    let yes = json!({"approval_id": "apr_1", "decision": "approve", "reason": "fine"});
    let answered = user(&world, "approval.request.resolve", yes).unwrap();
    assert_eq!((&answered["approval_id"], &answered["status"]), (&json!("apr_1"), &json!("approved")));
    assert_eq!(outcome(&world, waiting), Status::Approved);

    let no = json!({"approval_id": "apr_1", "decision": "deny"});
    let late = call(&world, "user", "bob", "approval.request.resolve", no).unwrap_err();
    assert_eq!(late["data"]["reason"], "ALREADY_RESOLVED");
    let told = &late["data"]["outcome"];
    assert_eq!((&told["status"], &told["resolved_by"]), (&json!("approved"), &json!("ann")));
    assert_eq!(told["resolved_at"], answered["resolved_at"]);
    let got = user(&world, "approval.get", json!({"approval_id": "apr_1"})).unwrap();
    assert_eq!((&got["status"], &got["outcome"]["reason"]), (&json!("approved"), &json!("fine")));
    assert_eq!(
        user(&world, "approval.list", json!({"status": "pending"})).unwrap(),
        json!({"approvals": []})
    );
    assert_eq!(topics(&world), ["approval.requested", "approval.resolved"]);
}

#[test]
fn answers_that_make_no_sense_change_nothing() {
    let world = world();
    ask(&world, question("apr_1", "sess_a", &[]), Patience::Interactive);
    let bad = [
        (json!({"approval_id": "apr_2", "decision": "approve"}), "APPROVAL_NOT_FOUND"),
        (
            json!({"approval_id": "apr_1", "decision": "approve", "edited_args": {}}),
            "EDITED_ARGS_UNSUPPORTED",
        ),
        (json!({"approval_id": "apr_1", "decision": "deny", "allow_for_session": true}), ""),
        (json!({"approval_id": "apr_1", "decision": "maybe"}), ""),
        (json!({"approval_id": "apr_1", "decision": "deny", "reason": "x".repeat(5000)}), ""),
    ];
    for (params, reason) in bad {
        let refused = user(&world, "approval.request.resolve", params.clone()).unwrap_err();
        assert_eq!(refused["data"]["reason"].as_str().unwrap_or_default(), reason, "{params}");
    }
    assert_eq!(topics(&world), ["approval.requested"]);
}

#[test]
fn nobody_but_a_person_answers_or_takes_back() {
    let world = world();
    ask(&world, question("apr_1", "sess_a", &[]), Patience::Interactive);
    let yes = json!({"approval_id": "apr_1", "decision": "approve", "allow_for_session": true});
    for (kind, id) in
        [("agent", "sess_a"), ("service", "bridge"), ("system", "system_daemon"), ("User", "ann")]
    {
        let refused = call(&world, kind, id, "approval.request.resolve", yes.clone()).unwrap_err();
        // The rules say no; to one who poses as the house the gate does not even listen.
        let code = if kind == "system" { -32010 } else { -32011 };
        assert_eq!(refused["code"], code, "{kind}: {refused}");
    }
    let answered = user(&world, "approval.request.resolve", yes).unwrap();
    let grant = json!({ "grant_id": answered["grant_id"] });
    let listed = user(&world, "grant.list", json!({})).unwrap();
    assert_eq!(
        (&listed["grants"][0]["grant_id"], &listed["grants"][0]["agent"]),
        (&answered["grant_id"], &json!("sess_a"))
    );
    let refused = call(&world, "agent", "sess_a", "grant.revoke", grant.clone()).unwrap_err();
    assert_eq!(refused["code"], -32011);
    assert_eq!(call(&world, "agent", "sess_b", "grant.list", json!({})).unwrap(), json!({"grants": []}));
    assert_eq!(user(&world, "grant.revoke", grant.clone()).unwrap(), grant);
    assert_eq!(user(&world, "grant.list", json!({})).unwrap(), json!({"grants": []}));
    assert_eq!(user(&world, "grant.revoke", grant).unwrap_err()["data"]["reason"], "GRANT_NOT_FOUND");
}

#[test]
fn an_agent_sees_what_it_or_one_below_it_has_asked() {
    let world = world();
    ask(&world, question("apr_1", "sess_a", &[]), Patience::Interactive);
    ask(&world, question("apr_2", "sess_sub", &["sess_a"]), Patience::Interactive);
    ask(&world, question("apr_3", "sess_b", &[]), Patience::Interactive);
    let seen = |agent: &str| {
        let list = call(&world, "agent", agent, "approval.list", json!({})).unwrap();
        let ids = list["approvals"].as_array().unwrap().iter();
        ids.map(|approval| approval["approval_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen("sess_a"), ["apr_1", "apr_2"]);
    assert_eq!(seen("sess_sub"), ["apr_2"]);
    assert_eq!(seen("sess_b"), ["apr_3"]);
    for method in ["approval.get", "approval.wait"] {
        let foreign = call(&world, "agent", "sess_b", method, json!({"approval_id": "apr_1"})).unwrap_err();
        assert_eq!(foreign["data"]["reason"], "APPROVAL_NOT_FOUND", "{method}");
    }
    let all = |params| user(&world, "approval.list", params).unwrap()["approvals"].as_array().unwrap().len();
    assert_eq!(all(json!({})), 3);
    assert_eq!(all(json!({"session_id": "sess_a"})), 2);
    assert_eq!(all(json!({"workspace_id": "ws_2"})), 0);
    assert_eq!(all(json!({"workspace_id": "ws_1", "status": "denied"})), 0);
}

#[test]
fn waiting_ends_with_the_outcome_the_patience_or_a_cancel_and_the_question_stays() {
    let mut world = world();
    ask(&world, question("apr_1", "sess_a", &[]), Patience::Interactive);
    let patient =
        call(&world, "agent", "sess_a", "approval.wait", json!({"approval_id": "apr_1", "timeout_ms": 1}));
    assert_eq!(patient.unwrap()["status"], "pending");

    // Somebody who only looks on.
    let mut cancelled = world.wire();
    send(&mut cancelled, "user", "ann", "approval.wait", json!({"approval_id": "apr_1"}));
    cancelled.send(&json!({"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}));
    assert_eq!(cancelled.receive().unwrap()["error"]["code"], -32001);
    assert_eq!(user(&world, "approval.get", json!({"approval_id": "apr_1"})).unwrap()["status"], "pending");

    let mut waiting = world.wire();
    send(&mut waiting, "agent", "sess_a", "approval.wait", json!({"approval_id": "apr_1"}));
    wait("it to be in flight", || world.bus().in_flight() > 0);
    user(
        &world,
        "approval.request.resolve",
        json!({"approval_id": "apr_1", "decision": "deny", "reason": "no"}),
    )
    .unwrap();
    let told = waiting.receive().unwrap();
    assert_eq!(
        (&told["result"]["status"], &told["result"]["outcome"]["reason"]),
        (&json!("denied"), &json!("no"))
    );

    ask(&world, question("apr_2", "sess_a", &[]), Patience::Interactive);
    let mut waiting = world.wire();
    send(&mut waiting, "agent", "sess_a", "approval.wait", json!({"approval_id": "apr_2"}));
    wait("it to be in flight", || world.bus().in_flight() > 0);
    let begun = std::time::Instant::now();
    world.stop();
    assert!(begun.elapsed() < Duration::from_secs(4), "a stop does not wait for people");
    assert_eq!(waiting.receive().unwrap()["error"]["code"], -32003);
    world.start();
    assert_eq!(user(&world, "approval.get", json!({"approval_id": "apr_2"})).unwrap()["status"], "pending");
}

#[test]
fn whoever_asked_and_cancels_the_wait_takes_the_question_back_however_early() {
    let world = world();
    for number in 0..20 {
        let id = format!("apr_{number}");
        ask(&world, question(&id, "sess_a", &[]), Patience::Interactive);
        let mut wire = world.wire();
        send(&mut wire, "agent", "sess_a", "approval.wait", json!({ "approval_id": id }));
        if number % 2 == 0 {
            wait("it to be in flight", || world.bus().in_flight() > 0);
        }
        wire.send(&json!({"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}));
        assert_eq!(wire.receive().unwrap()["error"]["code"], -32001);
        let now = || user(&world, "approval.get", json!({ "approval_id": id })).unwrap();
        wait("the question to be taken back", || now()["status"] == "denied");
    }
}

#[test]
fn a_session_that_ends_leaves_no_grant_and_no_question() {
    let mut world = world();
    let root = world.folder().join("root");
    std::fs::create_dir_all(&root).unwrap();
    let made = user(&world, "workspace.create", json!({"name": "w", "root_path": root})).unwrap();
    let context = |params: Value| {
        let mut params = params;
        params["_meta"] = json!({"workspace_id": made["workspace_id"]});
        params
    };
    let ask_as = |world: &World, method: &str, params: Value| {
        let mut wire = world.wire();
        wire.ask(&json!({"jsonrpc":"2.0","id":1,"method":method,"params":context(params)}))["result"].clone()
    };
    let project = ask_as(&world, "project.init", json!({"root_path": root}));
    let session = ask_as(&world, "session.create", json!({"project_id": project["project_id"]}));
    let id = session["session_id"].as_str().unwrap().to_owned();

    ask(&world, question("apr_1", &id, &[]), Patience::Interactive);
    let yes = json!({"approval_id": "apr_1", "decision": "approve", "allow_for_session": true});
    user(&world, "approval.request.resolve", yes).unwrap();
    let waiting = ask(&world, question("apr_2", "sess_sub", &[&id]), Patience::Interactive);
    assert_eq!(user(&world, "grant.list", json!({})).unwrap()["grants"].as_array().unwrap().len(), 1);
    // What a daemon that was killed between the two writes has left.
    let file = world.paths().approvals_file();
    let half = std::fs::read(&file).unwrap();
    ask_as(&world, "session.terminate", json!({"session_id": id}));
    assert_eq!(outcome(&world, waiting), Status::Denied);
    let ended = |world: &World| {
        assert_eq!(user(world, "grant.list", json!({})).unwrap(), json!({"grants": []}));
        let second = user(world, "approval.get", json!({"approval_id": "apr_2"})).unwrap();
        assert_eq!((&second["status"], &second["outcome"]["resolved_by"]), (&json!("denied"), &Value::Null));
    };
    ended(&world);
    world.crash();
    std::fs::write(&file, half).unwrap();
    world.start();
    ended(&world);
}

#[test]
fn a_share_gets_a_token_that_is_shown_once() {
    let world = world();
    let binding = Binding {
        method: "share.tmate.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:ann".into(),
        workspace_id: "ws_1".into(),
    };
    let request = ApprovalRequest { token_for: Some(binding.clone()), ..question("apr_1", "sess_a", &[]) };
    ask(&world, request, Patience::Interactive);
    let yes = json!({"approval_id": "apr_1", "decision": "approve"});
    let token =
        user(&world, "approval.request.resolve", yes).unwrap()["approval_token"].as_str().unwrap().to_owned();
    let got = user(&world, "approval.get", json!({"approval_id": "apr_1"})).unwrap();
    assert!(token.starts_with("apt_") && !got.to_string().contains(&token));
    let approvals = world.approvals();
    let spend = |token: String| {
        let (approvals, binding) = (approvals.clone(), binding.clone());
        world.run(async move { approvals.spend(token, binding).await })
    };
    spend(token.clone()).unwrap();
    assert!(spend(token).is_err());
}

#[test]
fn nothing_is_lost_or_doubled_by_a_crash() {
    let mut world = world();
    for n in 0..20 {
        ask(&world, question(&format!("apr_{n:02}"), "sess_a", &[]), Patience::Interactive);
    }
    for n in 0..10 {
        let decision = if n % 2 == 0 { "approve" } else { "deny" };
        user(
            &world,
            "approval.request.resolve",
            json!({"approval_id": format!("apr_{n:02}"), "decision": decision}),
        )
        .unwrap();
    }
    let before = user(&world, "approval.list", json!({})).unwrap();
    world.crash_and_restart();
    assert_eq!(user(&world, "approval.list", json!({})).unwrap(), before);
    assert_eq!(topics(&world), [""; 0], "everything was said before");
}
