//! One answer per command, at any time, in order: the promises that hold for all commands together.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::child::{Child, bash, kinds, spawn, world};

/// Commands that are answered whatever goes on.
const QUESTIONS: [&str; 7] = [
    "get_state",
    "get_messages",
    "get_session_stats",
    "get_available_models",
    "tools_list",
    "queue",
    "set_thinking_level",
];

#[track_caller]
fn answers_everything(child: &mut Child) {
    for command in QUESTIONS {
        let answer = child.ask(json!({ "type": command, "id": format!("q-{command}"), "level": "low" }));
        assert_eq!((&answer["type"], &answer["command"]), (&json!("response"), &json!(command)));
    }
    let set = child.ask(json!({ "type": "set_model", "id": "q-model", "model": "demo/demo" }));
    assert_eq!(set["model"], "demo/demo");
    assert_eq!(child.state("model"), "demo/demo");
}

#[test]
fn every_question_is_answered_while_a_tool_runs() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.prompt("p", &bash("echo begun; exec sleep 1000"));
    child.until("the tool", |frame| frame["type"] == "tool_output");
    answers_everything(&mut child);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(kinds(&frames), ["toolcall_result", "agent_end", "response", "response"]);
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true, "the new model answers");
}

#[test]
fn every_question_is_answered_while_a_compaction_is_under_way() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!summary stall");
    child.send(json!({ "type": "compact", "id": "c" }));
    assert_eq!(child.state("compacting"), true);
    answers_everything(&mut child);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!((&frames[0]["id"], &frames[0]["cancelled"]), (&json!("c"), &json!(true)));
}

#[test]
fn a_model_that_is_set_during_a_turn_does_not_disturb_it() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!say a\n!until go\n!say b");
    child.until("the first word", |frame| frame["event"]["delta"] == "a");
    child.ask(json!({ "type": "set_model", "id": "m", "model": "demo/demo" }));
    std::fs::write(world.folder().join("go"), "").unwrap();
    assert_eq!(child.until_response("p").pop().unwrap()["ok"], true);
    assert_eq!(child.state("model"), "demo/demo");
}

/// What came with each id: how many responses, how many errors.
fn tally(frames: &[Value]) -> BTreeMap<String, (usize, usize)> {
    let mut tally = BTreeMap::<String, (usize, usize)>::new();
    for frame in frames {
        let Some(id) = frame["id"].as_str() else { continue };
        let counts = tally.entry(id.to_owned()).or_default();
        match frame["type"].as_str() {
            Some("response") => counts.0 += 1,
            Some("error") => counts.1 += 1,
            other => panic!("{other:?} with an id"),
        }
    }
    tally
}

#[test]
fn each_id_is_answered_once_whatever_is_going_on() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let (mut sent, mut frames) = (Vec::new(), Vec::new());
    let mut send = |child: &mut Child, command: &str, more: Value| {
        let id = format!("{}-{command}", sent.len());
        let mut frame = json!({ "type": command, "id": id });
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        child.send(frame);
        sent.push(id.clone());
        id
    };
    for round in 0..8 {
        let script = match round % 4 {
            0 => "!say a\n!tool ls {}\n!say b".to_owned(),
            1 => "!fail no".to_owned(),
            2 => format!("{}\n!tool ls {{}}", bash("exec sleep 1000")),
            _ => "!say half\n!stall".to_owned(),
        };
        send(&mut child, "prompt", json!({ "message": script }));
        send(&mut child, "prompt", json!({ "message": "refused or begun" }));
        send(&mut child, "follow_up", json!({ "message": "!say later" }));
        send(&mut child, "steer", json!({ "message": "!say now" }));
        send(&mut child, "compact", json!({}));
        send(&mut child, "tool_call", json!({ "name": "ls", "args": {} }));
        send(&mut child, "does_not_exist", json!({}));
        send(&mut child, "set_model", json!({ "model": "nobody/nothing" }));
        for command in QUESTIONS {
            send(&mut child, command, json!({ "level": "off" }));
        }
        if round % 2 == 0 {
            send(&mut child, "clear_queue", json!({}));
        }
        send(&mut child, "abort", json!({}));
        send(&mut child, "new_session", json!({}));
        // What was queued has begun meanwhile. The next round finds an idle agent.
        send(&mut child, "clear_queue", json!({}));
        let last = send(&mut child, "abort", json!({}));
        frames.extend(child.until_response(&last));
    }
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    frames.extend(child.rest());
    let tally = tally(&frames);
    for id in &sent {
        let (responses, errors) = tally.get(id).copied().unwrap_or_default();
        // A turn that fails says why in an error, and then ends like any other.
        let fine = matches!((responses, errors), (1, 0) | (0, 1))
            || (responses, errors) == (1, 1) && (id.ends_with("prompt") || id.ends_with("follow_up"));
        assert!(fine, "{id}: {responses} responses, {errors} errors");
    }
    assert_eq!(tally.len(), sent.len(), "nothing was answered that was not asked");
    let mut turns = 0;
    for (at, frame) in frames.iter().enumerate().filter(|(_, frame)| frame["type"] == "agent_end") {
        turns += 1;
        let next = &frames[at + 1];
        let command = next["command"].as_str().unwrap_or_default();
        assert!(matches!(command, "prompt" | "follow_up" | "steer"), "{frame} then {next}");
    }
    assert!(turns >= 8, "{turns} turns");
}

#[test]
fn answers_come_in_the_order_of_the_questions_however_many_are_sent_at_once() {
    let world = world();
    let mut process = spawn(&world, &[]);
    let mut stdin = process.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for at in 0..5000 {
            writeln!(stdin, "{}", json!({ "type": "tools_list", "id": at.to_string() })).unwrap();
        }
        writeln!(stdin, "{}", json!({ "type": "shutdown" })).unwrap();
    });
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ids: Vec<String> = lines
        .filter_map(|line| serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().map(str::to_owned))
        .collect();
    writer.join().unwrap();
    assert!(ids.iter().map(|id| id.parse::<usize>().unwrap()).eq(0..5000));
    assert_eq!(crate::child::exit_code(&mut process), Some(0));
}

#[test]
fn a_new_session_keeps_how_the_agent_works_and_says_no_ready() {
    let world = world();
    let arguments = ["--system", "be brief", "--model", "demo/demo", "--tool-mode", "full"];
    let mut child = Child::start(&world, &arguments);
    child.ask(json!({ "type": "set_thinking_level", "id": "t", "level": "high" }));
    child.turn("p", "!say a");
    child.send(json!({ "type": "new_session", "id": "n" }));
    let frames = child.until_response("n");
    assert_eq!(kinds(&frames), ["response"]);
    let id = frames[0]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(child.state("model"), "demo/demo");
    assert_eq!(child.state("thinking_level"), "high");
    assert_eq!(child.state("tool_mode"), "full");
    let file = world.paths().sessions(None).join(format!("{id}.jsonl"));
    assert!(std::fs::read_to_string(file).unwrap().contains("be brief"));
    // The old one was saved, and can go on.
    let mut old = Child::start(&world, &["--continue", &child.session_id]);
    assert_eq!(old.messages().len(), 2);
}
