//! A disk on which there is no room: every write says so, nothing is torn, and it goes on when there is room again.
//!
//! A limit on the size of files stands for the disk; the kernel refuses the same writes in the same way, half a line included.

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use testkit::World;

use crate::child::{Child, bash, kinds, pid, world};

fn history_file(world: &World, child: &Child) -> PathBuf {
    let name = format!("{}.jsonl", child.session_id);
    let mut folders = vec![world.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            if entry.file_name() == name.as_str() {
                return entry.path();
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    panic!("there is no {name}");
}

/// No file of the child may become longer than this.
fn limit(child: &Child, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(pid(&child.process)), Resource::Fsize, limit).unwrap();
}

fn size(world: &World, child: &Child) -> u64 {
    std::fs::metadata(history_file(world, child)).unwrap().len()
}

#[track_caller]
fn assert_not_written(frames: &[Value]) {
    let error = frames.iter().find(|frame| frame["type"] == "error").expect("an error");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("cannot write the history ") && message.contains("File too large"),
        "{message}"
    );
    assert_eq!(frames.last().unwrap()["ok"], false);
}

#[test]
fn a_turn_that_cannot_be_kept_fails_and_the_next_one_is_fine_when_there_is_room() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a");
    let before = child.messages();
    // Room for a part of the first line.
    limit(&child, Some(size(&world, &child) + 30));
    let frames = child.turn("q", "!say lost");
    assert_eq!(kinds(&frames), ["error", "agent_end", "response"]);
    assert_not_written(&frames);
    assert_eq!(child.messages(), before);
    let text = std::fs::read_to_string(history_file(&world, &child)).unwrap();
    assert!(text.ends_with("}\n"), "half a line was taken back: {text}");
    assert_eq!(child.ask(json!({ "type": "set_model", "id": "m", "model": "demo" }))["type"], "error");
    limit(&child, None);
    assert_eq!(child.turn("r", "!say b").pop().unwrap()["ok"], true);
    let all = child.messages();
    child.close_stdin();
    child.exit_code();
    assert_eq!(Child::start(&world, &["--continue", &child.session_id]).messages(), all);
}

#[test]
fn a_call_whose_answer_could_not_be_kept_is_answered_before_the_next_turn() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    limit(&child, Some(size(&world, &child) + 3000));
    let frames = child.turn("p", &bash("head -c 20000 /dev/zero | tr '\\0' x"));
    assert_not_written(&frames);
    limit(&child, None);
    assert_eq!(child.turn("q", "!say on").pop().unwrap()["ok"], true);
    let messages = child.messages();
    assert_eq!(messages[2]["content"][0]["type"], "tool_result", "{messages:#?}");
    assert!(messages[2]["content"][0]["content"].as_str().unwrap().starts_with("aborted"));
    drop(child);
}

#[test]
fn a_compaction_that_cannot_be_kept_changes_nothing() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a");
    let before = child.messages();
    limit(&child, Some(size(&world, &child) + 100));
    let error = child.ask(json!({ "type": "compact", "id": "c" }));
    assert!(error["message"].as_str().unwrap().starts_with("cannot write the history"), "{error}");
    assert_eq!(child.messages(), before);
}

#[test]
fn a_file_that_cannot_be_kept_is_not_attached() {
    let world = world();
    let note = world.folder().join("note.txt");
    std::fs::write(&note, "x".repeat(100_000)).unwrap();
    let mut child = Child::start(&world, &[]);
    limit(&child, Some(50_000));
    let error =
        child.ask(json!({ "type": "prompt", "id": "p", "message": "m", "attachments": [{ "path": note }] }));
    assert!(error["message"].as_str().unwrap().starts_with("the attachments cannot be kept"), "{error}");
    assert_eq!(child.state("message_count"), 0);
}
