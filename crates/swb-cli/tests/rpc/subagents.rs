//! Subagents: other processes of this program, driven over its own protocol.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{World, wait};

use crate::child::{Child, is_alive, kinds, results, text, world};

/// A call of `subagent` or a relative as a line of a demo script.
fn call(tool: &str, arguments: Value) -> String {
    format!("!tool {tool} {arguments}")
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

/// The processes of this program that work in the folder of the world, but for this one.
fn agents(world: &World, but: &Child) -> Vec<String> {
    let folder = world.folder().canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.parse::<u32>().is_ok_and(|pid| pid != but.process.id()))
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder) && is_alive(pid)
        })
        .collect()
}

#[test]
fn a_subagent_does_its_task_and_its_answer_is_the_result() {
    let world = world();
    fs::write(world.folder().join("a.txt"), "").unwrap();
    let mut child = Child::start(&world, &[]);
    let task = "!say let me see // !tool ls {} // !usage 1 1 // !say There is a.txt. // !usage 7000 3";
    let frames = child.turn("p", &format!("!subagent {task}\n!usage 10 1\n!then\n!say Good.\n!usage 20 2"));
    assert_eq!(results(&frames), ["There is a.txt."]);
    let mut order = kinds(&frames);
    order.retain(|kind| kind.starts_with("subagent") || *kind == "toolcall_result" || *kind == "agent_end");
    order.dedup();
    assert_eq!(order, ["subagent_start", "subagent_update", "subagent_done", "toolcall_result", "agent_end"]);
    let updates = of_type(&frames, "task_update");
    let states: Vec<_> = updates.iter().map(|update| update["state"].as_str().unwrap()).collect();
    assert_eq!((states[0], states[states.len() - 1]), ("started", "done"));
    let (started, done) = (updates[0], updates[updates.len() - 1]);
    assert_eq!((&done["path"], &done["agents"]), (&json!([1]), &json!(["subagent"])));
    assert_eq!(done["usage"]["output_tokens"], 4);
    assert_eq!(of_type(&frames, "subagent_done")[0]["result_preview"], "There is a.txt.");

    // What it used counts for the turn and for the session, but not for our context.
    let end = of_type(&frames, "agent_end")[0];
    assert_eq!((&end["usage"]["input_tokens"], &end["usage"]["output_tokens"]), (&json!(7031), &json!(7)));
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert_eq!(stats["input_tokens"], 7031);
    assert!(stats["context_tokens"].as_u64().unwrap() < 100, "{stats}");
    child.close_stdin();
    assert_eq!(child.exit_code(), Some(0));
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    assert_eq!(again.ask(json!({ "type": "get_session_stats", "id": "s" }))["input_tokens"], 7031);

    // It has a session of its own that knows where it comes from.
    let session = started["session_id"].as_str().unwrap();
    assert_ne!(session, child.session_id);
    let file = world.paths().sessions(None).join(format!("{session}.jsonl"));
    let history = fs::read_to_string(file).unwrap();
    let first: Value = serde_json::from_str(history.lines().next().unwrap()).unwrap();
    assert_eq!(first["parent"], child.session_id);
    assert_eq!(Child::start(&world, &["--continue", session]).messages().len(), 4);
}

#[test]
fn one_in_the_background_is_seen_steered_and_collected() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let start = call(
        "subagent_start",
        json!({ "name": "scout", "task": "!say waiting // \n!tool bash {\"command\":\"while [ ! -e go ]; do sleep 0.02; done\"}\n!say gone" }),
    );
    let frames = child.turn("p", &format!("{start}\n!then\n{}", call("subagent_status", json!({}))));
    let results = results(&frames);
    assert!(results[0].starts_with("subagent 1 (scout) is at work"), "{results:?}");
    assert!(results[1].starts_with("1 scout: at work"), "{results:?}");
    let too_soon = child.ask(
        json!({ "type": "tool_call", "id": "c", "name": "subagent_collect", "args": { "id": 1, "wait": 0 } }),
    );
    assert!(too_soon["error"].as_str().unwrap().contains("still at work"), "{too_soon}");
    let steer = json!({ "id": 1, "message": "!say steered" });
    let told = child.ask(json!({ "type": "tool_call", "id": "s", "name": "subagent_steer", "args": steer }));
    assert_eq!(told["ok"], true, "{told}");
    fs::write(world.folder().join("go"), "").unwrap();
    let frames = child.turn("q", &call("subagent_collect", json!({ "id": 1 })));
    assert_eq!(crate::child::results(&frames), ["steered"]);
    let unknown =
        child.ask(json!({ "type": "tool_call", "id": "u", "name": "subagent_collect", "args": { "id": 1 } }));
    assert!(unknown["error"].as_str().unwrap().contains("there is no subagent 1"), "{unknown}");
}

#[test]
fn the_model_hears_of_the_end_in_the_running_turn_or_in_the_next_one() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!background !say found it");
    let done = |frame: &Value| frame["type"] == "task_update" && frame["state"] == "done";
    child.until("its end", done);
    assert_eq!(child.state("streaming"), false, "no turn begins by itself");
    let frames = child.turn("q", "!say I see.");
    assert_eq!(text(&frames), "I see.");
    let messages = child.messages();
    let report = messages[messages.len() - 2]["content"].as_str().unwrap();
    assert!(report.contains("Subagent 1 (subagent) is done") && report.contains("found it"), "{report}");

    child.prompt("r", "!background !say second\n!then\n!tool bash {\"command\":\"while [ ! -e go ]; do sleep 0.02; done\"}\n!say end");
    child.until("its end", done);
    fs::write(world.folder().join("go"), "").unwrap();
    assert_eq!(text(&child.until_response("r")), "end", "the script goes on");
    let messages = child.messages();
    assert!(messages[messages.len() - 2]["content"].as_str().unwrap().contains("second"));
}

#[test]
fn for_a_parent_that_wants_it_the_end_begins_a_turn() {
    let world = world();
    let mut child = Child::start(&world, &["--auto-turns"]);
    child.turn("p", "!background !say found it");
    let frames = child.until("the turn", |frame| frame["command"] == "auto_turn");
    let response = frames.last().unwrap();
    assert_eq!(*response, json!({ "type": "response", "id": "auto:1", "command": "auto_turn", "ok": true }));
    assert!(text(&frames).contains("Subagent 1 (subagent) is done"), "{}", text(&frames));
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
}

#[test]
fn what_a_subagent_has_to_ask_comes_up_under_its_name_and_the_answer_goes_down() {
    let world = world();
    fs::write(world.folder().join("kept"), "").unwrap();
    let mut child = Child::start(&world, &["--asks"]);
    let inner = call(
        "subagent",
        json!({ "name": "inner", "task": "!ask rm kept\n!then\n!ask_user Which? | red | blue" }),
    );
    child.prompt("p", &call("subagent", json!({ "name": "outer", "task": inner })));
    let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
    assert_eq!(ask["subject"]["agents"], json!(["outer", "inner"]));
    assert_eq!(ask["subject"]["arguments"], json!({ "command": "rm kept" }));
    assert_eq!((&ask["risk"], &ask["options"]), (&json!("medium"), &json!(["allow", "deny"])));
    child.send(json!({ "type": "answer", "id": "a", "ask_id": ask["ask_id"], "option": "allow" }));
    let ask = child.until("the question", |frame| frame["type"] == "ask").pop().unwrap();
    assert!(!world.folder().join("kept").exists(), "the answer has arrived");
    assert_eq!((&ask["reason"], &ask["free_text"]), (&json!("Which?"), &json!(true)));
    child.send(json!({ "type": "answer", "id": "b", "ask_id": ask["ask_id"], "text": "green" }));
    let frames = child.until_response("p");
    assert_eq!(results(&frames), ["Done.\n- Done."]);
}

#[test]
fn an_open_question_of_a_subagent_is_closed_with_it() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!subagent !ask_user Which?");
    let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    let closed = of_type(&frames, "ask_closed");
    assert_eq!(closed[0]["ask_id"], ask["ask_id"]);
    assert_eq!(agents(&world, &child), [] as [String; 0]);
}

#[test]
fn a_subagent_may_never_do_more_than_its_parent() {
    let world = world();
    let touch = "!tool bash {\"command\":\"touch made\"}";
    let mut child = Child::start(&world, &["--tool-mode", "read-only"]);
    let frames = child.turn("p", &call("subagent", json!({ "mode": "full", "task": touch })));
    assert!(results(&frames)[0].contains("read-only"), "{frames:?}");
    assert!(!world.folder().join("made").exists());

    // Nobody is asked where nobody answers, and one in the background is narrowed with us.
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let wait = "!tool bash {\"command\":\"while [ ! -e go ]; do sleep 0.02; done\"}";
    child.turn("p", &call("subagent_start", json!({ "task": format!("{wait}\n!then\n{touch}") })));
    child.until("its work", |frame| frame["status"].as_str().is_some_and(|status| status.starts_with('$')));
    child.ask(json!({ "type": "set_tool_mode", "id": "m", "mode": "read-only" }));
    fs::write(world.folder().join("go"), "").unwrap();
    let frames = child.turn("q", &call("subagent_collect", json!({ "id": 1 })));
    assert!(results(&frames)[0].contains("Denied"), "{frames:?}");
    assert!(!world.folder().join("made").exists());
}

#[test]
fn subagents_nest_only_so_deep_and_there_are_only_so_many() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let nested = |task: String| call("subagent", json!({ "task": task }));
    let frames = child.turn("p", &nested(nested(nested("!subagent !say deep".to_owned()))));
    assert_eq!(results(&frames), ["Done.\n- Done."], "each reports the one below");
    let paths: Vec<_> = of_type(&frames, "task_update").iter().map(|update| update["path"].clone()).collect();
    assert!(paths.contains(&json!([1, 1, 1])), "{paths:?}");
    assert!(!paths.iter().any(|path| path.as_array().unwrap().len() > 3), "{paths:?}");

    let many: Vec<_> = (0..9).map(|_| "!background !stall").collect();
    let frames = child.turn("q", &many.join("\n"));
    let refused = results(&frames).into_iter().filter(|result| result.contains("which is the limit")).count();
    assert_eq!(refused, 1);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    let cancelled =
        of_type(&frames, "task_update").into_iter().filter(|update| update["state"] == "cancelled");
    assert_eq!(cancelled.count(), 8);
    assert_eq!(agents(&world, &child), [] as [String; 0], "an abort has ended them all");
}

/// Two levels of subagents, the lower with a tool at work; returns that tool's pid.
fn deep_work(child: &mut Child, world: &World) -> String {
    let work = "!tool bash {\"command\":\"echo $$ > pid; mv pid pid.txt; exec sleep 1000\"}";
    let inner = call("subagent", json!({ "task": work }));
    child.prompt("p", &call("subagent", json!({ "task": inner })));
    let file = world.folder().join("pid.txt");
    wait("the tool", || file.exists());
    let pid = fs::read_to_string(file).unwrap().trim().to_owned();
    assert!(is_alive(&pid));
    assert!(agents(world, child).len() >= 3);
    pid
}

#[test]
fn the_whole_tree_ends_with_an_abort_with_the_input_and_with_a_signal() {
    for how in ["abort", "eof", "term"] {
        let world = world();
        let mut child = Child::start(&world, &[]);
        let pid = deep_work(&mut child, &world);
        match how {
            "abort" => {
                child.send(json!({ "type": "abort", "id": "a" }));
                let frames = child.until_response("a");
                assert_eq!(results(&frames), ["Canceled by user"]);
            }
            "eof" => {
                child.close_stdin();
                assert_eq!(child.exit_code(), Some(0));
            }
            _ => {
                child.signal(Signal::TERM);
                assert_eq!(child.exit_code(), Some(0));
            }
        }
        wait("the tool to end", || !is_alive(&pid));
        wait("the tree to end", || agents(&world, &child).is_empty());
    }
}

#[test]
fn a_killed_root_leaves_nobody_behind() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let pid = deep_work(&mut child, &world);
    child.signal(Signal::KILL);
    assert_eq!(child.exit_code(), None);
    wait("the tool to end", || !is_alive(&pid));
    wait("the tree to end", || agents(&world, &child).is_empty());
}

#[test]
fn a_subagent_that_dies_or_fails_is_a_result_the_model_can_read() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", "!subagent !say half // !fail no more");
    assert!(results(&frames)[0].contains("has failed: no more\nIt had said:\nhalf"), "{frames:?}");
    let frames =
        child.turn("q", "!subagent !tool bash {\"command\":\"kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)\"}");
    assert!(results(&frames)[0].contains("signal 9"), "{frames:?}");
    let frames = child.turn("r", &call("subagent", json!({ "task": "!stall", "timeout": 1 })));
    assert!(results(&frames)[0].contains("not done after 1 seconds"), "{frames:?}");
    let frames = child.turn("s", &call("subagent", json!({ "task": "!say x", "model": "nobody/knows" })));
    assert!(results(&frames)[0].contains("nobody/knows"), "{frames:?}");
    for arguments in [
        json!({}),
        json!({ "task": " " }),
        json!({ "task": "x", "mode": "root" }),
        json!({ "task": "x", "name": "a\nb" }),
    ] {
        let frames = child.turn("t", &call("subagent", arguments.clone()));
        assert!(results(&frames)[0].starts_with("Tool execution failed"), "{arguments}: {frames:?}");
        assert!(of_type(&frames, "subagent_start").is_empty());
    }
}
