//! From an agent's call through the gate to a person's answer and back.

use serde_json::{Value, json};
use testkit::{Ran, Wire, World, wait_for};

use crate::questions::world;

/// A call of an agent that waits for its answer.
fn call(world: &World, workspace: &Value, project: &Value) -> Wire {
    let mut wire = world.wire();
    let meta = json!({ "actor": { "kind": "agent", "id": "sess_ada" }, "workspace_id": workspace });
    let params = json!({ "project_id": project, "_meta": meta });
    wire.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session.create", "params": params }));
    wire
}

fn pending(world: &World) -> String {
    let first = || world.swb(["--json", "approvals"]).ok().json_lines().into_iter().next();
    wait_for("the agent's question", first)["approval_id"].as_str().unwrap().to_owned()
}

fn answer(world: &World, arguments: &[&str]) -> Ran {
    world.swb(["approvals"].iter().chain(arguments)).ok()
}

#[test]
fn an_agents_call_waits_for_a_person_and_does_what_the_answer_says() {
    let world = world();
    world.swb(["up"]).ok();
    let workspace = world.swb(["--json", "workspaces", "create", "home"]).ok().json()["workspace_id"].take();
    let project = world.swb(["--json", "projects", "init"]).ok().json()["project_id"].take();
    let sessions = || {
        let list = world.swb(["call", "session.list"]).ok().json();
        list["sessions"].as_array().unwrap().len()
    };

    let mut denied = call(&world, &workspace, &project);
    let id = pending(&world);
    let line = format!("session.create project_id={project}");
    assert!(world.swb(["approvals"]).ok().stdout.contains(&line), "{line}");
    answer(&world, &["deny", &id, "--reason", "use the one you have"]);
    let refused = denied.receive().unwrap();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["approval_id"]),
        (&json!(-32011), &json!(id))
    );
    assert_eq!(sessions(), 0);

    let mut approved = call(&world, &workspace, &project);
    answer(&world, &["approve", &pending(&world), "--for-session"]);
    assert!(approved.receive().unwrap()["result"]["session_id"].is_string());
    let mut unasked = call(&world, &workspace, &project);
    assert!(unasked.receive().unwrap()["result"]["session_id"].is_string());
    assert_eq!(sessions(), 2);

    let grant = world.swb(["--json", "approvals", "grants"]).ok().json()["grant_id"].take();
    answer(&world, &["revoke", grant.as_str().unwrap()]);
    let waiting = call(&world, &workspace, &project);
    let id = pending(&world);
    drop(waiting);
    // Nobody waits for the answer any more, so there is nothing to be asked.
    let ended = || (world.swb(["approvals"]).ok().stdout.is_empty()).then_some(());
    wait_for("the question to be taken back", ended);
    assert_eq!(world.swb(["--json", "approvals", "show", &id]).ok().json()["status"], "denied");
    assert_eq!(sessions(), 2);
}
