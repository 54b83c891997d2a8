//! Appending: numbers, groups, limits, locks, clocks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use swb_journal::audit::{
    AppendError, AuditLog, AuditOptions, Durability, Entry, Kind, OpenError, Status, Ticket, Verdict,
};

use crate::support::{World, at, end, event, small, start, synced};

#[test]
fn a_command_is_recorded_with_its_start_and_its_end() {
    let world = World::new();
    let log = world.open();
    let mut first = start(1);
    first.args_hash = Some(log.hash_arguments(br#"{"password":"hunter2"}"#));
    first.redacted = vec!["assignment".to_owned()];
    let of = log.append_now(&first).unwrap().number;
    log.append_now(&end(of, &first)).unwrap();
    let records = world.records();
    assert_eq!(records[0].entry, first);
    let last = &records[1].entry;
    assert_eq!((last.kind, last.of, last.status), (Kind::End, Some(1), Some(Status::Ok)));
    assert_eq!((&last.actor, &last.session_id), (&first.actor, &first.session_id));
    assert_eq!(records[1].prev, records[0].hash);
    assert_eq!(log.head().number, 2);
    assert_eq!(Some(log.head()), world.reader().head().unwrap());
    let text = std::fs::read_to_string(&world.segments()[0]).unwrap();
    assert!(!text.contains("hunter2"), "arguments leave only their keyed hash");
}

#[test]
fn many_threads_get_numbers_without_gaps_and_each_finds_its_own_record() {
    for durability in [Durability::Written, Durability::Synced] {
        let world = World::new();
        let options = AuditOptions { durability, ..small(64 << 10) };
        let log = Arc::new(world.open_with(options).0);
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let log = Arc::clone(&log);
                std::thread::spawn(move || {
                    let append = |n| {
                        let entry = Entry { command_id: Some(format!("{thread}/{n}")), ..event(n) };
                        // With a ticket and without, side by side.
                        let receipt = match thread % 2 {
                            0 => log.append_now(&entry),
                            _ => log.append(&entry).and_then(Ticket::wait),
                        };
                        (receipt.unwrap().number, entry.command_id.unwrap())
                    };
                    (0..100).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut told: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        told.sort();
        let found: Vec<_> = world
            .records()
            .into_iter()
            .map(|record| (record.number, record.entry.command_id.unwrap()))
            .collect();
        assert_eq!(found, told);
        assert_eq!(found.last().unwrap().0, 800);
        assert!(world.segments().len() > 3);
        assert_eq!(world.verify(&[log.head()]).verdict, Verdict::Anchored);
    }
}

#[test]
fn a_log_that_is_closed_takes_nothing_more() {
    for durability in [Durability::Written, Durability::Synced] {
        let world = World::new();
        let log = world.open_with(AuditOptions { durability, ..small(64 << 10) }).0;
        log.append_now(&event(1)).unwrap();
        log.close().unwrap();
        assert!(matches!(log.append_now(&event(2)), Err(AppendError::Closed)));
        assert!(matches!(log.append(&event(2)).map(drop), Err(AppendError::Closed)));
        assert_eq!(world.records().len(), 1);
    }
}

#[test]
fn entries_that_are_handed_in_one_after_another_are_written_in_that_order() {
    let world = World::new();
    let log = world.open_with(synced()).0;
    let tickets: Vec<_> = (1..=500).map(|n| log.append(&event(n)).unwrap()).collect();
    let numbers: Vec<_> = tickets.into_iter().map(|ticket| ticket.wait().unwrap().number).collect();
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
    let seqs: Vec<_> = world.records().iter().map(|record| record.entry.event_seq.unwrap()).collect();
    assert!(seqs.is_sorted());
}

#[test]
fn a_log_that_is_dropped_has_written_what_waited() {
    let world = World::new();
    let log = world.open_with(synced()).0;
    let tickets: Vec<_> = (1..=200).map(|n| log.append(&event(n)).unwrap()).collect();
    drop(log);
    assert_eq!(world.records().len(), 200);
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let world = World::new();
    let log = world.open();
    log.append_now(&event(1)).unwrap();
    let second = AuditLog::open(&world.folder(), AuditOptions::default(), at(0));
    assert!(matches!(second, Err(OpenError::Busy { .. })), "{second:?}");
    assert_eq!(world.records().len(), 1);
    drop(log);
    assert_eq!(world.open().head().number, 1);
}

#[test]
fn a_clock_that_is_set_back_changes_nothing_about_the_order() {
    let world = World::new();
    let log = world.open();
    for (n, seconds) in [(1, 100), (2, -1_000_000), (3, 50), (4, -1_763_202_276)] {
        log.append_now(&Entry { at: at(seconds), ..event(n) }).unwrap();
    }
    let records = world.records();
    assert_eq!(records.iter().map(|record| record.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(records[1].entry.at, at(-1_000_000));
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
}

#[test]
fn segments_follow_each_other_by_size_and_by_age() {
    let world = World::new();
    let options = AuditOptions { segment_age: Duration::from_secs(3600), ..small(1 << 20) };
    let log = world.open_with(options).0;
    log.append_now(&Entry { at: at(10), ..event(1) }).unwrap();
    log.append_now(&Entry { at: at(3599), ..event(2) }).unwrap();
    assert_eq!(world.segments().len(), 1);
    log.append_now(&Entry { at: at(3600), ..event(3) }).unwrap();
    assert_eq!(world.segments().len(), 2);
    let big = Entry { payload: Some(json!("x".repeat(900_000)).into()), ..event(4) };
    log.append_now(&big).unwrap();
    log.append_now(&big).unwrap();
    assert_eq!(world.segments().len(), 3);
    assert_eq!(world.records().len(), 5);
    assert_eq!(world.verify(&[log.head()]).verdict, Verdict::Anchored);
}

#[test]
fn an_entry_that_is_too_long_is_refused_and_changes_nothing() {
    let world = World::new();
    let log = world.open();
    let long = Entry { payload: Some(json!("x".repeat(5 << 20)).into()), ..event(1) };
    assert!(matches!(log.append(&long), Err(AppendError::TooLong { .. })));
    assert_eq!(log.append_now(&event(2)).unwrap().number, 1);
    // Nearly as long as the limit is fine, also where every byte is escaped.
    let nearly = Entry { payload: Some(json!("\u{1}".repeat(600_000)).into()), ..event(3) };
    assert_eq!(log.append_now(&nearly).unwrap().number, 2);
    assert_eq!(world.records()[1].entry, nearly);
}

#[test]
fn commands_that_have_not_ended_are_known_at_the_next_opening() {
    let world = World::new();
    let log = world.open_with(small(2000)).0;
    let starts: Vec<u64> = (1..=30).map(|n| log.append_now(&start(n)).unwrap().number).collect();
    for of in starts.iter().filter(|of| !matches!(of, 2 | 17 | 30)) {
        log.append_now(&end(*of, &start(*of))).unwrap();
    }
    assert!(world.segments().len() > 5);
    drop(log);
    let (log, opened) = world.open_with(small(2000));
    assert_eq!(opened.unfinished, [2, 17, 30]);
    assert_eq!(opened.cut, None);
    for of in opened.unfinished {
        let begun = world.reader().get(of).unwrap().unwrap();
        assert_eq!(begun.entry.correlation_id, Some(format!("cor_{of}")));
        log.append_now(&Entry::end(at(9), of, Status::Interrupted, &begun.entry)).unwrap();
    }
    drop(log);
    assert_eq!(world.open_with(small(2000)).1.unfinished, [] as [u64; 0]);
}

#[test]
fn the_log_is_the_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let log = world.open();
    log.append_now(&event(1)).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.folder()), 0o700);
    for entry in std::fs::read_dir(world.folder()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}
