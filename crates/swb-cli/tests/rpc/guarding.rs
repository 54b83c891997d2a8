//! What a tool has started ends with the agent, also when that is killed and can end nothing itself.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use testkit::{wait, wait_for};

use crate::child::{Child, bash, is_alive, results, world};

/// Waits for a file with a pid in it.
fn pid_in(file: &Path) -> String {
    wait_for("the pid", || fs::read_to_string(file).ok().filter(|text| text.ends_with('\n')))
        .trim()
        .to_owned()
}

#[test]
fn a_killed_agent_leaves_no_tool_behind_whatever_that_did_to_get_away() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let command = "
        sleep 1000 & echo $! > child
        setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > daemon; while :; do sleep 1; done' &
        (setsid sleep 1000 & echo $! > orphan)
        echo $$ > itself; wait";
    child.prompt("p", &bash(command));
    let pids = ["child", "daemon", "orphan", "itself"].map(|name| pid_in(&world.folder().join(name)));
    assert!(pids.iter().all(|pid| is_alive(pid)));
    child.signal(Signal::KILL);
    assert_eq!(child.exit_code(), None);
    wait("all of them to end", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn a_killed_agent_leaves_nothing_behind_that_ran_in_the_background() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("sleep 1000 & echo $!; setsid sleep 1000 & echo $!"));
    let pids: Vec<_> = results(&frames)[0].lines().map(str::to_owned).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(pid)), "they outlive their command: {pids:?}");
    child.signal(Signal::KILL);
    assert_eq!(child.exit_code(), None);
    wait("both to end", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn an_abort_ends_also_what_left_the_group() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let command = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & wait";
    child.prompt("p", &bash(command));
    let pid = pid_in(&world.folder().join("pid"));
    child.send(serde_json::json!({ "type": "abort", "id": "a" }));
    child.until_response("a");
    wait("it to end", || !is_alive(&pid));
}

#[test]
fn a_guard_goes_when_there_is_nothing_left_to_guard() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("echo $PPID; sleep 1000 & echo $!"));
    let pids: Vec<_> = results(&frames)[0].lines().map(str::to_owned).collect();
    assert!(is_alive(&pids[0]), "it watches what is left");
    child.turn("q", &bash(&format!("kill {}", pids[1])));
    wait("the guard to end", || !is_alive(&pids[0]));
    wait("it to be reaped", || !Path::new(&format!("/proc/{}", pids[0])).exists());
}

#[test]
fn a_command_whose_guard_was_killed_is_told_so() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("echo before; kill -9 $PPID; exec sleep 1000"));
    assert!(results(&frames)[0].starts_with("before\n[how it ended is not known"), "{frames:?}");
    child.close_stdin();
    assert_eq!(child.exit_code(), Some(0));
}
