//! kill -9 of daemon, agent and host in the middle of a run.

use serde_json::json;
use swb_journal::registry::Registry;
use swb_proto::session::{Session, SessionState};
use testkit::wait;

use crate::house::{House, TOOL_AT_WORK, is_gone, kill};

/// A story that is long enough to be interrupted: words with pauses between them, and calls.
fn long_story() -> (String, String) {
    let mut prompt = String::new();
    let mut text = String::new();
    for part in 0..6 {
        prompt += &format!(
            "!repeat 40 w{part} \n!pause 60\n!repeat 40 v{part} \n!tool read {{\"path\":\"notes.txt\"}}\n!then\n"
        );
        text += &format!("w{part} ").repeat(40);
        text += &format!("v{part} ").repeat(40);
    }
    (prompt + "!say the end", text + "the end")
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn a_killed_daemon_ends_no_run_and_no_piece_is_lost_or_told_twice() {
    let house = House::new();
    let (prompt, text) = long_story();
    let (run, _, after) = house.run(&prompt);
    let kills = std::cell::Cell::new(0);
    let story = house.follow_and(&run, after, |event| {
        let step = event["payload"]["step"].as_u64().unwrap_or(0);
        if step >= 60 * (kills.get() + 1) && kills.get() < 4 {
            kills.set(kills.get() + 1);
            house.kill_daemon();
        }
    });
    assert_eq!(kills.get(), 4);
    story.is_whole();
    assert_eq!(squeezed(&story.text()), squeezed(&text));
    assert_eq!(story.topics(), ["agent.run.started", "agent.run.progress", "agent.run.completed"]);
    let again = house.follow(&run, after);
    assert_eq!(again.events.len(), story.events.len(), "who comes late hears the same");
}

#[test]
fn an_agent_that_is_killed_is_started_again_once() {
    let house = House::new();
    let (run, session, after) = house.run(&format!("!say before\n{TOOL_AT_WORK}\n!then\n!say after"));
    let killed = std::cell::Cell::new(false);
    let story = house.follow_and(&run, after, |event| {
        let is_called = event["payload"]["tool"]["status"] == "called";
        if is_called && !killed.replace(true) {
            kill(house.host(&session).1);
            house.let_go();
        }
    });
    story.is_whole();
    let notice = story.of_kind("notice").next().expect("it is told");
    assert_eq!(notice["name"], "restarted");
    assert_eq!(story.end()["topic"], "agent.run.completed", "{}", story.end());
}

#[test]
fn a_killed_host_takes_its_agent_along_and_the_run_has_failed() {
    let house = House::new();
    let (run, session, after) =
        house.run("!say begun\n!tool bash {\"command\":\"setsid sleep 1000 & echo $!; sleep 1000\"}");
    let processes = std::cell::Cell::new((0, 0));
    let story = house.follow_and(&run, after, |event| {
        if event["payload"]["tool"]["status"] == "output" && processes.get().0 == 0 {
            processes.set(house.host(&session));
            kill(processes.get().0);
        }
    });
    assert_eq!(story.end()["topic"], "agent.run.failed");
    assert_eq!(story.end()["payload"]["error"]["details"]["reason"], "AGENT_CRASHED");
    let (host, child) = processes.get();
    wait("nothing is left", || is_gone(host) && is_gone(child));
    let taken = house.call("agent.run", &json!({ "session_id": session, "prompt": "!say anew" }));
    assert_eq!(house.follow(taken["run_id"].as_str().unwrap(), after).text(), "anew");
}

#[test]
fn a_host_that_died_with_the_daemon_is_a_failed_run() {
    let house = House::new();
    let (run, session, after) = house.run("!say begun\n!stall");
    let killed = std::cell::Cell::new(false);
    let story = house.follow_and(&run, after, |event| {
        if event["topic"] == "agent.run.progress" && !killed.replace(true) {
            let (host, _) = house.host(&session);
            kill(house.world.pid());
            kill(host);
        }
    });
    assert_eq!(story.end()["topic"], "agent.run.failed");
    assert_eq!(story.end()["payload"]["error"]["details"]["reason"], "AGENT_CRASHED");
    assert_eq!(story.topics().iter().filter(|topic| **topic == "agent.run.started").count(), 1);
}

#[test]
fn down_ends_agents_and_restart_does_not() {
    let house = House::new();
    let (run, session, after) = house.run("!say a\n!until go\n!say b");
    let (host, _) = house.host(&session);
    let refused = house.world.swb(["down"]);
    assert!(refused.stderr.contains("--keep"), "{}", refused.stderr);
    house.world.swb(["restart"]).ok();
    assert!(!is_gone(host));
    house.let_go();
    assert_eq!(squeezed(&house.follow(&run, after).text()), "ab");
    let (_, session, _) = house.run("!stall");
    let (host, child) = house.host(&session);
    house.world.swb(["down", "--yes"]).ok();
    assert!(is_gone(host) && is_gone(child));
}

#[test]
fn an_agent_whose_session_has_ended_meanwhile_is_ended() {
    let house = House::new();
    let (run, session, after) = house.run("!say begun\n!stall");
    let (host, child) = house.host(&session);
    wait("it works", || house.call("agent.get", &json!({ "run_id": run }))["run"]["state"] == "running");
    house.world.swb(["down", "--keep"]).ok();
    assert!(!is_gone(host));
    let file = house.world.paths().state.join("control-sessions.jsonl");
    let (mut sessions, _) = Registry::<Session>::open(&file, |session| session.session_id.as_str()).unwrap();
    let ended = Session { state: SessionState::Terminated, ..sessions.get(&session).unwrap().clone() };
    sessions.put(ended).unwrap();
    drop(sessions);
    house.world.swb(["up"]).ok();
    assert!(is_gone(host) && is_gone(child), "the daemon is ready when it is gone");
    assert_eq!(house.follow(&run, after).end()["topic"], "agent.run.failed");
}
