//! Reading: after a number, after an event, the last ones, and on as the log grows.

use proptest::prelude::*;
use swb_journal::audit::{AuditReader, Entry, Kind};

use crate::support::{World, event, small, start};

fn numbers(
    records: impl Iterator<Item = Result<swb_journal::audit::Record, swb_journal::audit::AuditReadError>>,
) -> Vec<u64> {
    records.map(|record| record.unwrap().number).collect()
}

#[test]
fn a_log_that_is_not_there_is_empty() {
    let reader = AuditReader::new("/nowhere/at/all");
    assert_eq!(numbers(reader.records_after(0).unwrap()), [] as [u64; 0]);
    assert_eq!(numbers(reader.events_after(7).unwrap()), [] as [u64; 0]);
    assert!(reader.last(3).unwrap().is_empty());
    assert!(reader.head().unwrap().is_none());
    assert!(reader.oldest().unwrap().is_none());
}

#[test]
fn any_number_is_found_in_any_segment() {
    let world = World::with_records(300, 3000);
    let reader = world.reader();
    assert!(world.segments().len() > 20);
    for after in [0, 1, 7, 8, 150, 298, 299, 300, 301, u64::MAX] {
        let expected: Vec<u64> = (after.saturating_add(1)..=300).collect();
        assert_eq!(numbers(reader.records_after(after).unwrap()), expected);
    }
    assert_eq!(reader.get(123).unwrap().unwrap().entry, event(123));
    assert!(reader.get(0).unwrap().is_none() && reader.get(301).unwrap().is_none());
    assert_eq!(numbers(reader.last(4).unwrap().into_iter().map(Ok)), [297, 298, 299, 300]);
    assert_eq!(reader.last(1000).unwrap().len(), 300);
    assert_eq!(reader.oldest().unwrap(), Some(1));
}

#[test]
fn a_reader_that_came_to_the_end_goes_on_when_there_is_more() {
    let world = World::new();
    let mut records = world.reader().records_after(0).unwrap();
    assert!(records.next().is_none(), "the log is not even there");
    let log = world.open_with(small(1500)).0;
    let mut seen = Vec::new();
    for n in 1..=50 {
        log.append_now(&event(n)).unwrap();
        if n % 7 == 0 {
            seen.extend(numbers(records.by_ref()));
            assert_eq!(seen.last(), Some(&n));
        }
    }
    seen.extend(numbers(records.by_ref()));
    assert_eq!(seen, (1..=50).collect::<Vec<_>>());
    assert!(records.next().is_none());
}

#[test]
fn a_large_segment_is_not_read_to_find_its_last_records() {
    let world = World::with_records(20_000, 64 << 20);
    let reader = world.reader();
    let bytes = std::fs::metadata(&world.segments()[0]).unwrap().len();
    assert!(bytes > 5 << 20);
    let before = bytes_read();
    assert_eq!(reader.get(13_579).unwrap().unwrap().entry, event(13_579));
    assert_eq!(reader.events_after(199_990).unwrap().count(), 1);
    assert_eq!(reader.last(3).unwrap().len(), 3);
    let read = bytes_read() - before;
    assert!(read < bytes / 2, "{read} of {bytes} bytes were read for four look-ups");
}

/// What this process has read so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn events_are_replayed_after_any_place(
        gaps in prop::collection::vec((1u64..5, any::<bool>()), 1..120),
        segment in 800u64..6000,
        after in 0u64..500,
    ) {
        let world = World::new();
        let log = world.open_with(small(segment)).0;
        let (mut seq, mut expected) = (0, Vec::new());
        for (gap, is_event) in gaps {
            seq += gap;
            if is_event {
                log.append_now(&Entry { event_seq: Some(seq), ..event(1) }).unwrap();
                if seq > after {
                    expected.push(seq);
                }
            } else {
                log.append_now(&start(seq)).unwrap();
            }
        }
        let events = world.reader().events_after(after).unwrap().map(Result::unwrap);
        let seen: Vec<u64> = events
            .inspect(|record| assert_eq!(record.entry.kind, Kind::Event))
            .map(|record| record.entry.event_seq.unwrap())
            .collect();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn a_follower_sees_what_is_written_and_can_be_ended() {
    let world = World::new();
    let mut follower = world.reader().follow(0).unwrap();
    let ending = follower.ending();
    std::thread::scope(|scope| {
        let seen = scope.spawn(move || {
            let mut seen = Vec::new();
            while let Some(record) = follower.next_record().unwrap() {
                seen.push(record.number);
                if record.number == 40 {
                    ending.end();
                }
            }
            seen
        });
        // The folder is made only now, and several segments follow each other.
        let log = world.open_with(small(2000)).0;
        for n in 1..=40 {
            log.append_now(&event(n)).unwrap();
        }
        assert_eq!(seen.join().unwrap(), (1..=40).collect::<Vec<_>>());
    });
}
