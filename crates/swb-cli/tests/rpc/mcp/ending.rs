//! The end of the agent is the end of its servers, and of what those have started.

use rustix::process::Signal;
use serde_json::json;
use testkit::wait;

use super::hostile::config;
use super::{agent, configured, result};
use crate::child::{Child, is_alive};

/// An agent with a server that has a child of its own; the numbers of both.
fn family() -> (testkit::World, Child, [String; 2]) {
    let world = configured("");
    let started = world.folder().join("started");
    let lines = format!("{}STARTED = {}\n", config("bad", "", ""), json!(started.to_str().unwrap()));
    std::fs::write(world.paths().config_file(), lines).unwrap();
    let mut child = agent(&world);
    let grandchild = result(&mut child, "bad__fork", json!({}));
    let server = std::fs::read_to_string(started).unwrap();
    assert!(is_alive(&server) && is_alive(&grandchild));
    (world, child, [server, grandchild])
}

fn all_gone(processes: &[String]) {
    wait("all of them to end", || !processes.iter().any(|process| is_alive(process)));
}

#[test]
fn every_way_to_end_the_agent_ends_them_too() {
    let ways: [fn(&mut Child); 3] = [
        |child| child.send(json!({ "type": "shutdown" })),
        Child::close_stdin,
        |child| child.signal(Signal::TERM),
    ];
    for end in ways {
        let (_world, mut child, processes) = family();
        end(&mut child);
        assert_eq!(child.exit_code(), Some(0));
        all_gone(&processes);
    }
}

#[test]
fn a_killed_agent_leaves_no_server_behind() {
    let (_world, mut child, [server, _]) = family();
    child.signal(Signal::KILL);
    assert_eq!(child.exit_code(), None);
    all_gone(&[server]);
}

#[test]
fn bash_does_not_take_a_servers_end_away() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    for _ in 0..3 {
        result(&mut child, "bash", json!({ "command": "true" }));
        let (error, _) = super::failure(&mut child, "bad__die", json!({}));
        assert!(error.contains("exit code 3") || error.contains("at the earliest"), "{error}");
    }
}
