//! A day at the house: many sessions, agents below agents, approvals from two doors at once, cancels and steers, and
//! kill -9 of whatever comes along. Afterwards every run has its one end, every approval one outcome, and the record is
//! whole.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use swb_journal::audit::{AuditReader, verify};
use testkit::wait;

use crate::house::{House, is_gone, kill_if_there};

/// A sequence that looks random and is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const SCRIPTS: [&str; 5] = [
    "!repeat 50 word \n!pause 80\n!tool read {\"path\":\"notes.txt\"}\n!then\n!say read",
    "!ask rm gone.txt\n!then\n!say asked",
    "!subagent !tool ls {} // !pause 50 // !say below\n!then\n!say above",
    "!think hm\n!tool bash {\"command\":\"sleep 0.2; echo hi\"}\n!then\n!say done",
    "!say waits\n!pause 400\n!say enough",
];

#[test]
fn whatever_is_killed_every_run_has_one_end_and_nothing_is_left() {
    let house = House::with_settings("[runs]\nslots = 4\n");
    let over = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| answer_over_the_socket(&house, &over));
        scope.spawn(|| answer_at_the_command_line(&house, &over));
        let taken = work(&house);
        wait("every run is over", || {
            let runs = house.ask("agent.list", &json!({}));
            runs["result"]["runs"].as_array().is_some_and(Vec::is_empty)
        });
        over.store(true, Ordering::Relaxed);
        taken
    });
    let hosts: Vec<i32> = std::fs::read_dir(house.world.paths().hosts())
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|session| house.host_now(&session))
        .map(|status| i32::try_from(status.host_pid).unwrap())
        .collect();
    house.world.swb(["down", "--yes"]).ok();
    assert!(hosts.iter().all(|host| is_gone(*host)), "hosts are left");
    check_record(&house, &taken);
}

/// Starts the runs of the day and disturbs them; the runs that were taken.
fn work(house: &House) -> Vec<String> {
    let mut dice = Dice(0x5eed);
    let mut taken = Vec::new();
    for round in 0..15 {
        let script = SCRIPTS[round % SCRIPTS.len()];
        let answer = house.ask("agent.run", &json!({ "project_id": house.project, "prompt": script }));
        let Some(run) = answer["result"]["run_id"].as_str() else { continue };
        let session = answer["result"]["session_id"].as_str().unwrap().to_owned();
        taken.push(run.to_owned());
        match dice.roll(6) {
            0 => house.kill_daemon(),
            1 => {
                let _ = house.ask("agent.cancel", &json!({ "run_id": run }));
            }
            2 => {
                let _ = house.ask("agent.follow_up", &json!({ "session_id": session, "text": "!say more" }));
            }
            3 => kill_one(house, &session, true),
            4 => kill_one(house, &session, false),
            _ => {}
        }
    }
    taken
}

/// Kills the agent of a session, or its host, if there is one just now.
fn kill_one(house: &House, session: &str, agent: bool) {
    if let Some(status) = house.host_now(session) {
        let pid = if agent { status.child_pid } else { status.host_pid };
        if status.exit.is_none() {
            kill_if_there(i32::try_from(pid).unwrap());
        }
    }
}

fn answer_over_the_socket(house: &House, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let open = house.ask("approval.list", &json!({}));
        for approval in open["result"]["approvals"].as_array().into_iter().flatten() {
            let id = &approval["approval_id"];
            house.ask(
                "approval.request.resolve",
                &json!({ "approval_id": id, "decision": "approve", "reason": "yes" }),
            );
        }
    }
}

fn answer_at_the_command_line(house: &House, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        for approval in house.world.swb(["--json", "approvals"]).json_lines() {
            let Some(id) = approval["approval_id"].as_str() else { continue };
            // The other door may have been quicker.
            house.world.swb(["approvals", "deny", id, "--reason", "no"]);
        }
    }
}

fn check_record(house: &House, taken: &[String]) {
    let folder = house.world.paths().audit();
    let report = verify(&folder, &[]).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let (mut started, mut ended) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
    let (mut asked, mut answered) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
    for record in AuditReader::new(&folder).records_after(0).unwrap() {
        let entry = record.unwrap().entry;
        let payload = entry.payload.map(|payload| payload.value()).unwrap_or_default();
        let id = |key: &str| payload[key].as_str().map(str::to_owned).unwrap_or_default();
        let into = match entry.topic.as_deref() {
            Some("agent.run.started") => started.entry(id("run_id")),
            Some("agent.run.completed" | "agent.run.failed" | "agent.run.dropped") => {
                ended.entry(id("run_id"))
            }
            Some("approval.requested") => asked.entry(id("approval_id")),
            Some("approval.resolved") => answered.entry(id("approval_id")),
            _ => continue,
        };
        *into.or_default() += 1;
    }
    assert!(taken.len() >= 10, "{} runs were taken", taken.len());
    for run in taken {
        assert_eq!(ended.get(run), Some(&1), "{run} has one end");
        assert!(started.get(run).is_none_or(|times| *times == 1), "{run} began once");
    }
    assert_eq!(asked.keys().collect::<Vec<_>>(), answered.keys().collect::<Vec<_>>());
    assert!(asked.values().chain(answered.values()).all(|times| *times == 1), "{asked:?} {answered:?}");
}
