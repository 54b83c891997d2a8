//! A daemon that is killed again and again while people answer: nothing is lost, nothing is doubled, what was acknowledged
//! stands, and every question has one beginning and one end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use swb_daemon::Description;
use swb_rules::approval::Patience;
use testkit::{PATIENCE, World, wait, wait_for};

use crate::questions::{ask, command, question, world};

const QUESTIONS: usize = 100;
const KILLS: usize = 6;

/// What somebody was told: the outcome, and whether it was their own answer.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    status: String,
    won: bool,
}

/// One call over a connection of its own; nothing if the daemon went away before it answered.
fn call(world: &World, who: &str, method: &str, mut params: Value) -> Option<Value> {
    let mut stream = UnixStream::connect(world.paths().control_socket()).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    params["_meta"] = json!({ "actor": { "kind": "user", "id": who } });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    serde_json::from_str(&answer).ok()
}

/// Answers until it is told the outcome, across as many daemons as it takes.
fn answer(world: &World, who: &str, id: &str, decision: &str) -> Told {
    let params = json!({ "approval_id": id, "decision": decision, "reason": format!("{who} says so") });
    wait_for("an answer to be acknowledged", || {
        let told = call(world, who, "approval.request.resolve", params.clone())?;
        if let Some(status) = told["result"]["status"].as_str() {
            return Some(Told { status: status.to_owned(), won: true });
        }
        let data = &told["error"]["data"];
        // An answer that was kept but not acknowledged is told as somebody's: it may be our own.
        (data["reason"] == "ALREADY_RESOLVED").then(|| Told {
            status: data["outcome"]["status"].as_str().unwrap().to_owned(),
            won: data["outcome"]["resolved_by"] == who,
        })
    })
}

/// A number below `limit` that is another one each time.
fn random(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

fn kill_daemon(world: &World) -> u32 {
    let pid = wait_for("a daemon to kill", || Description::read(&world.paths().description())).pid;
    // It may be the description of the one before.
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
    pid
}

#[test]
fn a_hundred_questions_outlive_a_daemon_that_is_killed_while_they_are_answered() {
    let mut world = world();
    world.start();
    for n in 0..QUESTIONS {
        ask(&world, question(&format!("apr_{n:03}"), command(&format!("make {n}"))), Patience::Detached);
    }
    world.crash();
    world.swb(["up"]).ok();
    let pending = world.swb(["--json", "approvals"]).ok().json_lines();
    assert_eq!(pending.len(), QUESTIONS);

    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    println!("seed {seed}");
    let mut seed = u64::try_from(seed & u128::from(u64::MAX)).unwrap();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let told: Mutex<BTreeMap<String, Vec<(String, Told)>>> = Mutex::default();
    std::thread::scope(|scope| {
        // Two people want each question to end differently.
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= QUESTIONS {
                        return;
                    }
                    let id = format!("apr_{n:03}");
                    let (world, id) = (&world, id.as_str());
                    let (ann, bob) = std::thread::scope(|pair| {
                        let ann = pair.spawn(|| answer(world, "ann", id, "approve"));
                        let bob = pair.spawn(|| answer(world, "bob", id, "deny"));
                        (ann.join().unwrap(), bob.join().unwrap())
                    });
                    let both = vec![("approved".to_owned(), ann), ("denied".to_owned(), bob)];
                    told.lock().unwrap().insert(id.to_owned(), both);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for kill in 1..=KILLS {
            // Each in another stretch of the work, so that all of it is walked.
            let from = (kill - 1) * QUESTIONS / KILLS;
            let at = from + usize::try_from(random(&mut seed, 10)).unwrap();
            wait("so many to be answered", || done.load(Ordering::Relaxed) >= at);
            let moment = Duration::from_micros(random(&mut seed, 4_000));
            let begun = std::time::Instant::now();
            wait("a moment to pass", || begun.elapsed() >= moment);
            let killed = kill_daemon(&world);
            wait("another daemon", || {
                Description::read(&world.paths().description()).is_some_and(|now| now.pid != killed)
            });
        }
    });

    let told = told.into_inner().unwrap();
    assert_eq!(told.len(), QUESTIONS);
    let listed = world.swb(["--json", "approvals", "--all"]).ok().json_lines();
    assert_eq!(listed.len(), QUESTIONS, "none is lost, none is doubled");
    let mut won = [0, 0];
    for approval in &listed {
        let id = approval["approval_id"].as_str().unwrap();
        let stands = approval["status"].as_str().unwrap();
        for (place, (wanted, told)) in told[id].iter().enumerate() {
            assert_eq!(told.status, stands, "{id}: what was acknowledged stands");
            assert_eq!(told.won, told.status == *wanted, "{id}: {told:?}");
            won[place] += usize::from(told.won);
        }
    }
    assert_eq!(won[0] + won[1], QUESTIONS, "one answer counts: {won:?}");
    assert!(world.swb(["approvals"]).ok().stdout.is_empty(), "nothing is left open");

    the_record_has_one_beginning_and_one_end_of_each(&world, &told);
    world.swb(["down"]).ok();
    every_question_has_one_beginning_and_one_end(&world);
    // Whoever asks again hears what came out, and the question is not put again.
    world.start();
    for n in 0..QUESTIONS {
        let id = format!("apr_{n:03}");
        let (approvals, request) = (world.approvals(), question(&id, command(&format!("make {n}"))));
        let again = world.run(async move {
            approvals
                .ask(request, Patience::Detached)
                .await?
                .outcome()
                .await
                .map_err(|_| swb_daemon::approvals::AskError::Stopping)
        });
        let stands = told[&id][0].1.status.as_str();
        assert_eq!(serde_json::to_value(again.unwrap().status).unwrap(), stands);
    }
    world.stop();
    every_question_has_one_beginning_and_one_end(&world);
}

/// By the events that whoever listens gets, those of daemons that are dead included.
fn the_record_has_one_beginning_and_one_end_of_each(
    world: &World,
    told: &BTreeMap<String, Vec<(String, Told)>>,
) {
    let events = world.swb(["--json", "events", "--after", "0", "--topic", "approval.*"]).ok().json_lines();
    let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in &events {
        let (topic, payload) = (event["topic"].as_str().unwrap(), &event["payload"]);
        // A gap is told of what was not recorded: it is of no approval.
        let Some(id) = payload["approval_id"].as_str() else { continue };
        if topic == "approval.resolved" {
            assert_eq!(payload["status"], told[id][0].1.status, "{id}");
        }
        said.entry(id).or_default().push(topic);
    }
    assert_eq!(said.len(), QUESTIONS);
    for (id, topics) in said {
        assert_eq!(topics, ["approval.requested", "approval.resolved"], "{id}");
    }
    let verified = world.swb(["audit", "verify"]).ok();
    assert!(verified.stdout.contains("consistent"), "{verified:?}");
}

/// By the file: the desk forgets nothing of it before a thousand lines.
fn every_question_has_one_beginning_and_one_end(world: &World) {
    let file = std::fs::read_to_string(world.paths().approvals_file()).unwrap();
    let mut counted: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for line in file.lines() {
        let line: Value = serde_json::from_str(line).expect("no line is torn in the middle");
        for event in line["events"].as_array().expect("no snapshot yet") {
            let id = event["id"].as_str().or(event["approval"]["request"]["id"].as_str());
            let place = match (event["event"].as_str().unwrap(), event["known"].as_str()) {
                ("requested", _) => 0,
                ("resolved", _) => 1,
                ("announced", Some("question")) => 2,
                ("announced", Some("outcome")) => 3,
                _ => continue,
            };
            counted.entry(id.unwrap().to_owned()).or_default()[place] += 1;
        }
    }
    assert_eq!(counted.len(), QUESTIONS);
    for (id, [requested, resolved, put, ended]) in counted {
        assert_eq!((requested, resolved), (1, 1), "{id} was put once and ended once");
        assert_eq!((put, ended), (1, 1), "{id} was said once and its end was said once");
    }
}
