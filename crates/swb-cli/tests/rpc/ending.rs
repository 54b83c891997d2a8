//! How it ends: shutdown, end of input, signals, a parent that goes away or does not read.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use testkit::wait;

use crate::child::{Child, bash, exit_code, is_alive, kinds, pid, spawn, world};
use crate::framing::status_of;

#[test]
fn shutdown_ends_it_without_a_response() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send(json!({ "type": "shutdown", "extra": 1 }));
    assert_eq!(child.exit_code(), Some(0));
    assert_eq!(child.rest(), [] as [Value; 0]);
    assert_eq!(child.stderr(), "");
}

#[test]
fn shutdown_lets_a_turn_finish_also_when_the_input_ends() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!until go\n!say done");
    child.send(json!({ "type": "shutdown" }));
    child.send(json!({ "type": "prompt", "id": "late", "message": "m" }));
    child.close_stdin();
    child.until("what comes late to be refused", |frame| frame["id"] == "late" && frame["type"] == "error");
    std::fs::write(world.folder().join("go"), "").unwrap();
    assert_eq!(child.exit_code(), Some(0));
    let frames = child.rest();
    assert_eq!(kinds(&frames), ["text_delta", "agent_end", "response"]);
    assert_eq!(frames[2]["ok"], true);
}

#[test]
fn shutdown_cuts_a_turn_that_does_not_end_before_parents_lose_patience() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!stall");
    child.state("streaming");
    let begun = Instant::now();
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "a parent would have killed it by now");
    let frames = child.rest();
    assert_eq!(frames.last().unwrap()["cancelled"], true, "{frames:?}");
}

#[test]
fn the_end_of_input_ends_it_at_once_and_what_was_said_is_kept() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.prompt("p", "!say a\n!stall");
    child.until("the text", |frame| frame["event"]["delta"] == "a");
    child.close_stdin();
    assert_eq!(child.exit_code(), Some(0));
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    assert_eq!(again.messages().len(), 2);
}

/// A turn whose tool prints the pid of a process in the background, and does not end by itself.
fn busy(world: &testkit::World, command: &str) -> (Child, String) {
    let mut child = Child::start(world, &["--tool-mode", "full"]);
    child.prompt("p", &bash(command));
    let shown = child.until("the output", |frame| frame["type"] == "tool_output").pop().unwrap();
    let grandchild = shown["delta"].as_str().unwrap().trim().to_owned();
    assert!(is_alive(&grandchild));
    (child, grandchild)
}

#[test]
fn a_signal_saves_ends_every_tool_and_exits_with_0() {
    let world = world();
    for signal in [Signal::TERM, Signal::INT] {
        let (mut child, grandchild) = busy(&world, "sleep 1000 & echo $!; wait");
        child.signal(signal);
        assert_eq!(child.exit_code(), Some(0));
        assert!(!is_alive(&grandchild));
        let mut again = Child::start(&world, &["--continue", &child.session_id]);
        assert_eq!(again.messages().len(), 3, "the call has its answer");
    }
}

#[test]
fn a_process_that_left_its_group_and_its_session_ends_all_the_same() {
    let world = world();
    let command = "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait";
    let (mut child, grandchild) = busy(&world, command);
    child.close_stdin();
    assert_eq!(child.exit_code(), Some(0));
    assert!(!is_alive(&grandchild));
}

#[test]
fn what_a_finished_command_left_in_the_background_ends_with_the_agent() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("sleep 1000 & echo $!"));
    let grandchild = crate::child::results(&frames)[0].trim().to_owned();
    assert!(is_alive(&grandchild), "it may go on while the agent lives");
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    assert!(!is_alive(&grandchild));
}

#[test]
fn a_parent_that_closes_stdout_ends_the_child_and_its_tools() {
    let world = world();
    let mut process = spawn(&world, &["--tool-mode", "full"]);
    let mut stdin = process.stdin.take().unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let prompt = json!({ "type": "prompt", "id": "p", "message": bash("echo $$; exec sleep 1000") });
    stdin.write_all(format!("{prompt}\n").as_bytes()).unwrap();
    let mut line = String::new();
    let shown = loop {
        line.clear();
        stdout.read_line(&mut line).unwrap();
        let frame: Value = serde_json::from_str(&line).unwrap();
        if frame["type"] == "tool_output" {
            break frame["delta"].as_str().unwrap().to_owned();
        }
    };
    drop(stdout);
    assert_eq!(exit_code(&mut process), Some(0), "though stdin is still open");
    assert!(!is_alive(&shown));
}

#[test]
fn an_idle_child_notices_that_stdout_was_closed() {
    let world = world();
    let mut process = spawn(&world, &[]);
    let _stdin = process.stdin.take();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    assert_eq!(exit_code(&mut process), Some(0));
}

/// Returns once the process does nothing any more: its pipe and its buffer are full.
fn wait_for_stall(process: &std::process::Child) {
    let mut before = String::new();
    let mut same = 0;
    wait("the turn to stall", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        // The 12th and 13th field behind the name: time spent, by us and for us.
        let spent: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2).collect();
        let now = spent.join(" ");
        same = if now == before { same + 1 } else { 0 };
        before = now;
        same > 40
    });
}

/// A child with a turn that says more than anybody reads.
fn unread(world: &testkit::World, times: usize) -> (std::process::Child, std::process::ChildStdin) {
    let mut process = spawn(world, &[]);
    let mut stdin = process.stdin.take().unwrap();
    let prompt = json!({ "type": "prompt", "id": "p", "message": format!("!repeat {times} 0123456789") });
    stdin.write_all(format!("{prompt}\n").as_bytes()).unwrap();
    wait_for_stall(&process);
    (process, stdin)
}

#[test]
fn a_parent_that_does_not_read_stalls_the_turn_in_bounded_memory() {
    let world = world();
    let (mut process, stdin) = unread(&world, 60_000);
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let resident: u64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(resident < 40_000, "{resident} kB for a parent that does not read");
    // When it reads again, nothing is missing.
    let deltas = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map(|line| line.unwrap())
        .take_while(|line| !line.contains("\"response\""))
        .filter(|line| line.contains("text_delta"))
        .count();
    assert_eq!(deltas, 60_000);
    drop(stdin);
    assert_eq!(exit_code(&mut process), Some(0));
}

#[test]
fn a_stalled_child_still_heeds_a_signal_and_the_end_of_input() {
    let world = world();
    for by_signal in [true, false] {
        let (mut process, mut stdin) = unread(&world, 1_000_000);
        // More than it takes in while it cannot answer.
        for at in 0..500 {
            let line = json!({ "type": "get_state", "id": at.to_string() });
            stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        if by_signal {
            kill_process(pid(&process), Signal::TERM).unwrap();
        } else {
            drop(stdin);
        }
        assert_eq!(exit_code(&mut process), Some(0), "by signal: {by_signal}");
    }
}

#[test]
fn nothing_a_tool_prints_can_reach_the_protocol() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    // The agent's own descriptor 1, as any library in it would use it.
    let agent = "agent=$(cut -d' ' -f4 /proc/$PPID/stat)";
    let stray = "echo stray > /proc/$agent/fd/1; cat < /proc/$agent/fd/0; echo done";
    let frames = child.turn("p", &bash(&format!("{agent}; {stray}")));
    assert_eq!(crate::child::results(&frames), ["done\n"]);
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    assert_eq!(child.stderr(), "stray\n");
}

#[test]
fn an_idle_child_is_small() {
    let world = world();
    let child = Child::start(&world, &[]);
    let resident = status_of(&child, "VmRSS");
    assert!(resident < 40_000, "{resident} kB even in a debug build");
}
