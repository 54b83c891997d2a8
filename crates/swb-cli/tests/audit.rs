//! `swb audit`: reading, searching, verifying and exporting the record, on the files alone.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use swb_journal::audit::{AuditLog, AuditOptions, Entry, Moment, RecordedActor, Status};
use testkit::World;

fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

fn open(world: &World) -> AuditLog {
    let options = AuditOptions { segment_bytes: 4000, ..AuditOptions::default() };
    AuditLog::open(&world.paths().audit(), options, Moment::now()).unwrap().0
}

fn command(log: &AuditLog, session: u64, method: &str, text: &str, status: Status) {
    let start = Entry {
        actor: Some(RecordedActor { kind: "agent".to_owned(), id: format!("agent_{session}") }),
        session_id: Some(format!("sess_{session}")),
        correlation_id: Some(format!("cor_{session}")),
        parent_correlation_id: (session > 1).then(|| format!("cor_{}", session - 1)),
        args: Some(json!({ "text": text }).into()),
        ..Entry::start(Moment::now(), method)
    };
    let of = log.append_now(&start).unwrap().number;
    log.append_now(&Entry::end(Moment::now(), of, status, &start)).unwrap();
}

/// A world in which three sessions have done something.
fn filled() -> World {
    let world = world();
    let log = open(&world);
    for round in 0..5 {
        for session in 1..=3 {
            command(&log, session, "session.create", &format!("round {round} of the tests"), Status::Ok);
        }
    }
    command(&log, 2, "terminal.input", "rm -rf /", Status::Denied);
    world
}

fn numbers(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|line| line["n"].as_u64().unwrap()).collect()
}

#[test]
fn without_a_record_each_command_says_so() {
    let world = world();
    assert!(world.swb(["audit", "tail"]).ok().stderr.contains("nothing has been recorded yet"));
    assert_eq!(world.swb(["audit", "search", "x"]).ok().stdout, "");
    assert_eq!(world.swb(["audit", "verify", "--json"]).ok().json()["verdict"], "consistent");
    assert_eq!(world.swb(["audit", "head"]).code, Some(1));
    assert_eq!(world.swb(["audit", "rebuild", "--json"]).ok().json()["records"], 0);
    let none = world.swb(["audit", "export", "--session", "sess_1"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("holds no record of session sess_1"), "{}", none.stderr);
    let nowhere = world.swb(["audit", "tail", "--dir", "/nowhere"]);
    assert!(nowhere.stderr.contains("/nowhere is no folder"), "{}", nowhere.stderr);
}

#[test]
fn tail_shows_the_last_records() {
    let world = filled();
    let last = world.swb(["audit", "tail", "-n", "2", "--json"]).ok().json_lines();
    assert_eq!(numbers(&last), [31, 32]);
    assert_eq!((&last[1]["status"], &last[1]["of"]), (&json!("denied"), &json!(31)));
    assert_eq!(numbers(&world.swb(["audit", "tail", "--after", "30", "--json"]).ok().json_lines()), [31, 32]);
    let text = world.swb(["audit", "tail", "-n", "1"]).ok().stdout;
    assert!(text.contains("agent_2") && text.contains("terminal.input") && text.contains("of 31"), "{text}");
}

#[test]
fn tail_follows_and_ends_with_its_reader() {
    let world = filled();
    let mut child =
        world.command(["audit", "tail", "-f", "-n", "1", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| {
        let value: Value = serde_json::from_str(&line.unwrap()).unwrap();
        value["n"].as_u64().unwrap()
    });
    assert_eq!(lines.next(), Some(32));
    let log = open(&world);
    command(&log, 9, "agent.run", "later", Status::Ok);
    assert_eq!((lines.next(), lines.next()), (Some(33), Some(34)));
    drop(lines);
    assert!(child.wait().unwrap().success());
}

#[test]
fn search_finds_by_words_and_filters() {
    let world = filled();
    let search = |arguments: &[&str]| {
        let found = world.swb(["audit", "search", "--json"].iter().chain(arguments)).ok();
        numbers(&found.json_lines())
    };
    assert_eq!(search(&["rm", "RF"]), [31]);
    assert_eq!(search(&["--status", "denied"]), [32]);
    assert_eq!(search(&["--method", "terminal.*"]), [31, 32]);
    assert_eq!(search(&["--actor", "agent:agent_3", "--kind", "start", "round", "4"]), [29]);
    assert_eq!(search(&["--session", "sess_2", "-n", "2"]), [31, 32]);
    assert_eq!(search(&["--session", "sess_2", "-n", "2", "--before", "31"]), [27, 28]);
    assert_eq!(search(&["--since", "1h", "--until", "2000-01-01T00:00:00Z"]), [] as [u64; 0]);
    assert_eq!(
        search(&["--since", "1d", "test*", "--correlation", "cor_1", "--kind", "end"]),
        [] as [u64; 0]
    );
    assert_eq!(search(&["--chain", "cor_2"]), (1..=32).collect::<Vec<_>>());
    assert_eq!(search(&["--chain", "cor_nobody"]), [] as [u64; 0]);
    let more = world.swb(["audit", "search", "tests", "-n", "3"]).ok();
    assert!(more.stderr.contains("--before 25"), "{}", more.stderr);
    for wrong in
        [["--status", "fine"], ["--since", "yesterday"], ["-n", "0"], ["--kind", "other"], ["--since", ""]]
    {
        assert_eq!(world.swb(["audit", "search"].iter().chain(&wrong)).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_ruined_index_is_built_again_and_says_so() {
    let world = filled();
    assert_eq!(world.swb(["audit", "search", "rm", "--json"]).ok().json_lines().len(), 1);
    let ledger = world.paths().ledger();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", ledger.display()));
    }
    std::fs::write(&ledger, "not an index").unwrap();
    assert_eq!(world.swb(["audit", "search", "rm", "--json"]).ok().json_lines().len(), 1);
    assert_eq!(world.swb(["audit", "rebuild", "--json"]).ok().json()["records"], 32);
    assert!(world.swb(["audit", "rebuild"]).ok().stdout.contains("32 records"));
}

#[test]
fn verify_believes_the_record_until_it_is_changed() {
    let world = filled();
    let plain = world.swb(["audit", "verify"]).ok();
    assert!(plain.stdout.contains("consistent, not anchored: 32 records"), "{}", plain.stdout);
    let head = world.swb(["audit", "head"]).ok().stdout;
    let heads = world.home().join("heads.jsonl");
    std::fs::write(&heads, &head).unwrap();
    let heads = heads.to_str().unwrap();
    for anchor in [heads, head.trim()] {
        let anchored = world.swb(["audit", "verify", "--anchor", anchor]).ok();
        assert!(anchored.stdout.contains("consistent and anchored"), "{}", anchored.stdout);
    }
    // The last segment goes: without the anchor nobody would know.
    let mut segments: Vec<_> = std::fs::read_dir(world.paths().audit())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    segments.sort();
    std::fs::remove_file(segments.last().unwrap()).unwrap();
    assert_eq!(world.swb(["audit", "verify"]).code, Some(0));
    let cut = world.swb(["audit", "verify", "--anchor", heads]);
    assert_eq!(cut.code, Some(1));
    assert!(cut.stdout.contains("but record 32 was anchored"), "{}", cut.stdout);
    // A word is changed.
    let text = std::fs::read_to_string(&segments[0]).unwrap();
    std::fs::write(&segments[0], text.replacen("round 0", "round 7", 1)).unwrap();
    let changed = world.swb(["audit", "verify", "--json"]);
    assert_eq!((changed.code, changed.json()["findings"][0]["finding"].clone()), (Some(1), json!("changed")));
    let tail = world.swb(["audit", "tail", "-n", "1000", "--json"]).ok();
    assert!(tail.stderr.contains("is damaged at byte"), "{}", tail.stderr);
    assert!(!tail.stdout.contains("round 7"));
    for wrong in ["{}", "/nowhere/heads"] {
        assert_ne!(world.swb(["audit", "verify", "--anchor", wrong]).code, Some(0));
    }
}

#[test]
fn a_bundle_is_written_checked_and_keeps_secrets() {
    let world = filled();
    let log = open(&world);
    command(
        &log,
        1,
        "terminal.input",
        "curl -H 'Authorization: Bearer abcdefghijklmnop1234567890'",
        Status::Ok,
    );
    drop(log);
    let out = world.home().join("bundle.json");
    let path = out.to_str().unwrap();
    let manifest = world.swb(["audit", "export", "--session", "sess_1", "--out", path, "--json"]).ok().json();
    assert_eq!((&manifest["count"], &manifest["altered"]), (&json!(12), &json!(1)));
    assert!(!manifest["redaction_rules"].as_array().unwrap().is_empty());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(!text.contains("abcdefghijklmnop"), "a record that was not redacted when it was made");
    assert!(!text.contains("sess_2"));
    assert_eq!(
        world.swb(["audit", "export", "--session", "sess_1"]).ok().stdout.lines().next().map(str::len),
        text.lines().next().map(str::len)
    );
    let checked = world.swb(["audit", "verify", "--bundle", path]).ok();
    assert!(checked.stdout.contains("12 records of sess_1"), "{}", checked.stdout);
    let head = world.swb(["audit", "head"]).ok().stdout;
    let anchored = world.swb(["audit", "verify", "--bundle", path, "--anchor", head.trim()]).ok();
    assert!(anchored.stdout.contains("consistent and anchored"));
    std::fs::write(&out, text.replacen("round 1", "round 9", 1)).unwrap();
    let changed = world.swb(["audit", "verify", "--bundle", path]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.stderr.contains("is not as it was written"), "{}", changed.stderr);
    assert!(!out.with_extension("json.part").exists());
}

#[test]
fn a_copy_is_read_where_it_lies() {
    let world = filled();
    let copy = world.home().join("elsewhere/copy");
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(world.paths().audit()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    std::fs::remove_dir_all(world.paths().audit()).unwrap();
    let copy = copy.to_str().unwrap();
    assert_eq!(world.swb(["audit", "verify", "--dir", copy, "--json"]).ok().json()["records"], 32);
    assert_eq!(world.swb(["audit", "search", "--dir", copy, "rm", "--json"]).ok().json_lines().len(), 1);
    assert!(!world.paths().ledger().exists());
}

#[test]
fn holds_and_purges_go_through_the_daemon() {
    let world = world();
    assert_eq!(world.swb(["audit", "hold", "--everything", "--reason", "x"]).code, Some(3), "nobody writes");
    world.swb(["up"]).ok();
    let held =
        world.swb(["audit", "hold", "--session", "sess_1", "--reason", "case 7", "--json"]).ok().json();
    let id = held["hold_id"].as_str().unwrap();
    let holds = world.swb(["audit", "holds", "--json"]).ok().json();
    assert_eq!(holds["holds"][0]["id"], held["hold_id"]);
    assert_eq!(holds["holds"][0]["session_id"], "sess_1");
    assert!(world.swb(["audit", "holds"]).ok().stdout.contains("case 7"));
    let nobody = world.swb(["audit", "release", "hold_x", "--reason", "x"]);
    assert!(nobody.code == Some(5) && nobody.stderr.contains("there is no such hold"), "{nobody:?}");
    world.swb(["audit", "release", id, "--reason", "closed"]).ok();
    assert_eq!(world.swb(["audit", "holds", "--json"]).ok().json()["holds"], json!([]));
    for both in [&["--session", "s", "--everything"][..], &[]] {
        let wrong = [&["audit", "hold", "--reason", "x"], both].concat();
        assert_eq!(world.swb(wrong).code, Some(2), "{both:?}");
    }

    let asked = world.swb(["audit", "purge", "--reason", "x"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("--yes"), "{asked:?}");
    assert_eq!(world.swb(["audit", "purge", "--days", "29", "--reason", "x", "--yes"]).code, Some(2));
    let purged = world.swb(["audit", "purge", "--reason", "tidy", "--yes", "--json"]).ok().json();
    assert_eq!(purged, json!({ "records": 0, "segments": 0, "kept_segments": 0 }));
    let status = world.swb(["status", "--json"]).ok().json();
    assert_eq!((&status["audit"]["retention_days"], &status["audit"]["segments"]), (&json!(90), &json!(1)));
    assert!(status["audit"]["number"].as_u64().unwrap() >= 3);
    assert!(world.swb(["status"]).ok().stdout.contains("kept 90 days"));
    let doctor = world.swb(["doctor", "--json"]).ok().json();
    let record = doctor["findings"].as_array().unwrap().iter().find(|it| it["what"] == "record").unwrap();
    assert_eq!(record["health"], "good");
}

#[test]
fn the_end_of_the_record_is_anchored_when_the_daemon_stops() {
    let world = world();
    let heads = world.folder().join("heads.jsonl");
    let command = format!("audit.anchor_command=cat >> '{}'", heads.display());
    world.swb(["--set", &command, "up"]).ok();
    world.swb(["down"]).ok();
    let anchors = heads.to_str().unwrap();
    let verified = world.swb(["audit", "verify", "--anchor", anchors, "--json"]).ok().json();
    assert_eq!(verified["verdict"], "anchored");
}

#[test]
fn settings_and_rules_that_cannot_be_used_keep_the_daemon_from_starting() {
    let world = world();
    let short = world.swb(["--set", "audit.retention_days=29", "up"]);
    assert!(short.code != Some(0) && short.stderr.contains("audit.retention_days"), "{short:?}");
    let file = world.paths().redaction_file();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[[rule]]\nid = \"a\"\nprefix = \"\"\nmin = 16\n").unwrap();
    let broad = world.swb(["up"]);
    assert!(broad.code != Some(0) && broad.stderr.contains("it would hide everything"), "{broad:?}");
    assert_eq!(world.swb(["doctor"]).code, Some(1));
    std::fs::write(&file, "[[rule]]\nid = \"acme\"\nprefix = \"acme_\"\nmin = 16\n").unwrap();
    world.swb(["up"]).ok();
    let key = "acme_77aa88bb99cc00dd";
    world.swb(["audit", "hold", "--everything", "--reason", key]).ok();
    let holds = world.swb(["audit", "holds"]).ok().stdout;
    assert!(holds.contains("[REDACTED:CUSTOM]") && !holds.contains(key), "{holds}");
}

/// Makes workspaces until the connection breaks; the ids of the commands that were answered.
fn work(socket: &std::path::Path, round: usize, worker: usize) -> Vec<String> {
    use std::io::Write;
    let Ok(mut stream) = std::os::unix::net::UnixStream::connect(socket) else { return Vec::new() };
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut answered = Vec::new();
    for n in 0.. {
        let id = format!("cmd_{round}_{worker}_{n}");
        let params = json!({ "name": id, "root_path": "/" });
        let line =
            json!({"jsonrpc":"2.0","id":id,"method":"workspace.create","params":params}).to_string() + "\n";
        let mut answer = String::new();
        if stream.write_all(line.as_bytes()).is_err()
            || !matches!(lines.read_line(&mut answer), Ok(read) if read > 0)
        {
            break;
        }
        let Ok(answer) = serde_json::from_str::<Value>(&answer) else { break };
        assert!(answer["error"].is_null(), "{answer}");
        answered.push(id);
    }
    answered
}

#[test]
fn kill_9_under_load_loses_no_answer_and_leaves_no_command_open() {
    let world = world();
    world.swb(["up"]).ok();
    let socket = world.paths().control_socket();
    let mut answered = Vec::new();
    for round in 0..3 {
        let pid = world.swb(["status", "--json"]).ok().json()["pid"].to_string();
        let before = world.swb(["audit", "head"]).ok().json()["number"].as_u64().unwrap();
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let socket = socket.clone();
                std::thread::spawn(move || work(&socket, round, worker))
            })
            .collect();
        testkit::wait("commands under way", || {
            world.swb(["audit", "head"]).ok().json()["number"].as_u64().unwrap()
                > before + 40 + 31 * round as u64
        });
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        for worker in workers {
            answered.extend(worker.join().unwrap());
        }
        testkit::wait("the next daemon", || {
            let status = world.swb(["status", "--json"]);
            status.code == Some(0) && status.json()["pid"].as_u64() != pid.parse().ok()
        });
    }
    world.swb(["down"]).ok();
    assert!(answered.len() > 30, "{}", answered.len());
    let records = world.swb(["audit", "tail", "--after", "0", "--json"]).ok().json_lines();
    let of_kind = |kind: &'static str| records.iter().filter(move |record| record["kind"] == kind);
    let mut ends = std::collections::HashMap::new();
    for end in of_kind("end") {
        assert!(ends.insert(end["of"].as_u64().unwrap(), end).is_none(), "two ends: {end}");
    }
    for start in of_kind("start") {
        assert!(ends.contains_key(&start["n"].as_u64().unwrap()), "no end: {start}");
    }
    assert_eq!(of_kind("start").count(), ends.len());
    let ok: std::collections::HashSet<&str> = of_kind("end")
        .filter(|end| end["status"] == "ok")
        .filter_map(|end| end["command_id"].as_str())
        .collect();
    for id in &answered {
        assert!(ok.contains(id.as_str()), "{id} was answered and is not recorded");
    }
    let verified = world.swb(["audit", "verify", "--json"]).ok().json();
    assert_eq!((&verified["verdict"], &verified["finding_count"]), (&json!("consistent"), &json!(0)));
}
