//! A ledger that is gone, damaged, of another log or behind a changed log is built again, and finds what the log holds.

use std::fs;

use proptest::prelude::*;
use swb_journal::ledger::{Ledger, LedgerError, Rebuilt};

use crate::support::{World, fill, found, word};

fn prepared(count: u64) -> World {
    let world = World::filled(count);
    world.ledger().catch_up().unwrap();
    world
}

#[test]
fn a_ledger_that_is_gone_is_built_again() {
    let world = prepared(500);
    fs::remove_file(world.file()).unwrap();
    let mut ledger = world.ledger();
    assert_eq!(ledger.catch_up().unwrap().added, 500);
    assert_eq!(found(&mut ledger, &word("needle")).len(), 10);
}

#[test]
fn a_ledger_that_is_removed_while_it_is_used_is_noticed() {
    let world = prepared(500);
    let mut ledger = world.ledger();
    assert_eq!(found(&mut ledger, &word("needle")).len(), 10);
    fs::remove_file(world.file()).unwrap();
    assert_eq!(ledger.catch_up().unwrap().added, 500);
    assert_eq!(found(&mut ledger, &word("needle")).len(), 10);
    assert_eq!(found(&mut world.ledger(), &word("needle")).len(), 10, "it is there for others too");
}

#[test]
fn a_file_that_is_no_ledger_is_replaced() {
    for bytes in [&b""[..], b"not a database", &[0; 10_000], &[0xff; 100]] {
        let world = prepared(200);
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{suffix}", world.file().display()));
        }
        fs::write(world.file(), bytes).unwrap();
        let mut ledger = world.ledger();
        assert_eq!(ledger.catch_up().unwrap().added, 200, "{bytes:?}");
        assert_eq!(found(&mut ledger, &word("needle")).len(), 4);
        assert!(ledger.check().unwrap());
    }
}

#[test]
fn a_ledger_of_another_version_is_emptied() {
    let world = prepared(200);
    let connection = rusqlite::Connection::open(world.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection.execute_batch("DROP TABLE blocks; CREATE TABLE blocks (other TEXT)").unwrap();
    drop(connection);
    let mut ledger = world.ledger();
    assert_eq!(ledger.catch_up().unwrap().added, 200);
    assert_eq!(found(&mut ledger, &word("needle")).len(), 4);
}

#[test]
fn a_ledger_of_another_log_is_built_again() {
    let (one, other) = (prepared(300), prepared(100));
    let mut ledger = Ledger::open(&one.file(), other.reader()).unwrap();
    let caught_up = ledger.catch_up().unwrap();
    assert_eq!((caught_up.rebuilt, caught_up.added, caught_up.number), (Some(Rebuilt::OtherLog), 100, 100));
    assert_eq!(found(&mut ledger, &word("needle")).len(), 2);
}

#[test]
fn a_log_that_was_rolled_back_makes_the_ledger_anew() {
    let world = World::filled(100);
    let copy: Vec<_> = fs::read_dir(world.folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    fill(&world.log(), 100..160);
    world.ledger().catch_up().unwrap();
    // Somebody puts an older copy in its place, and the log goes on from there with other records.
    fs::remove_dir_all(world.folder()).unwrap();
    fs::create_dir(world.folder()).unwrap();
    for (path, bytes) in copy {
        fs::write(path, bytes).unwrap();
    }
    let mut ledger = world.ledger();
    let caught_up = ledger.catch_up().unwrap();
    assert_eq!((caught_up.rebuilt, caught_up.number), (Some(Rebuilt::LogChanged), 100));
    fill(&world.log(), 200..300);
    assert_eq!(ledger.catch_up().unwrap().added, 100);
    let numbers: Vec<u64> = world.records().iter().map(|record| record.number).collect();
    assert_eq!(numbers.len(), 200);
    // And if nobody looked before the log was as long again.
    fs::remove_dir_all(world.folder()).unwrap();
    fill(&world.log(), 0..250);
    assert_eq!(ledger.catch_up().unwrap().rebuilt, Some(Rebuilt::OtherLog));
    assert_eq!(found(&mut ledger, &word("needle")).len(), 5);
}

#[test]
fn an_index_that_names_wrong_places_is_noticed_by_a_search() {
    let world = prepared(300);
    for harm in [
        "UPDATE records SET offset = offset + 1",
        "UPDATE records SET offset = (SELECT offset FROM records WHERE n = 7)",
        "UPDATE records SET segment = 'x'",
        "DROP TABLE records",
        "UPDATE meta SET value = x'00' WHERE name = 'number'",
    ] {
        let connection = rusqlite::Connection::open(world.file()).unwrap();
        connection.execute_batch(harm).unwrap();
        drop(connection);
        let mut ledger = world.ledger();
        ledger.catch_up().unwrap();
        assert_eq!(found(&mut ledger, &word("needle")).len(), 6, "{harm}");
    }
}

#[test]
fn an_index_that_leaves_something_out_is_found_by_a_check_and_mended_by_a_rebuild() {
    let world = prepared(300);
    let connection = rusqlite::Connection::open(world.file()).unwrap();
    connection.execute_batch("DELETE FROM words_data WHERE id > 10").unwrap();
    drop(connection);
    let mut ledger = world.ledger();
    assert!(!ledger.check().unwrap());
    assert_eq!(ledger.rebuild().unwrap().rebuilt, Some(Rebuilt::Asked));
    assert!(ledger.check().unwrap());
    assert_eq!(found(&mut ledger, &word("needle")).len(), 6);
}

#[test]
fn a_damaged_record_is_left_out_and_counted() {
    let world = World::filled(100);
    let path = fs::read_dir(world.folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("needle", "noodle", 1)).unwrap();
    let mut ledger = world.ledger();
    let caught_up = ledger.catch_up().unwrap();
    assert_eq!((caught_up.added, caught_up.damaged), (99, 1));
    assert_eq!(found(&mut ledger, &word("noodle")).len(), 0, "nobody is told what was changed");
    assert_eq!(found(&mut ledger, &word("needle")).len(), 1);
}

#[test]
fn a_ledger_that_must_be_replaced_while_another_uses_it_says_so() {
    let world = prepared(50);
    let mut other = world.ledger();
    other.catch_up().unwrap();
    let lock = fs::File::open(format!("{}.lock", world.file().display())).unwrap();
    lock.lock_shared().unwrap();
    drop(other);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", world.file().display()));
    }
    fs::write(world.file(), vec![7; 5000]).unwrap();
    let error = Ledger::open(&world.file(), world.reader()).unwrap_err();
    assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
    drop(lock);
    assert_eq!(world.ledger().catch_up().unwrap().added, 50);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_to_the_file_nothing_is_found_that_the_log_does_not_hold(
        at in 0usize..400_000,
        junk in prop::collection::vec(any::<u8>(), 1..300),
        cut in any::<bool>(),
    ) {
        let world = prepared(400);
        let connection = rusqlite::Connection::open(world.file()).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        let mut bytes = fs::read(world.file()).unwrap();
        let at = at % bytes.len();
        if cut {
            bytes.truncate(at);
        } else {
            let end = bytes.len().min(at + junk.len());
            bytes[at..end].copy_from_slice(&junk[..end - at]);
        }
        fs::write(world.file(), &bytes).unwrap();
        let mut ledger = world.ledger();
        ledger.catch_up().unwrap();
        let truth: Vec<u64> = world.records().iter().rev()
            .filter(|record| serde_json::to_string(&record.entry).unwrap().contains("needle"))
            .map(|record| record.number)
            .collect();
        let seen = found(&mut ledger, &word("needle"));
        prop_assert!(seen.iter().all(|number| truth.contains(number)), "{seen:?}");
        ledger.rebuild().unwrap();
        prop_assert_eq!(found(&mut ledger, &word("needle")), truth);
    }
}
