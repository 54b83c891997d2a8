//! Frozen logs: what was written by an earlier version must be read, verified and continued by every later one.
//!
//! `fixtures/audit/v1/begun` is a log of which only the first header was written; `written` is the same log after the
//! entries below. Cases are added, never edited.

use std::path::{Path, PathBuf};

use serde_json::json;
use swb_journal::audit::{
    AuditLog, ChainHash, Entry, Head, Hold, HoldScope, Record, RecordedActor, RecordedDecision, Status,
    Verdict, verify,
};

use crate::support::{World, at, segments, small};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/audit/v1").join(name)
}

fn copy(name: &str, world: &World) {
    std::fs::create_dir_all(world.folder()).unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, world.folder().join(path.file_name().unwrap())).unwrap();
    }
}

fn user() -> RecordedActor {
    RecordedActor { kind: "user".to_owned(), id: "user_local".to_owned() }
}

fn append_all(log: &AuditLog) {
    let start = Entry {
        actor: Some(RecordedActor { kind: "agent".to_owned(), id: "agent_ada".to_owned() }),
        correlation_id: Some("cor_01".to_owned()),
        parent_correlation_id: Some("cor_00".to_owned()),
        workspace_id: Some("ws_01".to_owned()),
        lane_id: Some("lane_01".to_owned()),
        session_id: Some("sess_01".to_owned()),
        terminal_id: Some("term_01".to_owned()),
        command_id: Some("req_01".to_owned()),
        decision: Some(RecordedDecision {
            id: "dec_01".to_owned(),
            outcome: "approved".to_owned(),
            rules: vec!["shell.push".to_owned()],
            approval_id: Some("apr_01".to_owned()),
        }),
        args_hash: Some(log.hash_arguments(br#"{"token":"secret"}"#)),
        // In the order of the alphabet: whether serde_json keeps another one depends on what else is built.
        args: Some(json!({ "text": "zeile\n\u{1f980} \" \\ \u{2028}", "token": "[REDACTED]" }).into()),
        attributes: Some(json!({ "risk": "high" }).into()),
        redacted: vec!["key_name".to_owned()],
        ..Entry::start(at(0), "terminal.input")
    };
    let of = log.append_now(&start).unwrap().number;
    let event = Entry {
        event_id: Some("evt_01".to_owned()),
        sequence: Some(3),
        payload: Some(json!({ "bytes": 5 }).into()),
        actor: start.actor.clone(),
        correlation_id: start.correlation_id.clone(),
        ..Entry::event(at(1), "terminal.state.changed", 41)
    };
    log.append_now(&event).unwrap();
    let end = Entry {
        result: Some(json!({ "output_seq": 7 }).into()),
        error_code: Some("POLICY_DENIED".to_owned()),
        message: Some("no".to_owned()),
        duration_us: Some(1234),
        ..Entry::end(at(2), of, Status::Denied, &start)
    };
    log.append_now(&end).unwrap();
    let scope = HoldScope::Session { session_id: "sess_01".to_owned() };
    let hold = Hold { id: "hold_01".to_owned(), scope, reason: "a case".to_owned() };
    log.append_now(&Entry::hold(at(3), user(), hold)).unwrap();
    log.append_now(&Entry::release(at(4), user(), "hold_01")).unwrap();
    log.append_now(&Entry::start(at(5), "bus.status")).unwrap();
}

#[test]
fn the_same_entries_are_written_as_the_same_bytes() {
    let world = World::new();
    copy("begun", &world);
    append_all(&AuditLog::open(&world.folder(), small(1500), at(0)).unwrap().0);
    let (ours, frozen) = (segments(&world.folder()), segments(&fixture("written")));
    assert_eq!(ours.len(), frozen.len());
    for (ours, frozen) in ours.iter().zip(&frozen) {
        assert_eq!(ours.file_name(), frozen.file_name());
        let [ours, frozen] = [ours, frozen].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(ours, frozen);
    }
}

#[test]
fn the_frozen_log_is_verified_against_its_frozen_head() {
    let head = std::fs::read_to_string(fixture("written/head.json")).unwrap();
    let head: Head = serde_json::from_str(&head).unwrap();
    let report = verify(&fixture("written"), &[head]).unwrap();
    assert_eq!((report.verdict, report.records), (Verdict::Anchored, 6), "{:?}", report.findings);
}

#[test]
fn the_chain_is_what_the_description_says() {
    // Computed from the text alone, as any other program would.
    let text = std::fs::read_to_string(&segments(&fixture("written"))[0]).unwrap();
    let mut lines = text.lines();
    let (header, header_hash) = lines.next().unwrap().split_once(",\"hash\":\"").unwrap();
    let mut before = *blake3::hash(header.as_bytes()).as_bytes();
    assert_eq!(blake3::Hash::from(before).to_hex().as_str(), header_hash.trim_end_matches("\"}"));
    for line in lines {
        let (start, hash) = line.rsplit_once(",\"hash\":\"").unwrap();
        let (chained, fields) = start.split_once("\",").unwrap();
        let (number, prev) = chained.split_once(",\"prev\":\"").unwrap();
        assert_eq!(prev, blake3::Hash::from(before).to_hex().as_str());
        let number: u64 = number.trim_start_matches("{\"n\":").parse().unwrap();
        let digest = *blake3::hash(fields.as_bytes()).as_bytes();
        let input = [&b"r"[..], &before, &number.to_le_bytes(), &digest].concat();
        before = *blake3::hash(&input).as_bytes();
        assert_eq!(blake3::Hash::from(before).to_hex().as_str(), hash.trim_end_matches("\"}"));
        let record = Record::parse(line.as_bytes()).unwrap();
        assert_eq!(record.hash, hash.trim_end_matches("\"}").parse::<ChainHash>().unwrap());
    }
}

#[test]
fn words_of_a_later_version_are_read_over() {
    use swb_journal::audit::Kind;
    let line = std::fs::read_to_string(&segments(&fixture("written"))[0]).unwrap();
    let line = line.lines().nth(1).unwrap();
    let fields = line.split_once("\",").unwrap().1.rsplit_once(",\"hash\"").unwrap().0;
    let later = fields.replace("\"kind\":\"start\"", "\"kind\":\"dream\"") + ",\"mood\":[1,{}]";
    let prev = "0".repeat(64);
    let digest = *blake3::hash(later.as_bytes()).as_bytes();
    let input = [&b"r"[..], &[0; 32], &9u64.to_le_bytes(), &digest].concat();
    let line = format!("{{\"n\":9,\"prev\":\"{prev}\",{later},\"hash\":\"{}\"}}", blake3::hash(&input));
    let record = Record::parse(line.as_bytes()).unwrap();
    assert_eq!((record.number, record.entry.kind), (9, Kind::Other));
    assert_eq!(record.entry.session_id.as_deref(), Some("sess_01"));
}
