//! Compaction: on request, before the context is full, and when the model says that it is.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::aborting::abort;
use crate::child::{Child, bash, kinds, text, world};

#[test]
fn compaction_replaces_the_history_by_a_summary() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!tool write {\"path\":\"a.txt\",\"content\":\"x\"}\n!say done");
    let compacted = child.ask(json!({ "type": "compact", "id": "c" }));
    let summary = compacted["summary"].as_str().unwrap();
    assert!(summary.contains("- a.txt (written)"), "{summary}");
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
    assert_eq!(messages.len(), 3, "summary, call, answer: {messages:?}");
    assert_eq!(messages[1]["content"][0]["type"], "tool_use");
    assert_eq!(messages[2]["content"][0]["type"], "tool_result");
}

#[test]
fn what_a_summary_costs_is_counted() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!usage 1 1");
    child.ask(json!({ "type": "compact", "id": "c" }));
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert!(stats["input_tokens"].as_u64() > Some(50), "{stats}");
}

#[test]
fn a_child_killed_while_it_compacts_has_lost_nothing() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!summary stall");
    child.send(json!({ "type": "compact", "id": "c" }));
    assert_eq!(child.state("compacting"), true);
    child.signal(Signal::KILL);
    child.exit_code();
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    assert_eq!(again.messages()[0]["content"], "!say a\n!summary stall");
}

#[test]
fn facts_outlive_several_compactions_and_a_restart() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child
        .turn("p", "the first task\n!tool write {\"path\":\"a.txt\",\"content\":\"x\"}\n!summary we chose B");
    for id in ["c", "d"] {
        let summary = child.ask(json!({ "type": "compact", "id": id }))["summary"].take();
        let summary = summary.as_str().unwrap();
        assert!(summary.contains("> the first task") && summary.contains("written)"), "{summary}");
        child.turn("q", "!tool read {\"path\":\"a.txt\"}");
    }
    child.close_stdin();
    child.exit_code();
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    assert!(again.messages()[0]["content"].as_str().unwrap().contains("- a.txt (read, written)"));
}

/// The one frame of this kind.
#[track_caller]
fn event<'a>(frames: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind} in {frames:#?}");
    found[0]
}

#[test]
fn room_is_made_before_the_context_is_full() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", &format!("the task {}\n!say a\n!usage 170000 5", "word ".repeat(20_000)));
    assert!(child.state("context_tokens").as_u64() >= Some(170_000));
    let frames = child.turn("q", "!say on");
    assert_eq!(kinds(&frames), ["compaction_start", "compaction_end", "text_delta", "agent_end", "response"]);
    assert_eq!(
        (&frames[0]["reason"], &frames[0]["context_window"]),
        (&json!("threshold"), &json!(200_000)),
        "{}",
        frames[0]
    );
    assert!(frames[1]["summary"].as_str().unwrap().contains("> the task"));
    let messages = child.messages();
    assert_eq!(messages.len(), 4, "summary, acknowledgement, prompt, answer");
    assert_eq!(messages[2]["content"], "!say on", "what was just said stays as it is");
    assert!(child.state("context_tokens").as_u64() < Some(60_000));
    assert_eq!(kinds(&child.turn("r", "!say on")), ["text_delta", "agent_end", "response"], "once is enough");
}

#[test]
fn tools_fill_the_context_and_their_pairs_stay_whole() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let fill = format!("the task\n!say {}", "word ".repeat(30_000));
    child.turn("p", &fill);
    let frames = child.turn("q", "!tool ls {}\n!usage 190000 1\n!then\n!tool ls {}\n!then\n!say end");
    event(&frames, "compaction_end");
    assert_eq!(text(&frames), "end", "the script goes on where it was");
    assert_eq!(frames.last().unwrap()["ok"], true);
    let messages = child.messages();
    let blocks = |kind: &str| {
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        blocks.filter(|block| block["type"] == kind).count()
    };
    assert_eq!((blocks("tool_use"), blocks("tool_result")), (2, 2), "{messages:#?}");
}

#[test]
fn a_summary_that_fails_does_not_stop_a_turn_that_needs_room() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", &format!("the task {}\n!say a\n!usage 170000 5\n!summary fail", "word ".repeat(20_000)));
    let frames = child.turn("q", "!say on");
    let end = event(&frames, "compaction_end");
    assert_eq!(end["error"], "the demo model was told to fail");
    assert!(end["summary"].as_str().unwrap().contains("> the task"));
    assert_eq!(frames.last().unwrap()["ok"], true);
}

#[test]
fn making_room_can_be_aborted_and_changes_nothing_then() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", &format!("{}\n!say a\n!usage 170000 5\n!summary stall", "word ".repeat(20_000)));
    child.prompt("q", "!say on");
    child.until("the compaction", |frame| frame["type"] == "compaction_start");
    child.send(json!({ "type": "follow_up", "id": "f", "message": "!say later" }));
    assert_eq!(child.state("queued"), 1);
    let frames = abort(&mut child);
    assert_eq!(event(&frames, "compaction_end"), &json!({ "type": "compaction_end", "cancelled": true }));
    for id in ["q", "f"] {
        assert!(frames.iter().any(|frame| frame["id"] == id && frame["cancelled"] == true), "{id}");
    }
    assert_eq!(child.state("message_count"), 3, "what was there, and the prompt");
}

#[test]
fn what_is_said_while_room_is_made_is_kept() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.turn("p", &format!("{}\n!say a\n!usage 170000 5", "word ".repeat(20_000)));
    child.prompt("q", &format!("{}\n!say not this", bash("while [ ! -e go ]; do sleep 0.01; done")));
    child.until("the compaction", |frame| frame["type"] == "compaction_end");
    child.send(json!({ "type": "steer", "id": "s", "message": "!say steered" }));
    child.send(json!({ "type": "follow_up", "id": "f", "message": "!say later" }));
    assert_eq!(child.state("queued"), 2);
    std::fs::write(world.folder().join("go"), "").unwrap();
    assert_eq!(text(&child.until_response("f")), "steeredlater");
}

#[test]
fn a_model_that_says_it_is_too_much_gets_a_shorter_conversation_once() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    for _ in 0..3 {
        child.turn("p", &format!("!say {}", "word ".repeat(20_000)));
    }
    let frames = child.turn("q", "!toolong 4\n!say fits");
    assert_eq!(event(&frames, "compaction_start")["reason"], "overflow");
    assert_eq!(text(&frames), "fits");
    assert_eq!(frames.last().unwrap()["ok"], true);
    let frames = child.turn("r", "!toolong 0");
    event(&frames, "compaction_start");
    let response = frames.last().unwrap();
    assert!(response["error"].as_str().unwrap().contains("too long for the model"), "{response}");
    assert_eq!(child.turn("s", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn a_message_that_can_never_fit_is_refused_and_not_kept() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", &"x".repeat(900_000));
    assert_eq!(kinds(&frames), ["error", "agent_end", "response"]);
    let error = frames[0]["message"].as_str().unwrap();
    assert!(error.contains("about 225004 tokens") && error.contains("room for 200000"), "{error}");
    assert_eq!(child.state("message_count"), 0);
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
}
