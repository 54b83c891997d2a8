//! Events that are kept: told before they are seen, and there for those who come after the ring has forgotten them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::value::RawValue;
use support::{globs, publish, within};
use swb_bus::topics::{Delivery, Event, Keeper, Kept, KeptEvents, Retention, Subscription, Topics};
use swb_proto::event::GapReason;
use swb_proto::{EventEnvelope, Meta};

/// Keeps events of `kept.*` in memory, which outlives the topics.
#[derive(Debug, Default)]
struct Memory {
    events: Arc<Mutex<Vec<EventEnvelope>>>,
    batches: AtomicUsize,
    broken: AtomicBool,
    unreadable: AtomicBool,
}

impl Keeper for Memory {
    fn show(&self, topic: &str, payload: Box<RawValue>) -> Box<RawValue> {
        match topic {
            "kept.secret" => RawValue::from_string(r#"{"n":"hidden"}"#.to_owned()).unwrap(),
            _ => payload,
        }
    }

    fn keeps(&self, topic: &str) -> bool {
        topic.starts_with("kept.")
    }

    fn keep(&self, events: &[Arc<Event>]) -> usize {
        if self.broken.load(Ordering::SeqCst) {
            return events.len();
        }
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.events.lock().unwrap().extend(events.iter().map(|event| event.envelope().clone()));
        0
    }

    fn last_kept(&self) -> u64 {
        self.events.lock().unwrap().last().map_or(0, |event| event.seq)
    }

    fn kept_after(&self, seq: u64) -> Option<Box<dyn KeptEvents>> {
        let events = Arc::clone(&self.events);
        (!self.unreadable.load(Ordering::SeqCst))
            .then(|| Box::new(After { events, seq, paused: false }) as Box<dyn KeptEvents>)
    }
}

/// Says every other time that it has to look on.
#[derive(Debug)]
struct After {
    events: Arc<Mutex<Vec<EventEnvelope>>>,
    seq: u64,
    paused: bool,
}

impl KeptEvents for After {
    fn next(&mut self) -> Kept {
        self.paused = !self.paused;
        if self.paused {
            return Kept::KeepLooking;
        }
        let next = self.events.lock().unwrap().iter().find(|event| event.seq > self.seq).cloned();
        next.map_or(Kept::End, |event| {
            self.seq = event.seq;
            Kept::Event(Box::new(event))
        })
    }
}

fn topics(keeper: &Arc<Memory>, events: usize, file: &Path) -> Arc<Topics> {
    let retention = Retention { events, bytes: usize::MAX };
    Topics::kept_by(Arc::clone(keeper) as Arc<dyn Keeper>, retention, file, SystemTime::now).unwrap()
}

/// What comes, in short: `7` for an event, `8-9 trimmed` for a gap.
fn told(subscription: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| subscription.take_now())
        .map(|delivery| match delivery {
            Delivery::Event(event) => event.seq().to_string(),
            Delivery::Gap(gap) => {
                let reason = match gap.reason {
                    GapReason::Trimmed => "trimmed",
                    GapReason::Lagged => "lagged",
                    GapReason::Crash => "crash",
                };
                format!("{}-{} {reason}", gap.from, gap.to)
            }
        })
        .collect()
}

/// Ten events of which 3 and 6 are kept; the ring holds the last three.
fn filled(keeper: &Arc<Memory>, file: &Path) -> Arc<Topics> {
    let topics = topics(keeper, 3, file);
    for n in 1..=10 {
        publish(&topics, if n == 3 || n == 6 { "kept.it" } else { "loose.it" }, n);
    }
    topics
}

#[test]
fn a_cursor_before_the_ring_gets_what_was_kept_and_a_gap_for_each_range_between() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = Arc::default();
    let topics = filled(&keeper, &dir.path().join("seq"));
    let told_after = |after, topics_wanted: &[&str]| {
        told(&mut topics.subscribe(globs(topics_wanted), Some(after)).unwrap())
    };
    assert_eq!(told_after(0, &[]), ["1-2 trimmed", "3", "4-5 trimmed", "6", "7-7 trimmed", "8", "9", "10"]);
    assert_eq!(told_after(2, &[]), ["3", "4-5 trimmed", "6", "7-7 trimmed", "8", "9", "10"]);
    assert_eq!(told_after(6, &[]), ["7-7 trimmed", "8", "9", "10"]);
    assert_eq!(told_after(7, &[]), ["8", "9", "10"]);
    assert_eq!(told_after(0, &["kept.*"]), ["1-2 trimmed", "3", "4-5 trimmed", "6", "7-7 trimmed"]);
    assert_eq!(told_after(0, &["loose.*"]), ["1-7 trimmed", "8", "9", "10"]);
}

#[test]
fn pages_of_kept_events_go_on_where_the_last_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = Arc::default();
    let topics = filled(&keeper, &dir.path().join("seq"));
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let page = topics.read(Vec::new(), Some(after), 2).unwrap();
        if page.events.is_empty() {
            break;
        }
        assert!(page.events.len() <= 2 && page.next > after);
        seen.extend(page.events.iter().map(|event| (event.topic.as_str().to_owned(), event.seq)));
        after = page.next;
    }
    let seqs: Vec<u64> = seen.iter().map(|(_, seq)| *seq).collect();
    assert_eq!(seqs, [2, 3, 5, 6, 7, 8, 9, 10], "a gap has the place it leads up to: {seen:?}");
}

#[test]
fn what_another_process_published_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let (file, keeper) = (dir.path().join("seq"), Arc::default());
    let first = filled(&keeper, &file);
    let payload = keeper.events.lock().unwrap()[0].payload.get().to_owned();
    first.close();
    drop(first);
    let second = topics(&keeper, 100, &file);
    publish(&second, "loose.it", 11);
    let mut all = second.subscribe(Vec::new(), Some(0)).unwrap();
    let first = all.take_now().zip(all.take_now());
    let Some((Delivery::Gap(_), Delivery::Event(event))) = first else { panic!("{first:?}") };
    assert_eq!((event.seq(), event.topic(), event.envelope().payload.get()), (3, "kept.it", &payload[..]));
    assert_eq!(told(&mut all), ["4-5 trimmed", "6", "7-10 trimmed", "11"]);
    // Without a good-bye the numbers that may have been used are skipped, and that is told.
    drop(all);
    drop(second);
    let third = topics(&keeper, 100, &file);
    let head = third.head();
    assert!(head > 11);
    assert_eq!(
        told(&mut third.subscribe(globs(&["kept.*"]), Some(5)).unwrap()),
        ["6".to_owned(), format!("7-{head} crash")]
    );
}

#[test]
fn numbers_of_kept_events_are_not_given_out_again_when_the_file_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (file, keeper) = (dir.path().join("seq"), Arc::default());
    filled(&keeper, &file).close();
    std::fs::remove_file(&file).unwrap();
    let topics = topics(&keeper, 100, &file);
    assert_eq!(publish(&topics, "kept.it", 7), 7, "6 was the last one that is kept");
    let sequences: Vec<_> =
        keeper.events.lock().unwrap().iter().map(|event| event.sequence.unwrap()).collect();
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
}

#[tokio::test]
async fn who_is_too_slow_still_gets_what_was_kept() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = Arc::default();
    let topics = topics(&keeper, 3, &dir.path().join("seq"));
    let mut slow = topics.subscribe(Vec::new(), None).unwrap();
    publish(&topics, "loose.it", 1);
    assert!(matches!(within("the first", slow.next()).await, Some(Delivery::Event(_))));
    for n in 2..=9 {
        publish(&topics, if n == 4 { "kept.it" } else { "loose.it" }, n);
    }
    let mut seen = Vec::new();
    while slow.cursor() < 9 {
        seen.push(within("the next", slow.next()).await.unwrap().seq());
    }
    assert_eq!(seen, [3, 4, 6, 7, 8, 9]);
}

#[test]
fn nothing_is_seen_before_it_is_kept_and_everybody_sees_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let keeper: Arc<Memory> = Arc::default();
    let topics = topics(&keeper, 10, &dir.path().join("seq"));
    let mut live = topics.subscribe(Vec::new(), None).unwrap();
    publish(&topics, "kept.secret", 7);
    let Some(Delivery::Event(event)) = live.take_now() else { panic!() };
    let kept = keeper.events.lock().unwrap()[0].clone();
    assert_eq!(event.envelope(), &kept);
    assert_eq!(kept.payload.get(), r#"{"n":"hidden"}"#);
}

#[test]
fn a_keeper_that_fails_stops_no_event_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let keeper: Arc<Memory> = Arc::default();
    let topics = topics(&keeper, 2, &dir.path().join("seq"));
    publish(&topics, "kept.it", 1);
    keeper.broken.store(true, Ordering::SeqCst);
    for n in 2..=5 {
        publish(&topics, "kept.it", n);
    }
    assert_eq!(topics.keep_failures(), 4);
    let after = |after| told(&mut topics.subscribe(Vec::new(), Some(after)).unwrap());
    assert_eq!(after(0), ["1", "2-3 trimmed", "4", "5"]);
    keeper.unreadable.store(true, Ordering::SeqCst);
    assert_eq!(after(0), ["1-3 trimmed", "4", "5"]);
}

#[test]
fn topics_tell_whether_anybody_listens() {
    let topics = Topics::in_memory(Retention::default());
    let before = topics.audience();
    assert!(!topics.is_wanted("a.b"));
    let some = topics.subscribe(globs(&["a.*"]), None).unwrap();
    assert!(topics.is_wanted("a.b") && !topics.is_wanted("b.c"));
    let between = topics.audience();
    drop(some);
    assert!(!topics.is_wanted("a.b"));
    assert!(before != between && between != topics.audience());
}

#[tokio::test]
async fn who_sleeps_through_what_others_want_has_missed_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let keeper: Arc<Memory> = Arc::default();
    let topics = topics(&keeper, 3, &dir.path().join("seq"));
    let mut rare = topics.subscribe(globs(&["kept.*"]), None).unwrap();
    publish(&topics, "kept.it", 1);
    assert!(matches!(within("the first", rare.next()).await, Some(Delivery::Event(_))));
    // It lies down here, and the ring goes round twice.
    assert!(futures_util::poll!(std::pin::pin!(rare.next())).is_pending());
    for n in 2..=9 {
        publish(&topics, "loose.it", n);
    }
    keeper.unreadable.store(true, Ordering::SeqCst);
    publish(&topics, "kept.it", 10);
    let told = within("the next", rare.next()).await;
    assert!(matches!(&told, Some(Delivery::Event(event)) if event.seq() == 10), "{told:?}");
    assert!(futures_util::poll!(std::pin::pin!(rare.next())).is_pending());
    for n in 11..=19 {
        publish(&topics, "loose.it", n);
    }
    topics.close();
    let told = within("the end", rare.next()).await;
    assert!(told.is_none(), "{told:?}");
}

#[tokio::test]
async fn events_that_come_together_are_kept_together_and_all_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let keeper: Arc<Memory> = Arc::default();
    let topics = topics(&keeper, 100, &dir.path().join("seq"));
    let mut asleep = topics.subscribe(globs(&["kept.*"]), None).unwrap();
    publish(&topics, "loose.it", 1);
    assert!(futures_util::poll!(std::pin::pin!(asleep.next())).is_pending());
    let payload = |n: u64| RawValue::from_string(format!(r#"{{"n":{n}}}"#)).unwrap();
    let payloads = (2..=40).map(payload).collect();
    assert_eq!(topics.publish_all("kept.it", &Meta::default(), None, payloads).unwrap(), 40);
    assert_eq!(publish(&topics, "kept.it", 41), 41);
    for n in 2..=41_u64 {
        let Some(Delivery::Event(event)) = within("the next", asleep.next()).await else { panic!("{n}") };
        let envelope = event.envelope();
        assert_eq!((envelope.seq, envelope.sequence), (n, Some(n - 1)));
        assert_eq!(envelope.payload.get(), payload(n).get());
    }
    assert_eq!(keeper.batches.load(Ordering::SeqCst), 2);
    keeper.broken.store(true, Ordering::SeqCst);
    topics.publish_all("kept.it", &Meta::default(), None, (0..3).map(payload).collect()).unwrap();
    assert_eq!(topics.keep_failures(), 3);
}

#[test]
fn many_events_of_which_one_is_wrong_are_none() {
    let topics = Topics::in_memory(Retention::default());
    let payloads = ["{}", "[]"].map(|json| RawValue::from_string(json.to_owned()).unwrap());
    assert!(topics.publish_all("a.b", &Meta::default(), None, payloads.into()).is_err());
    assert!(topics.publish_all("a.b", &Meta::default(), None, Vec::new()).is_err());
    assert_eq!(topics.head(), 0);
}
