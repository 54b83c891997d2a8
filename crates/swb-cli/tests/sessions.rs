//! `swb sessions`: what agents have worked on, told without reading whole histories.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use testkit::World;

fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

/// Runs one prompt to its end and returns the session's id.
fn talk(world: &World, arguments: &[&str], prompt: &str) -> String {
    let mut command = world.command(["rpc"].iter().chain(arguments));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let prompt = json!({ "type": "prompt", "id": "p", "message": prompt });
    write!(child.stdin.take().unwrap(), "{prompt}\n{{\"type\":\"shutdown\"}}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let ready: Value =
        serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    ready["session_id"].as_str().unwrap().to_owned()
}

fn file(world: &World, id: &str) -> PathBuf {
    world.paths().sessions(None).join(format!("{id}.jsonl"))
}

/// Makes a session the latest but so many seconds.
fn touch(world: &World, id: &str, seconds: u64) {
    let file = std::fs::File::options().write(true).open(file(world, id)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

fn listed(world: &World, arguments: &[&str]) -> Vec<Value> {
    world.swb(["sessions", "--json"].iter().chain(arguments)).ok().json_lines()
}

fn ids(listed: &[Value]) -> Vec<&str> {
    listed.iter().map(|session| session["id"].as_str().unwrap()).collect()
}

#[test]
fn without_sessions_there_is_nothing_to_list() {
    let world = world();
    let none = world.swb(["sessions"]).ok();
    assert_eq!(none.stdout, "");
    assert!(none.stderr.contains("no sessions yet"));
}

#[test]
fn each_is_listed_with_what_it_is_about_the_latest_first() {
    let world = world();
    let first = talk(&world, &[], "!say hello there");
    let second = talk(&world, &["--model", "demo/demo"], "!fail no luck");
    touch(&world, &first, 100);
    let sessions = listed(&world, &[]);
    assert_eq!(ids(&sessions), [second.as_str(), &first]);
    let session = &sessions[1];
    assert_eq!(session["title"], "!say hello there");
    assert_eq!(session["cwd"], json!(world.folder()));
    assert_eq!((&session["model"], &session["turns"]), (&json!("demo"), &json!(1)));
    assert_eq!((&session["live"], &session["last_turn"]), (&json!(false), &json!("done")));
    assert_eq!((&sessions[0]["model"], &sessions[0]["last_turn"]), (&json!("demo/demo"), &json!("failed")));
    let text = world.swb(["sessions"]).ok().stdout;
    assert!(text.lines().next().unwrap().contains("!fail no luck"), "{text}");
    assert!(text.contains("1 min") && text.contains("1 turn"), "{text}");
}

#[test]
fn a_session_is_live_while_its_process_runs() {
    let world = world();
    let mut child = world.command(["rpc"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let live = testkit::wait_for("the session", || listed(&world, &[]).pop());
    assert_eq!(live["live"], true);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(listed(&world, &[])[0]["live"], false);
}

#[test]
fn damaged_files_are_shown_as_such_and_hide_no_other() {
    let world = world();
    let good = talk(&world, &[], "hello");
    std::fs::write(file(&world, "empty"), "").unwrap();
    std::fs::write(file(&world, "garbage"), b"\xff\0\x1b[2J\n").unwrap();
    touch(&world, "empty", 10);
    touch(&world, "garbage", 20);
    touch(&world, &good, 30);
    let sessions = listed(&world, &[]);
    assert_eq!(ids(&sessions), ["empty", "garbage", &good]);
    assert!(sessions[0]["damaged"].is_string() && sessions[1]["damaged"].is_string());
    assert!(world.swb(["sessions"]).ok().stdout.contains("damaged: "));
}

#[test]
fn what_a_prompt_holds_cannot_reach_the_terminal() {
    let world = world();
    talk(&world, &[], "\u{1b}]0;owned\u{7}\u{1b}[2Jhello\r\n\u{202e}there");
    let text = world.swb(["sessions"]).ok().stdout;
    assert!(text.contains("hello \u{fffd}there"), "{text:?}");
    assert!(text.chars().all(|character| !character.is_control() || character == '\n'), "{text:?}");
}

#[test]
fn those_of_subagents_are_hidden_or_stand_below_their_parent() {
    let world = world();
    let root = talk(&world, &[], "root");
    let child = talk(&world, &["--parent", &root], "child");
    let grandchild = talk(&world, &["--parent", &child], "grandchild");
    let orphan = talk(&world, &["--parent", "sess_gone"], "orphan");
    touch(&world, &root, 40);
    for (id, seconds) in [(&orphan, 10), (&grandchild, 20), (&child, 30)] {
        touch(&world, id, seconds);
    }
    assert_eq!(ids(&listed(&world, &[])), [root.as_str()]);
    assert_eq!(ids(&listed(&world, &["--all"])), [orphan.as_str(), &root, &child, &grandchild]);
    let text = world.swb(["sessions", "--all"]).ok().stdout;
    assert!(text.lines().nth(3).unwrap().starts_with("    ○"), "{text}");
}

#[test]
fn parents_in_a_circle_are_listed_all_the_same() {
    let world = world();
    talk(&world, &[], "hello");
    for (id, parent) in [("a", "b"), ("b", "a"), ("c", "a"), ("d", "d")] {
        let rest = format!(
            r#""created_at":"2026-01-01T00:00:00.000Z","model":"demo","parent":"{parent}","cwd":"/""#
        );
        let header = format!(r#"{{"type":"session","version":1,"id":"{id}",{rest}}}"#);
        std::fs::write(file(&world, id), header + "\n").unwrap();
    }
    assert_eq!(listed(&world, &["--all"]).len(), 5);
}

#[test]
fn a_folder_or_a_number_narrows_the_list() {
    let world = world();
    let here = talk(&world, &[], "here");
    let other = world.folder().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = world.command(["rpc"]);
    let there = command.current_dir(&other).output().unwrap();
    assert!(there.status.success());
    assert_eq!(ids(&listed(&world, &["--here"])), [here.as_str()]);
    assert_eq!(listed(&world, &["--limit", "1"]).len(), 1);
    assert_eq!(listed(&world, &["--profile", "work"]).len(), 0);
}

#[test]
fn thousands_of_long_sessions_are_listed_without_reading_them() {
    let world = world();
    let id = talk(&world, &[], &format!("long\n!repeat 20000 {}", "x".repeat(100)));
    let history = file(&world, &id);
    assert!(history.metadata().unwrap().len() > 2_000_000);
    // The same content under many names costs no disk.
    for at in 0..3000 {
        std::fs::hard_link(&history, file(&world, &format!("sess_{at:04}"))).unwrap();
    }
    let before = read_by_children();
    assert_eq!(listed(&world, &["--all"]).len(), 3001);
    let read = read_by_children() - before;
    assert!(read < 200_000_000, "{read} bytes were read of 6 GB");
}

/// What the processes that have ended so far have read, as the kernel counted for their parent.
fn read_by_children() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}
