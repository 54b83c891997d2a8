//! Tools, and the gate they pass.

use std::fs;

use serde_json::{Value, json};
use testkit::World;

use crate::child::{Child, bash, results, world};

/// Runs one tool without a model.
#[track_caller]
fn call(child: &mut Child, name: &str, args: Value) -> Value {
    child.ask(json!({ "type": "tool_call", "id": "t", "name": name, "args": args }))
}

#[track_caller]
pub(crate) fn result(child: &mut Child, name: &str, args: Value) -> String {
    let response = call(child, name, args);
    assert_eq!(response["ok"], true, "{response}");
    response["result"].as_str().unwrap().to_owned()
}

#[track_caller]
pub(crate) fn refusal(child: &mut Child, name: &str, args: Value) -> String {
    let response = call(child, name, args);
    assert_eq!(response["ok"], false, "{response}");
    response["error"].as_str().unwrap().to_owned()
}

pub(crate) fn file(world: &World, name: &str, content: &str) {
    let path = world.folder().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn files_are_written_read_and_edited() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    result(&mut child, "write", json!({ "path": "new/a.txt", "content": "one\ntwo\ntwo\n" }));
    assert_eq!(
        result(&mut child, "read", json!({ "path": "new/a.txt", "offset": 2, "limit": 1 })),
        "     2\ttwo\n[lines 2 to 2 of 3]\n"
    );
    let edits = json!([{ "old_text": "one", "new_text": "1" }, { "old_text": "two", "new_text": "2", "replace_all": true }]);
    result(&mut child, "edit", json!({ "path": "new/a.txt", "edits": edits }));
    assert_eq!(fs::read_to_string(world.folder().join("new/a.txt")).unwrap(), "1\n2\n2\n");
    let error = refusal(&mut child, "edit", json!({ "path": "new/a.txt", "old_text": "2", "new_text": "3" }));
    assert!(error.contains("occurs 2 times"), "{error}");
    assert!(refusal(&mut child, "read", json!({ "path": "new" })).contains("not a regular file"));
}

#[test]
fn files_are_listed_found_and_searched_without_what_is_ignored() {
    let world = world();
    file(&world, "w/src/a.rs", "fn main() {}\n");
    file(&world, "w/src/b.txt", "no main here\n");
    file(&world, "w/out/c.rs", "fn main() {}\n");
    file(&world, "w/.gitignore", "out/\n");
    file(&world, "w/key.pem", "fn main secret\n");
    let mut child = Child::start(&world, &[]);
    assert_eq!(result(&mut child, "ls", json!({ "path": "w" })), ".gitignore\nkey.pem\nout/\nsrc/\n");
    assert_eq!(result(&mut child, "find", json!({ "path": "w", "pattern": "*.rs" })), "w/src/a.rs\n");
    assert_eq!(
        result(&mut child, "grep", json!({ "path": "w", "pattern": "MAIN", "ignore_case": true })),
        "w/src/a.rs:1:fn main() {}\nw/src/b.txt:1:no main here\n"
    );
    assert_eq!(
        result(&mut child, "grep", json!({ "path": "w", "pattern": "main", "glob": "*.txt" })),
        "w/src/b.txt:1:no main here\n"
    );
    assert!(refusal(&mut child, "grep", json!({ "pattern": "(" })).contains("unclosed"));
}

#[test]
fn the_folder_of_bash_is_kept_and_its_exit_code_told() {
    let world = world();
    fs::create_dir(world.folder().join("sub")).unwrap();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    result(&mut child, "bash", json!({ "command": "cd sub" }));
    assert!(result(&mut child, "bash", json!({ "command": "pwd; exit 3" })).ends_with("/sub\n[exit code 3]"));
    result(&mut child, "write", json!({ "path": "here", "content": "" }));
    assert!(world.folder().join("sub/here").exists(), "other tools are there too");
    assert_eq!(result(&mut child, "bash", json!({ "command": "kill -9 $$" })), "[ended by signal 9]");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_group() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let shown = result(&mut child, "bash", json!({ "command": "sleep 1000 & echo $!; wait", "timeout": 1 }));
    assert!(shown.ends_with("[killed after 1 seconds]"), "{shown}");
    let grandchild = shown.lines().next().unwrap().to_owned();
    testkit::wait("the grandchild to end", || !crate::child::is_alive(&grandchild));
}

#[test]
fn a_long_result_is_whole_on_the_wire_and_cut_in_the_history() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("seq 1 20000"));
    assert!(results(&frames)[0].ends_with("\n20000\n"));
    let kept = child.messages()[2]["content"][0]["content"].take();
    assert!(kept.as_str().unwrap().ends_with("showing first 30000]"));
}

#[test]
fn a_tool_is_called_without_a_model_and_without_an_id() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send(json!({ "op": "tool_call", "type": "tool_call", "name": "ls", "args": {} }));
    let response = child.next();
    assert_eq!((&response["id"], &response["ok"]), (&json!(""), &json!(true)));
    assert_eq!(refusal(&mut child, "dance", json!({})), "Unknown tool: dance");
    assert_eq!(child.state("message_count"), 0);
}

#[test]
fn nobody_to_ask_means_denied_with_a_reason() {
    let world = world();
    file(&world, "kept", "");
    let mut child = Child::start(&world, &[]);
    for (name, args) in [
        ("bash", json!({ "command": "touch ../x" })),
        ("bash", json!({ "command": "rm -f kept" })),
        ("bash", json!({ "command": "curl https://example.org" })),
        ("bash", json!({ "command": "echo 'no end" })),
        ("write", json!({ "path": "/tmp/swb-outside/x", "content": "" })),
        ("write", json!({ "path": "../x", "content": "" })),
        ("write", json!({ "path": ".git/hooks/pre-commit", "content": "" })),
        ("read", json!({ "path": ".env" })),
    ] {
        let error = refusal(&mut child, name, args.clone());
        assert!(error.starts_with("Denied: "), "{args}: {error}");
    }
    assert!(world.folder().join("kept").exists());
}

#[test]
fn in_the_workspace_a_command_may_read_write_and_run() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let command =
        "mkdir src && echo hi > src/a && printf '#!/bin/sh\\ncat src/a\\n' > run && chmod +x run && ./run";
    assert_eq!(result(&mut child, "bash", json!({ "command": command })), "hi\n");
}

#[test]
fn an_ask_shows_what_is_to_be_done_but_no_keys() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    let key = format!("ghp_{}", "a1B2".repeat(9));
    child.prompt("p", &format!("!ask curl -H 'Authorization: token {key}' https://example.org"));
    let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
    assert!(ask["subject"]["arguments"]["command"].as_str().unwrap().starts_with("curl -H"), "{ask}");
    assert!(!ask.to_string().contains(&key), "{ask}");
    assert_eq!(ask["risk"], "medium");
    child.send(json!({ "type": "abort", "id": "a" }));
    child.until_response("a");
}

#[test]
fn a_link_does_not_lead_out_of_the_workspace() {
    let world = world();
    let outside = World::new();
    std::os::unix::fs::symlink(outside.folder(), world.folder().join("link")).unwrap();
    let mut child = Child::start(&world, &[]);
    assert!(refusal(&mut child, "write", json!({ "path": "link/x", "content": "" })).contains("outside"));
}

#[test]
fn a_parent_that_said_so_is_asked_and_its_answer_counts() {
    let world = world();
    file(&world, "kept", "");
    let mut child = Child::start(&world, &["--asks"]);
    for (option, kept) in [("deny", true), ("allow", false)] {
        child.prompt("p", "!ask rm kept");
        let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
        assert_eq!(ask["options"], json!(["allow", "deny"]));
        assert_eq!(ask["subject"]["arguments"], json!({ "command": "rm kept" }));
        let answer =
            |option: &str| json!({ "type": "answer", "id": "w", "ask_id": ask["ask_id"], "option": option });
        assert_eq!(child.ask(answer("perhaps"))["type"], "error");
        assert_eq!(child.ask(answer(option))["ok"], true);
        child.until_response("p");
        assert_eq!(world.folder().join("kept").exists(), kept);
        assert_eq!(child.ask(answer(option))["type"], "error", "an ask is answered once");
    }
}

#[test]
fn an_open_ask_ends_with_an_abort() {
    let world = world();
    file(&world, "kept", "");
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!ask rm kept");
    let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(results(&frames), ["Canceled by user"]);
    let late = child.ask(json!({ "type": "answer", "id": "w", "ask_id": ask["ask_id"], "option": "allow" }));
    assert_eq!(late["type"], "error");
    assert!(world.folder().join("kept").exists());
}

#[test]
fn the_mode_can_be_changed_and_read_only_changes_nothing() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "read-only"]);
    assert!(refusal(&mut child, "write", json!({ "path": "x", "content": "" })).contains("read-only"));
    assert!(refusal(&mut child, "bash", json!({ "command": "touch x" })).contains("read-only"));
    assert_eq!(child.ask(json!({ "type": "set_tool_mode", "id": "m", "mode": "root" }))["type"], "error");
    assert_eq!(child.ask(json!({ "type": "set_tool_mode", "id": "m", "mode": "full" }))["mode"], "full");
    result(&mut child, "bash", json!({ "command": "touch x" }));
    assert_eq!(child.state("tool_mode"), "full");
}

#[test]
fn messages_are_posted_to_the_project_and_read_from_it() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let posted = result(&mut child, "bus_post", json!({ "project": "demo", "body": "tests are green" }));
    let id = posted.strip_prefix("posted ").unwrap();
    assert!(result(&mut child, "bus_read", json!({ "project": "demo" })).contains("tests are green"));
    assert!(
        result(&mut child, "bus_read", json!({ "project": "demo", "since": id })).contains("no messages")
    );
    assert!(world.swb(["bus", "read", "--project", "demo"]).ok().stdout.contains("tests are green"));
    assert!(refusal(&mut child, "bus_post", json!({ "body": "where?" })).contains("name the project"));
    assert!(!refusal(&mut child, "bus_post", json!({ "project": "../x", "body": "" })).is_empty());
}
