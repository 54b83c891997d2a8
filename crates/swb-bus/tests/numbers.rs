//! Sequence numbers across the end of a process. A crash is a bus that is dropped without being closed.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use support::publish;
use swb_bus::topics::{Delivery, Retention, Topics};
use swb_proto::event::{Gap, GapReason};

fn open(path: &Path) -> Arc<Topics> {
    Topics::with_sequence_file(Retention::default(), path, SystemTime::now).unwrap()
}

fn deliveries(topics: &Arc<Topics>, after: u64) -> Vec<Delivery> {
    let mut subscription = topics.subscribe(Vec::new(), Some(after)).unwrap();
    std::iter::from_fn(|| subscription.take_now()).collect()
}

fn sequence(delivery: &Delivery) -> (u64, u64) {
    let envelope = delivery.to_envelope(SystemTime::now());
    (envelope.seq, envelope.sequence.unwrap())
}

#[tokio::test]
async fn a_clean_stop_skips_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seq");
    let first = open(&path);
    for n in 1..=3 {
        publish(&first, "a.b", n);
    }
    publish(&first, "a.c", 1);
    first.close();
    drop(first);

    let second = open(&path);
    assert_eq!(second.head(), 4);
    assert!(deliveries(&second, 4).is_empty(), "nothing happened in between");
    assert_eq!(publish(&second, "a.b", 4), 5);
    assert_eq!(publish(&second, "a.c", 2), 6);
    assert_eq!(deliveries(&second, 4).iter().map(sequence).collect::<Vec<_>>(), [(5, 4), (6, 2)]);
    match deliveries(&second, 1)[0] {
        Delivery::Gap(gap) => assert_eq!(gap, Gap { from: 2, to: 4, reason: GapReason::Trimmed }),
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_crash_skips_a_range_that_is_announced_as_one_gap() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seq");
    let first = open(&path);
    for n in 1..=10 {
        publish(&first, "a.b", n);
    }
    drop(first);

    let second = open(&path);
    let head = second.head();
    assert!(head >= 10, "no number is used twice: {head}");
    publish(&second, "a.b", 11);
    let found = deliveries(&second, 7);
    assert_eq!(found.len(), 2, "one gap, one event: {found:?}");
    match found[0] {
        Delivery::Gap(gap) => assert_eq!(gap, Gap { from: 8, to: head, reason: GapReason::Crash }),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(found[1].seq(), head + 1);
}

#[tokio::test]
async fn no_number_ever_goes_back_over_many_crashes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seq");
    let (mut last_seq, mut last_b, mut last_c) = (0, 0, 0);
    for round in 0..8_u64 {
        let topics = open(&path);
        let mut live = topics.subscribe(Vec::new(), None).unwrap();
        for n in 0..=round * 3 {
            publish(&topics, if n % 2 == 0 { "a.b" } else { "a.c" }, n);
        }
        while let Some(delivery) = live.take_now() {
            let (seq, sequence) = sequence(&delivery);
            assert!(seq > last_seq, "round {round}");
            last_seq = seq;
            let Delivery::Event(event) = &delivery else { unreachable!() };
            let last = if event.topic() == "a.b" { &mut last_b } else { &mut last_c };
            assert!(sequence > *last, "round {round}, {}", event.topic());
            *last = sequence;
        }
        if round == 4 {
            topics.close();
        }
    }
}

#[tokio::test]
async fn a_crash_after_more_than_one_reserved_block_goes_on_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seq");
    let first = open(&path);
    for n in 0..70_000 {
        publish(&first, "a.b", n);
    }
    assert_eq!(first.reservation_failures(), 0);
    drop(first);
    assert!(open(&path).head() >= 70_000);
}

#[tokio::test]
async fn a_bus_that_published_nothing_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seq");
    for _ in 0..3 {
        assert_eq!(open(&path).head(), 0, "neither closed nor used");
    }
    let topics = open(&path);
    topics.close();
    assert_eq!(open(&path).head(), 0);
}

#[tokio::test]
async fn a_second_close_and_a_subscription_after_it_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let topics = open(&dir.path().join("seq"));
    publish(&topics, "a.b", 1);
    topics.close();
    topics.close();
    let mut late = topics.subscribe(Vec::new(), Some(0)).unwrap();
    assert_eq!(late.next().await.map(|delivery| delivery.seq()), Some(1));
    assert!(late.next().await.is_none());
}
