//! Tools that a parent lends: to its child, and through it to subagents at any depth.

use serde_json::{Value, json};

use crate::child::{Child, results, world};

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Looks things up.", "input_schema": { "type": "object" } })
}

#[track_caller]
fn lend(child: &mut Child, tools: Value) -> Value {
    child.ask(json!({ "type": "lend", "id": "l", "tools": tools }))
}

#[track_caller]
fn called(child: &mut Child) -> Value {
    child.until("the call", |frame| frame["type"] == "lent_call").pop().unwrap()
}

fn names(child: &mut Child) -> Vec<String> {
    let tools = child.ask(json!({ "type": "tools_list", "id": "t" }))["tools"].take();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_lent_tool_is_called_like_any_other_and_runs_at_the_parent() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let lent = lend(&mut child, json!([tool("docs__search"), tool("bash")]));
    assert_eq!((&lent["lent"], &lent["refused"]), (&json!(1), &json!(["bash"])), "our own tools stay ours");
    assert!(names(&mut child).contains(&"docs__search".to_owned()));
    child.prompt("p", "!tool docs__search {\"for\":\"x\"}");
    let call = called(&mut child);
    assert_eq!((&call["name"], &call["input"]), (&json!("docs__search"), &json!({ "for": "x" })));
    assert_eq!((&call["session_id"], &call["mode"]), (&json!(child.session_id), &json!("workspace")));
    assert_eq!(call.get("agents"), None);
    let result = json!({ "type": "lent_result", "id": "r", "call_id": call["call_id"], "result": "found" });
    child.send(result.clone());
    assert_eq!(results(&child.until_response("p")), ["found"]);
    assert_eq!(child.ask(result)["type"], "error", "a call is answered once");
    assert_eq!(lend(&mut child, json!([]))["lent"], 0);
    assert!(!names(&mut child).contains(&"docs__search".to_owned()), "what was lent can be taken back");
}

#[test]
fn what_was_lent_is_lent_on_and_the_call_says_who_wants_it() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    lend(&mut child, json!([tool("docs__search")]));
    let call = json!({ "name": "inner", "mode": "read-only", "task": "!tool docs__search {\"for\":\"y\"}" });
    let outer = json!({ "name": "outer", "task": format!("!tool subagent {call}") });
    child.prompt("p", &format!("!tool subagent {outer}"));
    let call = called(&mut child);
    assert_eq!(call["agents"], json!(["outer", "inner"]));
    assert_eq!((&call["mode"], &call["input"]), (&json!("read-only"), &json!({ "for": "y" })));
    assert_ne!(call["session_id"], child.session_id, "it is the session of whoever calls");
    let denied = "Denied: not for you";
    child.send(json!({ "type": "lent_result", "id": "r", "call_id": call["call_id"], "result": denied, "failed": true }));
    let frames = child.until_response("p");
    assert_eq!(results(&frames), ["Done.\n- Done."]);
    let inner =
        frames.iter().find(|frame| frame["state"] == "done" && frame["path"] == json!([1, 1])).unwrap();
    assert_eq!(inner["preview"], format!("Done. - {denied}"), "word for word, through two levels");
}

#[test]
fn an_abort_takes_the_call_back_at_every_level() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    lend(&mut child, json!([tool("docs__search")]));
    for prompt in ["!tool docs__search {}", "!subagent !tool docs__search {}"] {
        child.prompt("p", prompt);
        let call = called(&mut child);
        child.send(json!({ "type": "abort", "id": "a" }));
        let frames = child.until_response("a");
        let cancelled = frames.iter().find(|frame| frame["type"] == "lent_cancel").expect("it is taken back");
        assert_eq!(cancelled["call_id"], call["call_id"]);
        let late = json!({ "type": "lent_result", "id": "r", "call_id": call["call_id"], "result": "late" });
        assert_eq!(child.ask(late)["type"], "error");
    }
}

#[test]
fn a_large_result_comes_through_and_one_too_large_is_cut() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    lend(&mut child, json!([tool("docs__search")]));
    child.prompt("p", "!subagent !tool docs__search {} // !then // !tool docs__search {}");
    for size in [100_000, 1_000_000] {
        let call = called(&mut child);
        let result = "x".repeat(size);
        child.send(json!({ "type": "lent_result", "id": "r", "call_id": call["call_id"], "result": result }));
    }
    let frames = child.until_response("p");
    assert!(results(&frames)[0].starts_with("Done."), "{:?}", results(&frames));
}
