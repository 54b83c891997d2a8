//! Abort, and compaction.

use serde_json::{Value, json};
use testkit::wait;

use crate::child::{Child, bash, is_alive, kinds, world};

fn abort(child: &mut Child) -> Vec<Value> {
    child.send(json!({ "type": "abort", "id": "a" }));
    child.until_response("a")
}

#[test]
fn aborting_nothing_is_fine() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    assert_eq!(abort(&mut child), [json!({ "type": "response", "id": "a", "command": "abort", "ok": true })]);
}

#[test]
fn an_aborted_turn_is_answered_as_cancelled_before_the_abort() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!say half an\n!stall");
    child.until("the text", |frame| frame["event"]["delta"] == "an");
    let frames = abort(&mut child);
    assert_eq!(kinds(&frames), ["agent_end", "response", "response"]);
    assert_eq!(
        frames[1],
        json!({ "type": "response", "id": "p", "command": "prompt", "ok": true, "cancelled": true })
    );
    assert_eq!(child.messages()[1]["content"][0]["text"], "half an", "what was seen is kept");
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn an_abort_ends_a_tool_with_everything_in_its_group() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.prompt("p", &bash("sleep 1000 & echo $!; wait"));
    let shown = child.until("the output", |frame| frame["type"] == "tool_output").pop().unwrap();
    let grandchild = shown["delta"].as_str().unwrap().to_owned();
    assert!(is_alive(&grandchild));
    let frames = abort(&mut child);
    assert_eq!(kinds(&frames), ["toolcall_result", "agent_end", "response", "response"]);
    assert_eq!(frames[0]["event"]["result"], "Canceled by user");
    assert_eq!(frames[2]["cancelled"], true);
    wait("the grandchild to end", || !is_alive(&grandchild));
    let kept = child.messages().pop().unwrap();
    assert_eq!(kept["content"][0]["type"], "tool_result", "each call has its answer: {kept}");
}

#[test]
fn an_abort_drops_what_waits_and_tells_everybody() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!stall");
    child.send(json!({ "type": "follow_up", "id": "f", "message": "m" }));
    child.send(json!({ "type": "steer", "id": "s", "message": "m" }));
    let frames = abort(&mut child);
    let ids: Vec<_> = frames.iter().filter_map(|frame| frame["id"].as_str()).collect();
    assert_eq!(ids, ["p", "f", "s", "a"]);
    assert!(
        frames
            .iter()
            .filter(|frame| frame["id"] != "a" && frame["type"] == "response")
            .all(|frame| frame["cancelled"] == true)
    );
    assert_eq!(child.state("streaming"), false);
}

#[test]
fn a_flood_of_text_does_not_keep_an_abort_waiting() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!repeat 100000000 x");
    child.until("the flood", |frame| frame["event"]["type"] == "text_delta");
    let frames = abort(&mut child);
    assert_eq!(frames[frames.len() - 2]["cancelled"], true);
}

#[test]
fn compaction_replaces_the_history_by_a_summary() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!tool write {\"path\":\"a.txt\",\"content\":\"x\"}\n!say done");
    let compacted = child.ask(json!({ "type": "compact", "id": "c" }));
    let summary = compacted["summary"].as_str().unwrap();
    assert!(summary.contains("Files touched: a.txt"), "{summary}");
    let messages = child.messages();
    assert_eq!(messages.len(), 2);
    assert!(messages[0]["content"].as_str().unwrap().contains(summary));
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn an_empty_history_is_not_compacted() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    assert_eq!(child.ask(json!({ "type": "compact", "id": "c" }))["type"], "error");
    assert_eq!(child.state("message_count"), 0);
}

#[test]
fn a_failed_compaction_changes_nothing() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!summary fail");
    let error = child.ask(json!({ "type": "compact", "id": "c" }));
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("c")));
    assert_eq!(child.state("message_count"), 2);
}

#[test]
fn a_compaction_under_way_can_be_asked_about_and_aborted() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!summary stall");
    child.send(json!({ "type": "compact", "id": "c" }));
    assert_eq!(child.state("compacting"), true);
    assert_eq!(child.ask(json!({ "type": "compact", "id": "d" }))["type"], "error");
    let frames = abort(&mut child);
    assert_eq!((&frames[0]["id"], &frames[0]["cancelled"]), (&json!("c"), &json!(true)));
    assert_eq!(child.state("message_count"), 2, "nothing has changed");
}

#[test]
fn a_prompt_is_served_while_a_compaction_is_under_way() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!summary stall");
    child.send(json!({ "type": "compact", "id": "c" }));
    assert_eq!(child.turn("q", "!say meanwhile").pop().unwrap()["ok"], true);
    assert_eq!(child.state("message_count"), 4);
}

#[test]
fn a_compaction_during_a_turn_keeps_what_the_turn_adds() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.turn("p", "!say a");
    child.prompt("q", &bash("echo begun; sleep 1000"));
    child.until("the tool", |frame| frame["type"] == "tool_output");
    assert!(child.ask(json!({ "type": "compact", "id": "c" }))["summary"].is_string());
    abort(&mut child);
    let messages = child.messages();
    assert_eq!(messages.len(), 4, "summary, acknowledgement, call, answer: {messages:?}");
    assert_eq!(messages[2]["content"][0]["type"], "tool_use");
    assert_eq!(messages[3]["content"][0]["type"], "tool_result");
}
