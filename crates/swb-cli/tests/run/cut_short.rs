//! Ends that nobody planned: signals, readers that go away or do not read, an agent that dies.

use std::io::{BufRead, BufReader};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::wait;

use crate::{Running, bash, run, sessions, wait_for_agents_to_end, world};

#[test]
fn an_interrupt_aborts_the_turn() {
    let world = world();
    let mut running = Running::start(&world, &["!say begun\n!stall"]);
    running.until("begun");
    running.signal(Signal::INT);
    assert_eq!(running.exit_code(), Some(130));
    assert_eq!(sessions(&world)[0]["last_turn"], "cancelled");
    assert_eq!(sessions(&world)[0]["live"], false);
}

#[test]
fn an_interrupt_ends_a_tool_with_everything_it_started() {
    let world = world();
    let script = bash("sleep 1000 & echo $! > pid; wait");
    let mut running = Running::start(&world, &["--mode", "full", &script]);
    let pid = testkit::wait_for("the tool", || {
        std::fs::read_to_string(world.folder().join("pid")).ok().filter(|pid| pid.ends_with('\n'))
    });
    running.signal(Signal::INT);
    assert_eq!(running.exit_code(), Some(130));
    wait("the process to end", || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_signal_to_end_takes_the_agent_along() {
    let world = world();
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut running = Running::start(&world, &["!say begun\n!stall"]);
        running.until("begun");
        running.signal(signal);
        assert_eq!(running.exit_code(), Some(code));
        wait_for_agents_to_end(&world);
    }
}

#[test]
fn killed_without_warning_it_leaves_no_agent_behind() {
    let world = world();
    let mut running = Running::start(&world, &["!say begun\n!stall"]);
    running.until("begun");
    running.signal(Signal::KILL);
    assert_eq!(running.exit_code(), None);
    wait_for_agents_to_end(&world);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let world = world();
    let mut process = world.spawn(["run", "--no-daemon", "!say one\\n\n!stall"]);
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "one\n");
    let status = testkit::wait_for("swb run to end", || process.try_wait().unwrap());
    assert_eq!(status.code(), Some(0), "as with any program in front of `head`");
    wait_for_agents_to_end(&world);
}

#[test]
fn a_reader_that_does_not_read_costs_no_memory_and_keeps_nobody() {
    let world = world();
    for json in [false, true] {
        let mut arguments = vec!["run", "--no-daemon", "!repeat 100000000 0123456789"];
        if json {
            arguments.push("--json");
        }
        let mut process = world.spawn(&arguments);
        let stat = |field: &str| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
            let line = status.lines().find(|line| line.starts_with(field)).unwrap().to_owned();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let (mut before, mut same) = (0, 0);
        wait("it to stall", || {
            let now = stat("voluntary_ctxt_switches");
            same = if now == before { same + 1 } else { 0 };
            before = now;
            same > 40
        });
        assert!(stat("VmRSS") < 60_000, "{} kB", stat("VmRSS"));
        for _ in 0..2 {
            let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
            kill_process(pid, Signal::INT).unwrap();
            // The second must not melt into the first.
            wait("the signal to be heard", || {
                process.try_wait().unwrap().is_some() || stat_changed(&mut before, process.id())
            });
        }
        let status = testkit::wait_for("swb run to end", || process.try_wait().unwrap());
        assert_eq!(status.code(), Some(130));
        wait_for_agents_to_end(&world);
    }
}

fn stat_changed(before: &mut u64, pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
    let now = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(u64::MAX);
    std::mem::replace(before, now) != now
}

/// The agent that a run has started.
fn agent_of(running: &Running) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", running.process.id());
    let text = testkit::wait_for("the agent", || {
        std::fs::read_to_string(&children).ok().filter(|text| !text.trim().is_empty())
    });
    Pid::from_raw(text.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
}

#[test]
fn an_agent_that_dies_is_told_and_its_session_goes_on() {
    let world = world();
    let mut running = Running::start(&world, &["!say begun\n!stall"]);
    running.until("begun");
    kill_process(agent_of(&running), Signal::KILL).unwrap();
    assert_eq!(running.exit_code(), Some(8));
    let stderr = running.stderr();
    assert!(stderr.contains("went away") && stderr.contains("signal 9"), "{stderr}");
    assert_eq!(sessions(&world)[0]["last_turn"], "begun", "it was cut short");
    assert_eq!(run(&world, &["--continue", "!say on"]).ok().stdout, "on\n");
    let last: &Value = &sessions(&world)[0]["turns"];
    assert_eq!(*last, 2);
}
