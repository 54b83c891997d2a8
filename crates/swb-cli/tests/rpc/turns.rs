//! Turns: the order of frames, failures, queueing, steering.

use serde_json::json;

use crate::child::{Child, bash, kinds, results, text, world};

#[test]
fn deltas_then_agent_end_then_the_one_response() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!think hm\n!say Hello there\n!usage 7 2");
    assert_eq!(kinds(&frames), ["thinking_delta", "text_delta", "text_delta", "agent_end", "response"]);
    assert_eq!(text(&frames), "Hello there");
    assert_eq!(
        frames[3],
        json!({ "type": "agent_end", "usage": { "input_tokens": 7, "output_tokens": 2,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 } })
    );
    assert_eq!(frames[4], json!({ "type": "response", "id": "p", "command": "prompt", "ok": true }));
}

#[test]
fn an_empty_message_is_a_message() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    assert_eq!(child.turn("p", "").pop().unwrap()["ok"], true);
}

#[test]
fn every_tool_call_has_start_input_and_result() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!tool ls {}\n!usage 1 1");
    assert_eq!(
        kinds(&frames)[..5],
        [
            "toolcall_start",
            "toolcall_input_delta",
            "toolcall_input_delta",
            "toolcall_input",
            "toolcall_result"
        ]
    );
    assert_eq!(frames[3]["event"]["input"], json!({}));
}

#[test]
fn a_failed_turn_says_so_twice_and_ends_like_any_other() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!say half\n!fail no luck");
    assert_eq!(kinds(&frames), ["text_delta", "error", "agent_end", "response"]);
    assert_eq!(frames[1], json!({ "type": "error", "id": "p", "message": "no luck" }));
    assert_eq!(
        frames[3],
        json!({ "type": "response", "id": "p", "command": "prompt", "ok": false, "error": "no luck" })
    );
    assert_eq!(child.messages()[0]["content"], "!say half\n!fail no luck", "what the user said stays");
}

#[test]
fn an_answer_that_is_cut_off_or_empty_is_never_a_success() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    for script in ["!say half\n!cut", "!empty"] {
        let response = child.turn("p", script).pop().unwrap();
        assert_eq!(response["ok"], false, "{script}");
        assert!(response["error"].is_string());
    }
}

#[test]
fn a_model_that_never_ends_is_stopped_and_only_a_part_is_kept() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let word = "x".repeat(100_000);
    let response = child.turn("p", &format!("!repeat 1000 {word}")).pop().unwrap();
    assert_eq!(response["error"], "the model's answer is longer than 16 MiB");
    let kept = child.messages()[1]["content"][0]["text"].take();
    assert!(kept.as_str().unwrap().ends_with("total chars, showing first 30000]"));
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn a_thousand_fast_failing_prompts_leave_it_idle_and_answering() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    for at in 0..1000 {
        let frames = child.turn(&format!("p{at}"), "!fail");
        assert_eq!(kinds(&frames), ["error", "agent_end", "response"]);
    }
    assert_eq!(child.state("streaming"), false);
    assert_eq!(child.turn("last", "!say fine").pop().unwrap()["ok"], true);
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
}

#[test]
fn prompt_and_new_session_are_refused_while_a_turn_runs() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!say a\n!stall");
    child.until("the first word", |frame| frame["type"] == "message_update");
    for command in ["prompt", "new_session"] {
        let error = child.ask(json!({ "type": command, "id": "x", "message": "m" }));
        assert_eq!(error["type"], "error");
        assert!(error["message"].as_str().unwrap().contains("abort first"), "{error}");
    }
    assert_eq!(child.state("streaming"), true, "the running turn is untouched");
}

#[test]
fn every_question_is_answered_while_a_turn_runs() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!stall");
    for command in
        ["get_state", "get_messages", "get_session_stats", "get_available_models", "tools_list", "queue"]
    {
        assert_eq!(child.ask(json!({ "type": command, "id": "q" }))["command"], command);
    }
    assert_eq!(child.ask(json!({ "type": "set_model", "id": "q", "model": "demo" }))["model"], "demo");
}

#[test]
fn a_follow_up_waits_its_turn_and_is_answered_as_what_it_is() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!until go\n!say one");
    child.send(json!({ "type": "follow_up", "id": "f", "message": "!say two" }));
    std::fs::write(world.folder().join("go"), "").unwrap();
    let frames = child.until_response("f");
    assert_eq!(
        kinds(&frames),
        ["text_delta", "agent_end", "response", "text_delta", "agent_end", "response"]
    );
    assert_eq!((&frames[2]["id"], &frames[5]["command"]), (&json!("p"), &json!("follow_up")));
    assert_eq!(child.ask(json!({ "type": "follow_up", "id": "g", "message": "!say three" }))["ok"], true);
}

#[test]
fn steering_reaches_the_running_turn_before_its_next_model_call() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    child.prompt("p", &format!("{}\n!say not this", bash("while [ ! -e go ]; do sleep 0.01; done")));
    child.until("the tool", |frame| frame["event"]["type"] == "toolcall_input");
    child.send(json!({ "type": "steer", "id": "s", "message": "!say rather this" }));
    assert_eq!(child.ask(json!({ "type": "queue", "id": "q" }))["queue"][0]["id"], "s");
    std::fs::write(world.folder().join("go"), "").unwrap();
    let frames = child.until_response("p");
    assert_eq!(text(&frames), "rather this");
    assert_eq!(frames.iter().filter(|frame| frame["id"] == "s" && frame["ok"] == true).count(), 1);
}

#[test]
fn steering_an_idle_agent_begins_a_turn() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send(json!({ "type": "steer", "id": "s", "message": "!say hi" }));
    let frames = child.until_response("s");
    assert_eq!(kinds(&frames), ["text_delta", "agent_end", "response"]);
}

#[test]
fn what_waits_can_be_cleared_and_everybody_is_told() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!stall");
    for id in ["f", "g"] {
        child.send(json!({ "type": "follow_up", "id": id, "message": "m" }));
    }
    child.send(json!({ "type": "clear_queue", "id": "c" }));
    let frames = child.until_response("c");
    assert_eq!((&frames[0]["id"], &frames[0]["cancelled"]), (&json!("f"), &json!(true)));
    assert_eq!((&frames[1]["id"], &frames[2]["cleared"]), (&json!("g"), &json!(2)));
}

#[test]
fn tools_called_together_run_together_and_are_kept_in_order() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    // The first ends only after the second has been told.
    std::fs::write(world.folder().join("note"), "x").unwrap();
    let first = bash("while [ ! -e go ]; do sleep 0.01; done; echo slow");
    child.prompt("p", &format!("{first}\n!tool read {{\"path\":\"note\"}}"));
    let mut frames =
        child.until("the result of the second", |frame| frame["event"]["type"] == "toolcall_result");
    std::fs::write(world.folder().join("go"), "").unwrap();
    frames.extend(child.until_response("p"));
    assert_eq!(results(&frames), ["     1\tx\n", "slow\n"], "as they come");
    let kept = child.messages()[2]["content"].take();
    assert_eq!((&kept[0]["content"], &kept[1]["content"]), (&json!("slow\n"), &json!("     1\tx\n")));
}

#[test]
fn broken_arguments_and_unknown_tools_are_results_the_model_can_read() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!tool ls {\"path\":\n!tool dance {}\n!tool read {}");
    let results = results(&frames);
    assert!(results.iter().any(|result| result.contains("not JSON")), "{results:?}");
    assert!(results.contains(&"Unknown tool: dance"));
    assert!(results.iter().any(|result| result.contains("missing field `path`")), "{results:?}");
    assert_eq!(frames.iter().filter(|frame| frame["event"]["type"] == "toolcall_input").count(), 3);
    assert_eq!(frames.last().unwrap()["ok"], true);
}
