//! `swb up`, `down`, `restart`, `status`: the real binary, a home of its own.

use std::io::{BufRead, BufReader};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{World, wait, wait_for};

fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a pid is not zero");
    kill_process(pid, signal).expect("the process is there");
}

fn is_alive(pid: i32) -> bool {
    // A zombie that nobody reaps yet is not alive.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn up_returns_when_the_daemon_answers_and_a_second_up_says_so() {
    let world = world();
    let up = world.swb(["up", "--json"]).ok().json();
    assert_eq!(up["status"], "started");
    assert_eq!(up["socket"], world.paths().control_socket().display().to_string());
    assert_eq!(world.pid(), i32::try_from(up["pid"].as_i64().unwrap()).unwrap());
    let again = world.swb(["up", "--json"]).ok().json();
    assert_eq!((&again["status"], &again["pid"]), (&json!("already_running"), &up["pid"]));
    assert!(world.swb(["up"]).ok().stdout.contains("already running"));
    let down = world.swb(["down", "--json"]).ok().json();
    assert_eq!((&down["status"], &down["pid"]), (&json!("stopped"), &up["pid"]));
    assert_eq!(world.swb(["down", "--json"]).ok().json()["status"], "not_running");
}

#[test]
fn status_tells_a_script_by_its_exit_code() {
    let world = world();
    let stopped = world.swb(["status", "--json"]);
    assert_eq!((stopped.code, stopped.json()), (Some(3), json!({"running": false})));
    world.swb(["up"]).ok();
    let running = world.swb(["status", "--json"]).ok().json();
    assert_eq!(running["running"], true);
    for field in ["pid", "version", "socket", "watch_pid", "started_at", "uptime_ms", "head", "counters"] {
        assert!(!running[field].is_null(), "{field} is missing: {running}");
    }
    let shown = world.swb(["status"]).ok().stdout;
    assert!(shown.contains("is running") && shown.contains("watch"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colour when nobody looks: {shown:?}");
}

#[test]
fn many_ups_at_once_make_one_daemon() {
    let world = world();
    let children: Vec<_> = (0..8).map(|_| world.spawn(["up", "--json"])).collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{outputs:?}");
    let started = outputs
        .iter()
        .filter(|output| String::from_utf8_lossy(&output.stdout).contains("\"started\""))
        .count();
    assert_eq!(started, 1, "{outputs:?}");
    world.pid();
}

#[test]
fn a_killed_daemon_is_back_and_its_watch_stays() {
    let world = world();
    world.swb(["up"]).ok();
    let (pid, watch) = (world.pid(), world.status("watch_pid"));
    signal(pid, Signal::KILL);
    let back = wait_for("a new daemon to answer", || {
        world.status("pid").as_i64().filter(|new| *new != i64::from(pid))
    });
    assert_ne!(back, i64::from(pid));
    assert_eq!(world.status("watch_pid"), watch);
}

#[test]
fn a_killed_watch_is_replaced_and_the_new_one_does_its_work() {
    let world = world();
    world.swb(["up"]).ok();
    let (pid, watch) = (world.pid(), i32::try_from(world.status("watch_pid").as_i64().unwrap()).unwrap());
    signal(watch, Signal::KILL);
    let replaced = || world.status("watch_pid").as_i64().filter(|new| *new != i64::from(watch));
    let new_watch = i32::try_from(wait_for("another watch", replaced)).unwrap();
    assert_eq!(world.pid(), pid, "the daemon did not notice more than that");
    signal(pid, Signal::KILL);
    wait("the adopted daemon to be started again", || {
        world.status("pid").as_i64().is_some_and(|new| new != i64::from(pid))
    });
    world.swb(["down"]).ok();
    wait("the watch to end with its daemon", || !is_alive(new_watch));
}

#[test]
fn a_relative_home_means_the_same_folder_for_every_process() {
    let world = world();
    let relative = |arguments: &[&str]| {
        let status =
            world.command(arguments).env("SWB_HOME", "home").output().expect("the binary runs").status;
        assert!(status.success(), "{arguments:?}");
    };
    relative(&["up"]);
    let (pid, watch) = (world.pid(), i32::try_from(world.status("watch_pid").as_i64().unwrap()).unwrap());
    // The daemon starts the next watch, and that one the next daemon, from folders of their own.
    signal(watch, Signal::KILL);
    wait("another watch", || world.status("watch_pid").as_i64().is_some_and(|new| new != i64::from(watch)));
    signal(pid, Signal::KILL);
    wait("another daemon in the same home", || {
        world.status("pid").as_i64().is_some_and(|new| new != i64::from(pid))
    });
    relative(&["down"]);
}

#[test]
fn down_ends_daemon_and_watch_and_leaves_nothing_misleading() {
    let world = world();
    world.swb(["up"]).ok();
    let (pid, watch) = (world.pid(), i32::try_from(world.status("watch_pid").as_i64().unwrap()).unwrap());
    world.swb(["down"]).ok();
    assert!(!is_alive(pid));
    wait("the watch to end", || !is_alive(watch));
    let paths = world.paths();
    assert!(!paths.control_socket().exists() && !paths.description().exists());
}

#[test]
fn a_signal_stops_the_daemon_in_order() {
    for stop in [Signal::TERM, Signal::INT] {
        let world = world();
        world.swb(["up"]).ok();
        let (pid, watch) = (world.pid(), i32::try_from(world.status("watch_pid").as_i64().unwrap()).unwrap());
        signal(pid, stop);
        wait("the daemon to end", || !is_alive(pid));
        wait("the watch to end: this was no crash", || !is_alive(watch));
        assert!(!world.paths().control_socket().exists());
    }
}

#[test]
fn restart_brings_a_new_daemon_and_a_new_watch() {
    let world = world();
    world.swb(["up"]).ok();
    let (pid, watch) = (world.pid(), world.status("watch_pid"));
    world.swb(["restart"]).ok();
    assert_ne!(world.pid(), pid);
    assert_ne!(world.status("watch_pid"), watch);
    world.swb(["down"]).ok();
    world.swb(["restart"]).ok();
    world.pid();
}

#[test]
fn a_daemon_that_cannot_start_says_why_after_three_tries() {
    let world = world();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("run"), "in the way").unwrap();
    let failed = world.swb(["up"]);
    assert_eq!(failed.code, Some(4), "{failed:?}");
    assert!(failed.stderr.contains("3 times") && failed.stderr.contains("/run"), "{failed:?}");
    assert!(failed.stderr.contains("hint:"), "{failed:?}");
}

#[test]
fn foreground_serves_repairs_and_stops_on_a_signal() {
    let world = world();
    let mut foreground = world.spawn(["up", "--foreground", "--json"]);
    let mut lines = BufReader::new(foreground.stdout.take().unwrap()).lines();
    let ready: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let pid = i32::try_from(ready["pid"].as_i64().unwrap()).unwrap();
    signal(pid, Signal::KILL);
    let again: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_ne!(ready["pid"], again["pid"], "a crash is repaired in the foreground too");
    signal(i32::try_from(foreground.id()).unwrap(), Signal::TERM);
    assert!(foreground.wait().unwrap().success());
    assert_eq!(world.swb(["status"]).code, Some(3));
}

#[test]
fn a_foreground_that_finds_a_daemon_stays_with_it() {
    let world = world();
    world.swb(["up"]).ok();
    let mut foreground = world.spawn(["up", "--foreground", "--json"]);
    let mut lines = BufReader::new(foreground.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("already_running"));
    assert!(foreground.try_wait().unwrap().is_none(), "it waits as long as the daemon lives");
    world.swb(["down"]).ok();
    assert!(foreground.wait().unwrap().success());
}
