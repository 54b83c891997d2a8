//! Posting.

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use swb_journal::message_bus::{
    AppendErrorKind, BodyState, BusOptions, BusPath, Draft, IdempotencyKey, Link, MessageBus, OpenErrorKind,
    Parent, Timestamp,
};

use crate::support::{World, bodies, draft, foreign, ids, incumbent_reads};

#[test]
fn the_bytes_on_disk_are_the_formats_own() {
    let world = World::new();
    let bus = world.bus();
    let time = Timestamp::parse_rfc3339("2026-11-15T09:50:00.153435987+02:00").unwrap();
    let first = bus
        .append(&Draft { task_id: "t".into(), timestamp: Some(time), ..Draft::new("INFO", "p", "hello") })
        .unwrap();
    let second = bus.append(&Draft { timestamp: Some(time), ..Draft::new("ISSUE", "p", "") }).unwrap();
    let expected = format!(
        "---\nmsg_id: {}\nts: 2026-11-15T07:50:00.153435987Z\ntype: INFO\nproject_id: p\ntask_id: t\nrun_id: \"\"\n---\n\
         hello\n\n---\nmsg_id: {}\nts: 2026-11-15T07:50:00.153435987Z\ntype: ISSUE\nproject_id: p\ntask_id: \"\"\n\
         run_id: \"\"\nissue_id: {}\n---\n\n",
        first.id, second.id, second.id
    );
    assert_eq!(String::from_utf8(world.bytes()).unwrap(), expected);
    assert_eq!(first.id.as_str().len(), 43);
}

#[test]
fn blank_fields_and_reserved_keys_are_refused() {
    let world = World::new();
    let bus = world.bus();
    let kind = |draft: &Draft| bus.append(draft).unwrap_err().kind;
    assert!(matches!(kind(&Draft::new(" ", "p", "x")), AppendErrorKind::Blank { field: "type" }));
    assert!(matches!(kind(&Draft::new("T", "\t", "x")), AppendErrorKind::Blank { field: "project_id" }));
    let meta = |key: &str| Draft { meta: vec![(key.into(), "1".into())], ..draft("x") };
    assert!(matches!(kind(&meta("swb_bytes")), AppendErrorKind::ReservedMeta { .. }));
    assert!(matches!(kind(&meta("swb_new")), AppendErrorKind::ReservedMeta { .. }));
    let twice = Draft { meta: vec![("a".into(), "1".into()), ("a".into(), "2".into())], ..draft("x") };
    assert!(matches!(kind(&twice), AppendErrorKind::RepeatedMeta { .. }));
    assert!(!world.file().exists());
}

#[test]
fn an_explicit_issue_id_is_kept_and_other_types_get_none() {
    let world = World::new();
    let bus = world.bus();
    bus.append(&Draft { issue_id: "I-1".into(), ..Draft::new("ISSUE", "p", "") }).unwrap();
    bus.append(&Draft::new("issue", "p", "")).unwrap();
    let messages = bus.read_all().unwrap();
    assert_eq!((&*messages[0].issue_id, &*messages[1].issue_id), ("I-1", ""));
}

#[test]
fn ids_never_fall_below_the_last_one_in_the_file() {
    let world = World::new();
    world.write(foreign("MSG-20991231-235959-999999999-PID00001-0001", "from the future"));
    let bus = world.bus();
    let first = bus.append(&draft("x")).unwrap();
    assert!(first.id.as_str().starts_with("MSG-21000101-000000-000000000-"), "{}", first.id);
    // Another opening has only the file to go by.
    let second = world.bus().append(&draft("y")).unwrap();
    assert!(second.id > first.id);
    assert!(second.timestamp.unwrap() < Timestamp::parse_rfc3339("2090-01-01T00:00:00Z").unwrap());
}

#[test]
fn a_body_that_looks_like_records_is_one_body() {
    let world = World::new();
    let bus = world.bus();
    let forged = format!("rule above\n---\nkey: value\n---\n\n{}---\n\n---", foreign("FORGED", "evil"));
    bus.append(&draft(forged.clone())).unwrap();
    bus.append(&draft("after")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), [forged, "after".to_owned()]);
    let seen = incumbent_reads(&world.bytes());
    assert_eq!(seen.len(), 2, "old readers stay in step");
    assert_eq!(seen.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), ids(&bus.read_all().unwrap()));
}

#[test]
fn reply_to_and_typed_parents_come_back() {
    let world = World::new();
    let bus = world.bus();
    let question = bus.append(&Draft::new("QUESTION", "p", "?")).unwrap();
    let mut answer = Draft::new("ANSWER", "p", "!").reply_to(question.id.as_str());
    answer.parents.push(Parent {
        id: "other".into(),
        kind: "blocks".into(),
        meta: vec![("a".into(), "yes".into())],
    });
    answer.links.push(Link {
        url: "https://x.example/?a=b#c".into(),
        label: "see: here".into(),
        kind: String::new().into(),
    });
    bus.append(&answer).unwrap();
    let read = &bus.read_all().unwrap()[1];
    assert_eq!(read.reply_to(), Some(question.id.as_str()));
    assert_eq!(read.parents, answer.parents);
    assert_eq!(read.links, answer.links);
}

#[test]
fn posting_twice_under_one_key_gives_the_first_message() {
    let world = World::new();
    let bus = world.bus();
    let keyed = |key: &str, body: &str| Draft {
        idempotency_key: Some(IdempotencyKey::new(key).unwrap()),
        ..draft(body)
    };
    let first = bus.append(&keyed("k: 1", "one")).unwrap();
    let again = world.bus().append(&keyed("k: 1", "other words")).unwrap();
    assert_eq!((again.id, again.timestamp, again.already_posted), (first.id.clone(), first.timestamp, true));
    let batch = bus.append_batch(&[keyed("k2", "two"), keyed("k2", "two"), keyed("k: 1", "one")]).unwrap();
    assert_eq!(batch.iter().map(|one| one.already_posted).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(batch[2].id, first.id);
    let messages = bus.read_all().unwrap();
    assert_eq!(bodies(&messages), ["one", "two"]);
    assert_eq!(messages[0].idempotency_key.as_deref(), Some("k: 1"));
    assert!(messages[0].meta.is_empty(), "the key is not shown as meta");
}

#[test]
fn a_key_is_found_in_long_files_and_in_archives() {
    let world = World::new();
    let bus = world.rotating_bus(200 << 10);
    let keyed = |n: usize| Draft {
        idempotency_key: Some(IdempotencyKey::new(format!("key-{n}")).unwrap()),
        ..draft(format!("{n} {}", "x".repeat(500)))
    };
    let firsts: Vec<_> = (0..900).map(|n| bus.append(&keyed(n)).unwrap()).collect();
    assert!(world.archives().len() >= 2);
    for n in [0, 1, 250, 400, 700, 898, 899] {
        let again = world.bus().append(&keyed(n)).unwrap();
        assert_eq!((&again.id, again.already_posted), (&firsts[n].id, true), "key-{n}");
    }
    assert_eq!(bus.read_all().unwrap().len(), 900);
}

#[test]
fn a_key_is_found_after_the_file_was_edited_by_hand() {
    let world = World::new();
    let bus = world.bus();
    let keyed = |n: usize| Draft {
        idempotency_key: Some(IdempotencyKey::new(format!("key-{n}")).unwrap()),
        ..draft(format!("{n} {}", "x".repeat(500)))
    };
    let firsts: Vec<_> = (0..400).map(|n| bus.append(&keyed(n)).unwrap().id.into_string()).collect();
    assert!(bus.append(&keyed(200)).unwrap().already_posted, "the index knows it");
    // An early record is taken out: everything the index knows has moved.
    let text = String::from_utf8(world.bytes()).unwrap();
    let (start, end) = (text.find(&firsts[3]).unwrap() - 12, text.find(&firsts[4]).unwrap() - 12);
    world.write([&text[..start], &text[end..]].concat());
    let again = world.bus().append(&keyed(200)).unwrap();
    assert_eq!((again.id.as_str(), again.already_posted), (firsts[200].as_str(), true));
    assert!(!world.bus().append(&keyed(3)).unwrap().already_posted, "it is gone, so it is posted again");
    assert_eq!(bus.read_all().unwrap().len(), 400);
}

#[test]
fn a_held_lock_is_an_error_after_the_attempts() {
    let world = World::new();
    world.bus().append(&draft("x")).unwrap();
    let held = std::fs::File::open(world.file()).unwrap();
    held.lock().unwrap();
    let options = BusOptions {
        lock_timeout: Duration::from_millis(2),
        retry_backoff: Duration::from_millis(1),
        ..BusOptions::default()
    };
    let bus = world.bus_with(options);
    assert!(matches!(
        bus.append(&draft("y")).unwrap_err().kind,
        AppendErrorKind::LockTimeout { attempts: 3 }
    ));
    held.unlock().unwrap();
    bus.append(&draft("z")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["x", "z"]);
}

#[test]
fn a_symlinked_bus_is_refused_for_posting_and_reading() {
    let world = World::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), world.file()).unwrap();
    let error = world.bus().append(&draft("x")).unwrap_err().kind;
    assert!(matches!(error, AppendErrorKind::Open(error) if matches!(error.kind, OpenErrorKind::Symlink)));
    assert!(world.bus().read_all().is_err());
    assert_eq!(outside.as_file().metadata().unwrap().len(), 0);
}

#[test]
fn posting_under_a_root_makes_its_folders_and_a_direct_path_does_not() {
    let world = World::new();
    let bus =
        MessageBus::new(BusPath::in_root(world.dir.path(), "p", Some("t")).unwrap(), BusOptions::default());
    assert!(bus.read_all().unwrap().is_empty(), "a missing bus is empty");
    bus.append(&draft("x")).unwrap();
    assert!(world.dir.path().join("p/t/TASK-MESSAGE-BUS.md").is_file());
    let direct =
        MessageBus::new(BusPath::new(world.dir.path().join("q/B.md")).unwrap(), BusOptions::default());
    assert!(
        matches!(direct.append(&draft("x")).unwrap_err().kind, AppendErrorKind::Open(error) if error.is_missing())
    );
}

#[test]
fn a_folder_that_is_replaced_is_noticed() {
    let world = World::new();
    let bus = MessageBus::new(BusPath::in_root(world.dir.path(), "p", None).unwrap(), BusOptions::default());
    bus.append(&draft("x")).unwrap();
    std::fs::rename(world.dir.path().join("p"), world.dir.path().join("old")).unwrap();
    bus.append(&draft("y")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["y"]);
}

#[test]
fn many_threads_with_fsync_all_get_their_messages_in() {
    let world = World::new();
    let bus = world.bus_with(BusOptions { fsync: true, auto_rotate: Some(4096), ..BusOptions::default() });
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let bus = &bus;
            scope.spawn(move || {
                (0..20).for_each(|n| drop(bus.append(&draft(format!("{thread}/{n}"))).unwrap()));
            });
        }
    });
    let messages = bus.read_all().unwrap();
    let mut found = bodies(&messages);
    found.sort();
    let mut expected: Vec<_> = (0..8).flat_map(|t| (0..20).map(move |n| format!("{t}/{n}"))).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert!(ids(&messages).is_sorted());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{1,10}", any::<String>()]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        prop::collection::vec("(\\\\?-{2,4}|msg_id: x|[a-z ]{0,5}|@)\r?\n?", 0..8)
            .prop_map(|lines| lines.concat().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_message_written_reads_back(
        drafts in prop::collection::vec((text(), text(), text(), body()), 1..6),
        rotate in proptest::option::of(1u64..600),
    ) {
        let world = World::new();
        let bus = world.bus_with(BusOptions { auto_rotate: rotate, ..BusOptions::default() });
        let drafts: Vec<Draft> = drafts
            .into_iter()
            .filter(|(kind, project, ..)| !kind.trim().is_empty() && !project.trim().is_empty())
            .map(|(kind, project, value, body)| Draft {
                run_id: value.clone(),
                meta: vec![("k".into(), value)],
                ..Draft::new(kind, project, body)
            })
            .collect();
        let mut acked = Vec::new();
        for draft in &drafts {
            acked.push(bus.append(draft).unwrap().id.into_string());
        }
        let messages = bus.read_all().unwrap();
        prop_assert_eq!(ids(&messages), acked.clone());
        for (message, draft) in messages.iter().zip(&drafts) {
            prop_assert_eq!(&*message.body, &*draft.body);
            prop_assert_eq!(message.body_state, BodyState::Whole);
            prop_assert_eq!(&*message.kind, &*draft.kind);
            prop_assert_eq!(&*message.project_id, &*draft.project_id);
            prop_assert_eq!(&*message.run_id, &*draft.run_id);
            prop_assert_eq!(&message.meta, &[(Cow::Borrowed("k"), Cow::Owned(draft.meta[0].1.clone()))]);
        }
        let mut old_readers = Vec::new();
        for file in world.archives().into_iter().chain([world.file()]).filter(|file| file.exists()) {
            old_readers.extend(incumbent_reads(&std::fs::read(file).unwrap()).into_iter().map(|(id, _)| id));
        }
        if rotate.is_none() {
            prop_assert_eq!(old_readers, acked);
        }
    }
}
