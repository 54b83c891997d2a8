//! What stands in the log after commands came and went.

use std::os::unix::fs::PermissionsExt;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use swb_journal::audit::{AuditReader, Kind, Record, RecordedDecision, verify};
use swb_proto::error::{ERR_HANDLER, ERR_POLICY_DENIED, ERR_TIMEOUT};
use swb_proto::id::{CorrelationId, SessionId};
use swb_proto::{Actor, BusError, BusPayload, BusResult, Meta};

use super::*;

fn open(folder: &Path, durability: Durability) -> Arc<Recorder> {
    let durability = format!("{durability:?}").to_lowercase();
    Recorder::open(folder, &AuditConfig { durability, ..AuditConfig::default() }).unwrap()
}

fn meta() -> Meta {
    Meta {
        session_id: Some(SessionId::try_from("sess_1".to_owned()).unwrap()),
        correlation_id: Some(CorrelationId::try_from("cor_1".to_owned()).unwrap()),
        ..Meta::default()
    }
}

fn start<'a>(method: &'a str, actor: &'a Actor, meta: &'a Meta, args: Option<&'a RawValue>) -> Start<'a> {
    Start {
        method,
        actor,
        meta,
        parent_correlation_id: None,
        command_id: Some("cmd_1"),
        decision: None,
        attributes: None,
        args,
    }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Begins a command of the local user.
fn begin(recorder: &Arc<Recorder>, method: &str, args: &str) -> Started {
    recorder.started(start(method, &Actor::local_user(), &meta(), Some(&raw(args)))).unwrap()
}

fn run(recorder: &Arc<Recorder>, method: &str, args: &str, result: &BusResult) {
    let Recorded::Ready(done) = begin(recorder, method, args).ended(result) else {
        panic!("not written at once")
    };
    done.unwrap();
}

fn records(folder: &Path) -> Vec<Record> {
    AuditReader::new(folder).records_after(0).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_command_has_a_start_and_an_end_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let decision = RecordedDecision {
        id: "dec_1".to_owned(),
        outcome: "permit".to_owned(),
        rules: vec!["people".to_owned()],
        approval_id: None,
    };
    let (actor, meta) = (Actor::local_user(), meta());
    let args = raw(r#"{"name":"x","_meta":{"session_id":"sess_1"}}"#);
    let started = recorder
        .started(Start {
            decision: Some(decision.clone()),
            attributes: Some(&Shown::of(&json!({ "action": "session.create" }))),
            ..start("session.create", &actor, &meta, Some(&args))
        })
        .unwrap();
    assert!(started.is_settled());
    assert_eq!(records(dir.path()).len(), 1, "the start is there before anything is done");
    let Recorded::Ready(Ok(receipt)) = started.ended(&Ok(BusPayload::Empty)) else { panic!() };
    let all = records(dir.path());
    let [first, last] = &all[..] else { panic!("{all:?}") };
    assert_eq!((first.entry.kind, last.entry.kind), (Kind::Start, Kind::End));
    assert_eq!((last.entry.of, last.number, last.hash), (Some(first.number), receipt.number, receipt.hash));
    assert_eq!(
        first.entry.args,
        Some(json!({ "name": "x" }).into()),
        "the context stands in fields of its own"
    );
    assert!(first.entry.args_hash.is_some() && first.entry.attributes.is_some());
    for record in [first, last] {
        let entry = &record.entry;
        assert_eq!(entry.method.as_deref(), Some("session.create"));
        assert_eq!(entry.actor.as_ref().map(|actor| actor.id.as_str()), Some("user_local"));
        assert_eq!(entry.session_id.as_deref(), Some("sess_1"));
        assert_eq!(entry.correlation_id.as_deref(), Some("cor_1"));
        assert_eq!(entry.command_id.as_deref(), Some("cmd_1"));
        assert_eq!(entry.decision.as_ref(), Some(&decision));
    }
    assert_eq!(last.entry.status, Some(Status::Ok));
    assert!(last.entry.duration_us.is_some() && last.entry.args.is_none());
}

#[test]
fn no_secret_reaches_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let url = "postgres://app:hunter2secret@db/main";
    let args = json!({ "note": format!("use {key}"), "password": "pw-9271", "url": url, "deep": [{ "token": "tk-5521" }] });
    let error = BusError::new(ERR_HANDLER, format!("cannot push with {key} from /home/ada/project/.git"));
    run(&recorder, "project.clone", &args.to_string(), &Err(error));
    let attributes = json!({ "command": format!("curl -H 'Authorization: Bearer {key}'") });
    let (actor, meta) = (Actor::local_user(), meta());
    let started = recorder
        .started(Start {
            attributes: Some(&Shown::of(&attributes)),
            ..start("policy.decide", &actor, &meta, None)
        })
        .unwrap();
    let Recorded::Ready(Ok(_)) = started.ended(&Ok(BusPayload::Empty)) else { panic!() };
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in [&key[..], "hunter2secret", "pw-9271", "tk-5521", "/home/ada"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    let all = records(dir.path());
    assert_eq!(all[0].entry.redacted, ["github-token", "secret-name", "url-password"]);
    assert_eq!(all[1].entry.redacted, ["github-token"]);
    assert_eq!(all[1].entry.error_code.as_deref(), Some("INTERNAL_ERROR"));
    let message = all[1].entry.message.as_deref().unwrap();
    assert_eq!(message, "cannot push with [REDACTED:FORGE_TOKEN] from …/.git");
}

#[test]
fn what_is_typed_into_a_terminal_is_recorded_as_a_length() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let args = json!({ "terminal_id": "term_1", "data": "hunter2\n", "keys": ["Enter"], "seq": 7 });
    run(&recorder, "terminal.input", &args.to_string(), &Ok(BusPayload::Empty));
    let shown = records(dir.path()).remove(0).entry.args.unwrap().value();
    assert_eq!(shown["data"], json!({ "bytes": 8 }));
    assert_eq!((&shown["terminal_id"], &shown["seq"]), (&json!("term_1"), &json!(7)));
    assert!(!shown.to_string().contains("Enter"), "{shown}");
}

#[test]
fn huge_arguments_are_cut_and_their_hash_covers_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let key = format!("ghp_{}", "a1B2".repeat(9));
    // A secret lies across every place where a cut might be.
    let text = format!("{} {key} ", "x".repeat(17)).repeat(20_000);
    let args = |last: &str| {
        json!({ "a": text, "b": vec!["y".repeat(300); 3000], "c": { "d": text }, "last": last }).to_string()
    };
    let (one, two) = (args("1"), args("2"));
    for args in [&one, &two] {
        run(&recorder, "agent.run", args, &Ok(BusPayload::Empty));
    }
    let all = records(dir.path());
    let shown = all[0].entry.args.as_ref().unwrap().value();
    assert_eq!(shown["_cut"], json!({ "bytes": one.len() }));
    let written = serde_json::to_string(&shown).unwrap();
    assert!(written.len() < 32 * 1024, "{}", written.len());
    assert!(written.contains("bytes in all") && written.contains("[REDACTED:FORGE_TOKEN]"));
    assert!(!written.contains("ghp_") && !written.contains("a1B2"), "no part of a secret is left at a cut");
    assert_eq!(all[0].entry.redacted, ["github-token"]);
    assert_ne!(all[0].entry.args_hash, all[2].entry.args_hash, "what was cut off still counts");
}

#[test]
fn each_ending_has_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let denied = BusError::new(ERR_POLICY_DENIED, "no");
    for (error, status, name) in [
        (denied.clone(), Status::Denied, "POLICY_DENIED"),
        (denied.because("APPROVAL_TIMED_OUT"), Status::TimedOut, "POLICY_DENIED"),
        (BusError::new(ERR_TIMEOUT, "late"), Status::TimedOut, "INTERNAL_ERROR"),
        (BusError::new(swb_proto::error::ERR_CANCELLED, "never mind"), Status::Cancelled, "INVALID_REQUEST"),
        (BusError::new(ERR_HANDLER, "broken"), Status::Error, "INTERNAL_ERROR"),
    ] {
        run(&recorder, "a.b", "{}", &Err(error));
        let end = records(dir.path()).pop().unwrap().entry;
        assert_eq!((end.status, end.error_code.as_deref()), (Some(status), Some(name)));
    }
}

#[test]
fn a_command_that_is_let_go_of_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    for durability in [Durability::Written, Durability::Synced] {
        let recorder = open(dir.path(), durability);
        drop(begin(&recorder, "a.b", "{}"));
        drop(recorder);
        assert_eq!(records(dir.path()).pop().unwrap().entry.status, Some(Status::Interrupted));
    }
    assert_eq!(records(dir.path()).len(), 4);
}

#[test]
fn what_a_crash_left_without_an_end_gets_one() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    run(&recorder, "a.done", "{}", &Ok(BusPayload::Empty));
    // As after kill -9: the lock is free, nothing is closed.
    let lost: Vec<_> = (0..3).map(|n| begin(&recorder, "a.lost", &json!({ "n": n }).to_string())).collect();
    std::mem::forget(lost);
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    for opened in 0..2 {
        drop(open(copy.path(), Durability::Written));
        let all = records(copy.path());
        assert_eq!(all.len(), 8, "opened {opened} times: every end is written once");
        let ends: Vec<_> = all[5..].iter().map(|record| (record.entry.of, record.entry.status)).collect();
        assert_eq!(ends, [3, 4, 5].map(|of| (Some(of), Some(Status::Interrupted))));
        assert_eq!(all[5].entry.method.as_deref(), Some("a.lost"));
        assert_eq!(all[5].entry.session_id.as_deref(), Some("sess_1"));
    }
    assert!(verify(copy.path(), &[]).unwrap().findings.is_empty());
}

#[tokio::test]
async fn what_has_to_be_synced_is_told_when_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Synced);
    let mut started = begin(&recorder, "a.b", "{}");
    started.settled().await.unwrap();
    assert!(started.is_settled());
    assert_eq!(records(dir.path()).len(), 1);
    let recorded = started.ended(&Ok(BusPayload::Empty));
    assert!(matches!(recorded, Recorded::Later(_)));
    assert_eq!(recorded.settled().await.unwrap().number, 2);
    // Nobody has to wait for the start: its end does.
    let receipt = begin(&recorder, "a.b", "{}").ended(&Ok(BusPayload::Empty)).settled().await.unwrap();
    assert_eq!(records(dir.path()).pop().unwrap().entry.of, Some(receipt.number - 1));
}

#[test]
fn when_the_log_takes_no_more_nothing_begins() {
    let dir = tempfile::tempdir().unwrap();
    let config = AuditConfig { segment_bytes: 600, ..AuditConfig::default() };
    let recorder = Recorder::open(dir.path(), &config).unwrap();
    run(&recorder, "a.b", "{}", &Ok(BusPayload::Empty));
    let begun = begin(&recorder, "a.b", "{}");
    // The next segment cannot be made.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    let moved = dir.path().with_extension("away");
    std::fs::rename(dir.path(), &moved).unwrap();
    let mut refused = None;
    for _ in 0..10 {
        match recorder.started(start("a.b", &Actor::local_user(), &meta(), None)) {
            Ok(started) => drop(started),
            Err(error) => refused = Some(error),
        }
    }
    std::fs::set_permissions(&moved, std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = BusError::from(refused.expect("a folder that is gone takes no records"));
    assert_eq!(error.reason(), "AUDIT_UNAVAILABLE");
    assert!(error.data.as_ref().unwrap()["next"].as_str().unwrap().contains("swb restart"));
    assert!(!error.to_string().contains(&*dir.path().to_string_lossy()), "{error}");
    assert!(recorder.check().is_err());
    let Recorded::Ready(end) = begun.ended(&Ok(BusPayload::Empty)) else { panic!() };
    assert!(end.is_err(), "what cannot be recorded must not be answered");
    std::fs::rename(&moved, dir.path()).unwrap();
    drop(recorder);
    let again = open(dir.path(), Durability::Written);
    run(&again, "a.b", "{}", &Ok(BusPayload::Empty));
    assert_eq!(verify(dir.path(), &[]).unwrap().findings.len(), 0);
    let starts = records(dir.path()).iter().filter(|record| record.entry.kind == Kind::Start).count();
    let ends = records(dir.path()).iter().filter(|record| record.entry.kind == Kind::End).count();
    assert_eq!(starts, ends);
}

#[test]
fn arguments_of_any_shape_are_taken() {
    for (args, shown) in [
        ("[1,2]", Some(json!([1, 2]))),
        ("\"text\"", Some(json!("text"))),
        ("{\"_meta\":{}}", None),
        ("[1e999,\n2]", Some(json!({ "unreadable_bytes": 10 }))),
        ("[\"\\ud800\"]", Some(json!({ "unreadable_bytes": 10 }))),
    ] {
        let seen = super::shown::arguments("a.b", &raw(args), &mut Vec::new());
        assert_eq!(seen, shown.map(Into::into), "{args}");
    }
    assert!([" {} ", "", "null"].iter().all(|args| super::shown::is_empty(args)));
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    assert!(
        super::shown::arguments("a.b", &raw(&deep), &mut Vec::new())
            .is_some_and(|value| value.value() != Value::Null)
    );
}

#[test]
fn records_are_told_of_to_whoever_listens_and_never_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let keeper = Arc::clone(&recorder) as Arc<dyn swb_bus::topics::Keeper>;
    let retention = swb_bus::topics::Retention::default();
    let file = dir.path().join("seq");
    let topics = Topics::kept_by(keeper, retention, &file, std::time::SystemTime::now).unwrap();
    recorder.speak_on(&topics);
    run(&recorder, "a.unheard", "{}", &Ok(BusPayload::Empty));
    assert_eq!(topics.head(), 0, "nobody listens: nothing is said");
    let glob = |text: &str| vec![swb_proto::TopicGlob::try_from(text.to_owned()).unwrap()];
    let other = topics.subscribe(glob("session.*"), None).unwrap();
    run(&recorder, "a.unheard", "{}", &Ok(BusPayload::Empty));
    assert_eq!(topics.head(), 0);
    drop(other);
    let mut heard = topics.subscribe(glob("audit.*"), None).unwrap();
    run(&recorder, "a.heard", "{}", &Err(BusError::new(ERR_POLICY_DENIED, "no")));
    let event = heard.take_now().unwrap().to_envelope(topics.now());
    assert_eq!(
        (event.topic.as_str(), event.session_id.as_ref().unwrap().as_str()),
        ("audit.recorded", "sess_1")
    );
    let payload: Value = serde_json::from_str(event.payload.get()).unwrap();
    assert_eq!(
        payload,
        json!({ "audit_id": "6", "type": "command", "method_or_topic": "a.heard", "outcome": "denied" })
    );
    assert!(heard.take_now().is_none());
    drop(heard);
    run(&recorder, "a.unheard", "{}", &Ok(BusPayload::Empty));
    assert_eq!((topics.head(), records(dir.path()).len()), (1, 8), "telling of records makes none");
}

#[test]
fn a_closed_record_takes_no_more_and_can_be_opened_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Synced);
    let started = begin(&recorder, "a.b", "{}");
    recorder.close();
    let error = recorder.started(start("a.b", &Actor::local_user(), &meta(), None)).unwrap_err();
    assert_eq!(BusError::from(error).reason(), "AUDIT_UNAVAILABLE");
    let next = open(dir.path(), Durability::Written);
    assert_eq!(records(dir.path()).pop().unwrap().entry.status, Some(Status::Interrupted));
    drop((started, next));
}

#[test]
fn an_error_leaves_without_secrets_and_places() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let error =
        BusError::new(ERR_HANDLER, format!("git clone of https://u:{key}@x.example/a to /home/ada/w failed"))
            .because("CLONE_FAILED")
            .with("stderr", format!("fatal: {key}"))
            .with("sessions", json!(["sess_1"]));
    let told = super::presentable(error);
    assert!(told.message.ends_with("@x.example/a to …/w failed"), "{}", told.message);
    assert!(!told.to_string().contains(&key) && !format!("{:?}", told.data).contains(&key));
    assert_eq!(
        (told.reason(), &told.data.as_ref().unwrap()["sessions"]),
        ("CLONE_FAILED", &json!(["sess_1"]))
    );
    let plain = BusError::new(ERR_HANDLER, "there is no workspace ws_1").with("n", 1);
    assert_eq!(super::presentable(plain.clone()), plain);
}

#[test]
fn holds_keep_and_releases_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = open(dir.path(), Durability::Written);
    let by = || recorded(&Actor::local_user());
    let scope = swb_journal::audit::HoldScope::Session { session_id: "sess_1".to_owned() };
    let (id, _) = recorder.hold(by(), scope, "case 7".to_owned()).unwrap();
    let holds = || AuditReader::new(dir.path()).holds().unwrap();
    assert_eq!((holds()[0].id.as_str(), holds()[0].reason.as_str()), (id.as_str(), "case 7"));
    assert!(recorder.release(by(), "hold_of_nobody", "x".to_owned()).unwrap().is_none());
    assert!(recorder.release(by(), &id, "closed".to_owned()).unwrap().is_some());
    assert!(holds().is_empty());
    assert!(recorder.purge(by(), "x".to_owned(), 29).is_err());
    assert_eq!(recorder.purge(by(), "x".to_owned(), 30).unwrap().proof, None);
    let status = recorder.status(0);
    assert_eq!((status.number, status.segments, status.unavailable), (2, 1, None));
}
