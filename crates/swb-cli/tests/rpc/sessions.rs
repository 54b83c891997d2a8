//! Sessions: every announced id can be continued, whatever happened.

use rustix::process::Signal;
use serde_json::json;

use crate::child::{Child, bash, world};

#[test]
fn a_session_in_which_nothing_was_said_can_be_continued() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let new =
        child.ask(json!({ "type": "new_session", "id": "n" }))["session_id"].as_str().unwrap().to_owned();
    child.send(json!({ "type": "shutdown" }));
    child.exit_code();
    for id in [&child.session_id, &new] {
        assert_eq!(Child::start(&world, &["--continue", id]).session_id, *id);
    }
}

#[test]
fn a_child_killed_in_its_first_turn_can_be_continued() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!say a\n!stall");
    child.until("the text", |frame| frame["event"]["delta"] == "a");
    child.signal(Signal::KILL);
    assert_eq!(child.exit_code(), None);
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    assert_eq!(again.messages()[0]["content"], "!say a\n!stall");
    assert_eq!(again.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn a_child_killed_in_the_middle_of_a_tool_leaves_a_history_that_loads() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.prompt("p", &format!("{}\n!tool ls {{}}", bash("echo begun; exec sleep 20")));
    child.until("the tool", |frame| frame["type"] == "tool_output");
    child.signal(Signal::KILL);
    child.exit_code();
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    let messages = again.messages();
    let answers = messages[2]["content"].as_array().unwrap();
    assert_eq!(answers.len(), 2, "{messages:?}");
    assert!(answers.iter().all(|answer| answer["is_error"] == true));
    assert_eq!(again.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn history_model_and_totals_come_back_and_an_argument_wins() {
    let world = world();
    let mut child = Child::start(&world, &["--model", "demo/demo"]);
    child.turn("p", "!say a\n!usage 4 5 6");
    child.close_stdin();
    child.exit_code();
    let mut again = Child::start(&world, &["--continue", &child.session_id[5..]]);
    let stats = again.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert_eq!(
        (&stats["model"], &stats["message_count"], &stats["input_tokens"], &stats["cache_read_input_tokens"]),
        (&json!("demo/demo"), &json!(2), &json!(4), &json!(6))
    );
    again.close_stdin();
    again.exit_code();
    let mut third = Child::start(&world, &["--continue", &child.session_id, "--model", "demo"]);
    assert_eq!(third.state("model"), "demo");
}

#[test]
fn a_session_in_use_is_refused_in_plain_words() {
    let world = world();
    let child = Child::start(&world, &[]);
    let second = world.swb(["rpc", "--continue", &child.session_id]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(1), ""));
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
}

#[test]
fn an_unknown_session_is_an_error_before_any_frame() {
    let world = world();
    for id in ["sess_nobody", "../../etc/passwd"] {
        let output = world.swb(["rpc", "--continue", id]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{id}");
        assert!(output.stderr.contains("there is no session"), "{}", output.stderr);
    }
}

#[test]
fn profiles_keep_their_sessions_apart() {
    let world = world();
    let child = Child::start(&world, &["--profile", "work"]);
    let id = child.session_id.clone();
    drop(child);
    assert_eq!(world.swb(["rpc", "--continue", &id]).code, Some(1));
    assert_eq!(Child::start(&world, &["--profile", "work", "--continue", &id]).session_id, id);
    for name in ["../x", "..", ".x", "a/b", ""] {
        assert_eq!(world.swb(["rpc", "--profile", name]).code, Some(2), "{name:?}");
    }
}

#[test]
fn a_child_killed_after_any_frame_leaves_a_history_that_loads_and_goes_on() {
    let world = world();
    let note = world.folder().join("note.txt");
    std::fs::write(&note, "x").unwrap();
    let script = "!tool ls {}\n!tool read {\"path\":\"note.txt\"}\n!then\n!say two words\n!usage 190000 5";
    let prompt = |id: &str| json!({ "type": "prompt", "id": id, "message": script, "attachments": [{ "path": note }] });
    for taken in 0.. {
        let mut child = Child::start(&world, &[]);
        // The second turn begins with a compaction, because the first one fills the context.
        child.send(prompt("p"));
        child.send(json!({ "type": "follow_up", "id": "q", "message": script }));
        let mut ended = false;
        for _ in 0..taken {
            let frame = child.next();
            ended |= frame["type"] == "response" && frame["id"] == "q";
            if ended {
                break;
            }
        }
        child.signal(Signal::KILL);
        child.exit_code();
        let mut again = Child::start(&world, &["--continue", &child.session_id]);
        let messages = again.messages();
        let count = |kind: &str| {
            let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
            blocks.filter(|block| block["type"] == kind).count()
        };
        assert_eq!(count("tool_use"), count("tool_result"), "killed after {taken} frames: {messages:#?}");
        assert_eq!(again.turn("r", "!say on").pop().unwrap()["ok"], true, "killed after {taken} frames");
        if ended {
            break;
        }
    }
}
