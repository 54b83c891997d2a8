//! Abort.

use serde_json::{Value, json};
use testkit::wait;

use crate::child::{Child, bash, is_alive, kinds, world};

pub(crate) fn abort(child: &mut Child) -> Vec<Value> {
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
