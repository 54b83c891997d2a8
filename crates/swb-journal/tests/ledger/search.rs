//! What is found is what reading everything finds.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use swb_journal::audit::{
    AuditLog, AuditOptions, Entry, Kind, Moment, PurgeOrder, Record, RecordedActor, Status,
};
use swb_journal::ledger::{MAX_CHAIN, Query};

use crate::support::{World, at, entry, fill, found, word};

/// Everything between what is no letter and no digit.
fn parts(record: &Record) -> Vec<String> {
    let text = serde_json::to_string(&record.entry).unwrap().to_lowercase();
    text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect()
}

/// Whether a record is what was asked for, said as plainly as possible.
fn wanted(query: &Query, record: &Record, parts: &[String]) -> bool {
    let entry = &record.entry;
    let name = entry.method.clone().or(entry.topic.clone()).unwrap_or_default();
    query.words.iter().all(|word| match word.strip_suffix('*') {
        Some(start) => parts.iter().any(|part| part.starts_with(&start.to_lowercase())),
        None => parts.contains(&word.to_lowercase()),
    }) && query.actor.as_ref().is_none_or(|actor| entry.actor.as_ref().is_some_and(|it| it.id == *actor))
        && query.method.as_ref().is_none_or(|method| match method.strip_suffix(".*") {
            Some(space) => name.starts_with(&format!("{space}.")),
            None => name == *method,
        })
        && query.session_id.as_ref().is_none_or(|id| entry.session_id.as_ref() == Some(id))
        && query.workspace_id.as_ref().is_none_or(|id| entry.workspace_id.as_ref() == Some(id))
        && query.correlation_id.as_ref().is_none_or(|id| entry.correlation_id.as_ref() == Some(id))
        && query.status.is_none_or(|status| entry.status == Some(status))
        && query.kind.is_none_or(|kind| entry.kind == kind)
        && query.from.is_none_or(|from| entry.at >= from)
        && query.to.is_none_or(|to| entry.at <= to)
        && query.before.is_none_or(|before| record.number < before)
}

fn maybe<T: Clone + std::fmt::Debug + 'static>(
    values: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Option<T>> {
    prop_oneof![3 => Just(None), 1 => values.prop_map(Some)]
}

fn query() -> impl Strategy<Value = Query> {
    let words = prop::collection::vec(
        prop::sample::select(vec![
            "cargo", "Needle", "room7", "room1*", "größe", "gr*", "absent", "permit", "file",
        ]),
        0..3,
    );
    let ids = (
        maybe((0..8u64).prop_map(|n| format!("actor_{n}"))),
        maybe(prop::sample::select(vec![
            "session.create",
            "agent.*",
            "agent.run.started",
            "terminal.*",
            "term.*",
        ])),
        maybe((0..12u64).prop_map(|n| format!("sess_{n}"))),
        maybe((0..3u64).prop_map(|n| format!("ws_{n}"))),
        maybe((0..400u64).prop_map(|n| format!("cor_{n}"))),
    );
    let rest = (
        maybe(prop::sample::select(vec![Status::Ok, Status::Denied, Status::Error])),
        maybe(prop::sample::select(vec![Kind::Start, Kind::End, Kind::Event])),
        maybe(-500i64..2500),
        maybe(-500i64..2500),
        maybe(0u64..2500),
        prop::sample::select(vec![1usize, 7, 100, 1000]),
    );
    (words, ids, rest).prop_map(|(words, ids, (status, kind, from, to, before, limit))| Query {
        words: words.into_iter().map(str::to_owned).collect(),
        actor: ids.0,
        method: ids.1.map(str::to_owned),
        session_id: ids.2,
        workspace_id: ids.3,
        correlation_id: ids.4,
        status,
        kind,
        from: from.map(at),
        to: to.map(at),
        before,
        limit,
        ..Query::default()
    })
}

#[test]
fn every_search_finds_what_reading_everything_finds() {
    let world = World::filled(2000);
    let mut ledger = world.ledger();
    assert_eq!(ledger.catch_up().unwrap().added, 2000);
    let records: Vec<_> = world.records().into_iter().map(|record| (parts(&record), record)).collect();
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 600, ..ProptestConfig::default() });
    let found_some = Cell::new(0);
    let ledger = RefCell::new(ledger);
    runner
        .run(&query(), |query| {
            let expected: Vec<u64> = records
                .iter()
                .rev()
                .filter(|(parts, record)| wanted(&query, record, parts))
                .map(|(_, record)| record.number)
                .collect();
            let hits = ledger.borrow_mut().search(&query).unwrap();
            let numbers: Vec<u64> = hits.records.iter().map(|record| record.number).collect();
            prop_assert_eq!(&numbers[..], &expected[..expected.len().min(query.limit)]);
            prop_assert_eq!(hits.more, expected.len() > query.limit);
            found_some.set(found_some.get() + usize::from(!expected.is_empty()));
            Ok(())
        })
        .unwrap();
    assert!(found_some.get() > 100, "{}", found_some.get());
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let world = World::filled(300);
    let mut ledger = world.ledger();
    ledger.catch_up().unwrap();
    let mut query = Query { limit: 37, ..word("cargo") };
    let mut seen = Vec::new();
    loop {
        let hits = ledger.search(&query).unwrap();
        seen.extend(hits.records.iter().map(|record| record.number));
        query.before = hits.records.last().map(|record| record.number);
        if !hits.more {
            break;
        }
    }
    let mut expected = found(&mut ledger, &word("cargo"));
    assert_eq!(seen, expected);
    expected.dedup();
    assert!(expected.len() > 200 && expected.is_sorted_by(|one, other| one > other));
}

#[test]
fn a_ledger_follows_the_log_and_another_one_may_follow_too() {
    let world = World::new();
    let log = world.log();
    let (mut one, mut other) = (world.ledger(), world.ledger());
    assert_eq!(one.catch_up().unwrap().added, 0);
    for round in 0..10 {
        fill(&log, round * 100..(round + 1) * 100);
        let first = if round % 2 == 0 { &mut one } else { &mut other };
        assert_eq!(first.catch_up().unwrap().added, 100);
        let second = if round % 2 == 0 { &mut other } else { &mut one };
        assert_eq!(second.catch_up().unwrap().added, 0);
        assert_eq!(found(second, &word("needle")).len() as u64, (round + 1) * 2);
    }
    assert!(one.check().unwrap());
}

#[test]
fn many_processes_of_one_ledger_do_not_disturb_each_other() {
    let world = World::filled(3000);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut ledger = world.ledger();
                ledger.catch_up().unwrap();
                assert_eq!(found(&mut ledger, &word("needle")).len(), 60);
            });
        }
    });
    assert!(world.ledger().check().unwrap());
}

#[test]
fn a_chain_is_found_from_any_of_its_links() {
    let world = World::new();
    let log = world.log();
    let link = |id: &str, parent: Option<&str>| Entry {
        correlation_id: Some(id.to_owned()),
        parent_correlation_id: parent.map(str::to_owned),
        ..Entry::start(at(0), "agent.run")
    };
    fill(&log, 0..20);
    for (id, parent) in [
        ("root", None),
        ("left", Some("root")),
        ("right", Some("root")),
        ("leaf", Some("left")),
        ("alone", None),
    ] {
        log.append_now(&link(id, parent)).unwrap();
        log.append_now(&link(id, parent)).unwrap();
    }
    // A circle.
    log.append_now(&link("a", Some("c"))).unwrap();
    log.append_now(&link("b", Some("a"))).unwrap();
    log.append_now(&link("c", Some("b"))).unwrap();
    let mut ledger = world.ledger();
    ledger.catch_up().unwrap();
    for id in ["root", "left", "right", "leaf"] {
        let (records, whole) = ledger.chain(id).unwrap();
        let numbers: Vec<u64> = records.iter().map(|record| record.number).collect();
        assert_eq!((numbers, whole), ((21..=28).collect(), true), "from {id}");
    }
    assert_eq!(ledger.chain("alone").unwrap().0.len(), 2);
    assert_eq!(ledger.chain("b").unwrap().0.len(), 3);
    assert_eq!(ledger.chain("nobody").unwrap().0.len(), 0);
}

#[test]
fn a_chain_without_an_end_is_cut_and_says_so() {
    let world = World::new();
    let log = world.log();
    for n in 0..MAX_CHAIN + 20 {
        let entry = Entry {
            correlation_id: Some(format!("c{}", n + 1)),
            parent_correlation_id: Some(format!("c{n}")),
            ..Entry::start(at(0), "agent.run")
        };
        log.append_now(&entry).unwrap();
    }
    let mut ledger = world.ledger();
    ledger.catch_up().unwrap();
    let (records, whole) = ledger.chain("c1").unwrap();
    assert!(!whole && records.len() <= MAX_CHAIN, "{}", records.len());
}

#[test]
fn what_was_purged_is_not_found_any_more() {
    let world = World::new();
    let days = |days: i64| at(days * 86_400);
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    for day in 0..=60 {
        log.append_now(&Entry { kind: Kind::Event, at: days(day), ..entry(50) }).unwrap();
    }
    let mut ledger = world.ledger();
    ledger.catch_up().unwrap();
    assert_eq!(found(&mut ledger, &word("needle")).len(), 61);
    let by = RecordedActor { kind: "user".to_owned(), id: "user_local".to_owned() };
    let order = PurgeOrder { by, reason: "monthly".to_owned(), retention_days: 30, now: days(60) };
    log.purge(&order).unwrap();
    // Also before it has heard of the purge.
    assert_eq!(found(&mut ledger, &word("needle")).len(), 31);
    ledger.catch_up().unwrap();
    assert_eq!(found(&mut ledger, &word("needle")).len(), 31);
    assert_eq!(found(&mut ledger, &word("monthly")), [62]);
    assert_eq!(ledger.rebuild().unwrap().added, 32);
    assert_eq!(found(&mut ledger, &word("needle")).len(), 31);
}

#[test]
fn hostile_words_are_words() {
    let world = World::filled(200);
    let mut ledger = world.ledger();
    ledger.catch_up().unwrap();
    for text in [
        "\"",
        "needle\" OR \"hay",
        "*",
        "NEAR(needle hay)",
        "text:needle",
        "-needle",
        "§",
        "'; DROP TABLE records;--",
        "\0",
    ] {
        let hits = ledger.search(&word(text)).unwrap();
        assert!(hits.records.len() <= 200, "{text}");
    }
    for text in ["", "*", "§", "!?"] {
        assert_eq!(found(&mut ledger, &word(text)).len(), 0, "{text}");
    }
    assert_eq!(found(&mut ledger, &word("NEEDLE*")).len(), 4);
    assert_eq!(found(&mut ledger, &word("drop")).len(), 0);
    let far = Query { from: Some(Moment::from_unix_millis(i64::MAX)), ..Query::default() };
    assert_eq!(found(&mut ledger, &far).len(), 0);
    assert_eq!(found(&mut ledger, &Query { before: Some(0), ..Query::default() }).len(), 0);
    assert_eq!(found(&mut ledger, &Query { limit: 0, ..Query::default() }), [200]);
}
