//! `swb agents`, `logs`, `send`, `cancel` and `why`: a run that somebody else has begun.

use serde_json::Value;
use testkit::{wait, wait_for};

use crate::house::House;
use crate::terminal::Terminal;

fn end_of(id: &str) -> &str {
    &id[id.len() - 6..]
}

#[test]
fn what_is_at_work_is_listed_and_says_what_it_waits_for() {
    let house = House::new();
    assert!(house.world.swb(["agents"]).ok().stderr.contains("nothing is at work"));
    let (_, session, _) = house.run("!ask rm -f notes.txt\n!then\n!say done");
    let why = wait_for("the question", || {
        let why = house.world.swb(["why"]).ok().stdout;
        why.contains("waits for somebody to agree").then_some(why)
    });
    assert!(why.contains("swb approvals approve") && why.contains("tool bash"), "{why}");
    let view: Value = house.world.swb(["why", end_of(&session), "--json"]).ok().json();
    assert_eq!(view["run"]["session_id"], session.as_str());
    let listed = house.world.swb(["agents"]).ok().stdout;
    assert!(listed.contains(end_of(&session)) && listed.contains("running"), "{listed}");
    let second = house.call("agent.run", &serde_json::json!({ "session_id": session, "prompt": "!say b" }));
    assert_eq!(second["status"], "queued");
    house.world.swb(["cancel", end_of(&session), "--reason", "enough"]).ok();
    wait("both to end", || house.world.swb(["agents", "--json"]).ok().stdout.is_empty());
    let all = house.world.swb(["agents", "--all"]).ok().stdout;
    assert!(all.contains("cancelled") && all.contains("done"), "{all}");
    assert!(house.world.swb(["cancel", &session]).ok().stdout.contains("was over already"));
    let gone = house.world.swb(["why"]);
    assert!(gone.code == Some(1) && gone.stderr.contains("swb agents --all"), "{}", gone.stderr);
}

#[test]
fn the_story_of_a_session_is_told_after_its_end() {
    let house = House::new();
    let (run, session, after) = house
        .run("!think let me see\n!tool read {\"path\":\"notes.txt\"}\n!then\n!say There are **two** lines.");
    house.follow(&run, after);
    let told = house.world.swb(["send", end_of(&session), "!say and more"]).ok().stdout;
    assert!(told.contains("begins anew"), "{told}");
    wait("it to end", || house.world.swb(["agents", "--json"]).ok().stdout.is_empty());
    let story = house.world.swb(["logs", end_of(&session)]).ok().stdout;
    for part in ["❯ !think let me see", "let me see", "● read", "There are two lines.", "✓ done", "and more"]
    {
        assert!(story.contains(part), "{part:?} in {story}");
    }
    assert!(!story.contains('\u{1b}'), "{story:?}");
    let events = house.world.swb(["logs", &session, "--json"]).ok().json_lines();
    let topics: Vec<_> = events.iter().map(|event| event["topic"].as_str().unwrap()).collect();
    assert_eq!((topics[0], *topics.last().unwrap()), ("agent.run.started", "agent.run.completed"));
    let steer = house.world.swb(["send", "--steer", &session, "now"]);
    assert!(steer.code == Some(5) && steer.stderr.contains("without --steer"), "{}", steer.stderr);
}

#[test]
fn a_run_is_watched_from_another_terminal_and_answered_there() {
    let house = House::new();
    let (_, session, _) =
        house.run("!say begun, and more\n!tool ls {}\n!then\n!ask rm -f notes.txt\n!then\n!say over");
    wait("the question", || house.world.swb(["why"]).ok().stdout.contains("somebody to agree"));
    let mut terminal = Terminal::open(&house.world, &house.root, &["logs", "--follow"]);
    terminal.until("May bash do this?");
    assert!(terminal.text().contains("begun, and more"), "{}", terminal.text());
    terminal.press("y");
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("over");
    assert!(terminal.text().contains("● bash"), "what became of the call: {}", terminal.text());
    assert!(!house.root.join("notes.txt").exists());

    let (_, other, _) = house.run("!say begun, and more\n!stall");
    assert_ne!(other, session);
    let mut terminal = Terminal::open(&house.world, &house.root, &["logs", end_of(&other), "-f"]);
    terminal.until("begun");
    terminal.press("\u{3}");
    assert_eq!(terminal.exit_code(), Some(130));
    assert!(house.world.swb(["agents"]).ok().stdout.contains(end_of(&other)), "whoever looks ends nothing");
}
