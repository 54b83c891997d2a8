//! Events: one order for everything, cursors that miss nothing, slow readers that hurt nobody.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::{event_seq, globs, publish, within};
use swb_bus::topics::{Delivery, PublishError, Retention, SubscribeError, Subscription, Topics};
use swb_proto::Meta;
use swb_proto::event::{Gap, GapReason};

fn keeping(events: usize) -> Arc<Topics> {
    Topics::in_memory(Retention { events, bytes: usize::MAX })
}

/// Everything that is there now.
fn drain(subscription: &mut Subscription) -> Vec<Delivery> {
    std::iter::from_fn(|| subscription.take_now()).collect()
}

fn seqs(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(event_seq).collect()
}

#[track_caller]
fn gap(delivery: &Delivery) -> Gap {
    match delivery {
        Delivery::Gap(gap) => *gap,
        Delivery::Event(event) => panic!("an event where a gap was expected: {}", event.seq()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_concurrent_publishes_have_no_hole_and_no_inversion() {
    let topics = keeping(100_000);
    let mut live: Vec<Subscription> = (0..3).map(|_| topics.subscribe(Vec::new(), None).unwrap()).collect();
    let publishers: Vec<_> = (0..50)
        .map(|task| {
            let topics = Arc::clone(&topics);
            tokio::spawn(async move {
                for n in 0..200 {
                    publish(&topics, &format!("topic.t{}", (task + n) % 10), n);
                    if n % 16 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for subscription in &mut live {
        let mut by_topic: HashMap<String, u64> = HashMap::new();
        let mut last_id = String::new();
        for expected in 1..=10_000 {
            let delivery = within("the next event", subscription.next()).await.unwrap();
            assert_eq!(event_seq(&delivery), expected);
            let Delivery::Event(event) = delivery else { unreachable!() };
            let sequence = by_topic.entry(event.topic().to_owned()).or_default();
            *sequence += 1;
            assert_eq!(event.envelope().sequence, Some(*sequence), "gap-free within {}", event.topic());
            assert!(event.envelope().id.as_str() > last_id.as_str(), "ids only grow");
            last_id = event.envelope().id.as_str().to_owned();
        }
        assert_eq!(by_topic.len(), 10);
        assert!(by_topic.values().all(|last| *last == 1000), "ten independent topics: {by_topic:?}");
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
    assert_eq!(topics.head(), 10_000);
}

#[tokio::test]
async fn an_event_that_nobody_subscribes_to_still_counts() {
    let topics = keeping(10);
    for n in 1..=5 {
        assert_eq!(publish(&topics, "a.b", n), n);
    }
    let mut late = topics.subscribe(Vec::new(), None).unwrap();
    assert_eq!(publish(&topics, "a.b", 6), 6);
    assert_eq!(event_seq(&late.next().await.unwrap()), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_replays_and_goes_live_without_gap_or_duplicate() {
    const LAST: u64 = 20_000;
    let topics = keeping(100_000);
    for n in 1..=100 {
        publish(&topics, "a.b", n);
    }
    let publisher = tokio::spawn({
        let topics = Arc::clone(&topics);
        async move {
            for n in 101..=LAST {
                publish(&topics, if n % 3 == 0 { "a.c" } else { "a.b" }, n);
                if n % 64 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    let mut readers = Vec::new();
    // Subscribers come in while events stream: each somewhere in the past, each must see every event after its cursor.
    for reader in 0..40_u64 {
        tokio::task::yield_now().await;
        let after = topics.head() * reader / 40;
        let mut subscription = topics.subscribe(Vec::new(), Some(after)).unwrap();
        readers.push(tokio::spawn(async move {
            for expected in after + 1..=LAST {
                assert_eq!(event_seq(&subscription.next().await.unwrap()), expected);
                assert_eq!(subscription.cursor(), expected);
            }
        }));
    }
    for reader in readers {
        within("a reader", reader).await.unwrap();
    }
    publisher.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_leaves_and_comes_back_with_its_cursor_misses_nothing() {
    let topics = keeping(100_000);
    let publisher = tokio::spawn({
        let topics = Arc::clone(&topics);
        async move {
            for n in 0..10_000 {
                publish(&topics, if n % 7 == 0 { "wanted.x" } else { "other.x" }, n);
                if n % 32 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    let mut cursor = 0;
    let mut seen = Vec::new();
    while seen.len() < 1429 {
        let mut subscription = topics.subscribe(globs(&["wanted.*"]), Some(cursor)).unwrap();
        for _ in 0..(seen.len() % 13 + 1).min(1429 - seen.len()) {
            let delivery = within("an event", subscription.next()).await.unwrap();
            let Delivery::Event(event) = &delivery else { panic!("{delivery:?}") };
            seen.push(event.envelope().sequence.unwrap());
        }
        cursor = subscription.cursor();
    }
    assert_eq!(seen, (1..=1429).collect::<Vec<_>>());
    publisher.await.unwrap();
}

#[tokio::test]
async fn a_trimmed_cursor_gets_exactly_one_gap_and_then_the_rest() {
    let topics = keeping(10);
    for n in 1..=100 {
        publish(&topics, "a.b", n);
    }
    let mut subscription = topics.subscribe(Vec::new(), Some(5)).unwrap();
    let deliveries = drain(&mut subscription);
    assert_eq!(gap(&deliveries[0]), Gap { from: 6, to: 90, reason: GapReason::Trimmed });
    assert_eq!(deliveries[0].seq(), 90, "the cursor goes on behind the gap");
    assert_eq!(seqs(&deliveries[1..]), (91..=100).collect::<Vec<_>>());
    publish(&topics, "a.b", 101);
    assert_eq!(seqs(&drain(&mut subscription)), [101]);
    // Whoever stands at the edge misses nothing.
    assert_eq!(seqs(&drain(&mut topics.subscribe(Vec::new(), Some(91)).unwrap()))[0], 92);
}

#[tokio::test]
async fn retention_by_bytes_keeps_at_least_the_newest() {
    let topics = Topics::in_memory(Retention { events: 1000, bytes: 100 });
    let large = serde_json::json!({ "x": "y".repeat(10_000) });
    publish(&topics, "a.b", 1);
    topics.publish("a.b", &Meta::default(), None, &large).unwrap();
    assert_eq!((topics.oldest(), topics.head()), (2, 2));
    let deliveries = drain(&mut topics.subscribe(Vec::new(), Some(0)).unwrap());
    assert_eq!(gap(&deliveries[0]), Gap { from: 1, to: 1, reason: GapReason::Trimmed });
    assert_eq!(event_seq(&deliveries[1]), 2);
}

#[tokio::test]
async fn a_slow_subscriber_is_told_that_it_lagged_and_delays_nobody() {
    let topics = keeping(100);
    let mut slow = topics.subscribe(Vec::new(), None).unwrap();
    let mut never_polled = topics.subscribe(Vec::new(), None).unwrap();
    let mut quick = topics.subscribe(Vec::new(), None).unwrap();
    publish(&topics, "a.b", 1);
    assert_eq!(event_seq(&slow.next().await.unwrap()), 1);
    assert_eq!(event_seq(&quick.next().await.unwrap()), 1);
    for n in 2..=1000 {
        publish(&topics, "a.b", n);
        assert_eq!(event_seq(&quick.next().await.unwrap()), n, "others get everything");
    }
    assert_eq!(topics.oldest(), 901, "what is kept does not depend on readers");
    for (reader, from) in [(&mut slow, 2), (&mut never_polled, 1)] {
        let deliveries = drain(reader);
        assert_eq!(gap(&deliveries[0]), Gap { from, to: 900, reason: GapReason::Lagged });
        assert_eq!(seqs(&deliveries[1..]), (901..=1000).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn globs_choose_topics_and_the_order_stays() {
    let topics = keeping(1000);
    let mut agent = topics.subscribe(globs(&["agent.*"]), None).unwrap();
    let mut failed = topics.subscribe(globs(&["*.failed", "nothing"]), None).unwrap();
    let mut all = topics.subscribe(globs(&["x.y", "*"]), None).unwrap();
    let names =
        ["agent.run.started", "agents.other", "agent.run.failed", "share.failed", "agent.run.started"];
    for (n, name) in names.iter().enumerate() {
        publish(&topics, name, n as u64);
    }
    assert_eq!(seqs(&drain(&mut agent)), [1, 3, 5]);
    assert_eq!(seqs(&drain(&mut failed)), [3, 4]);
    assert_eq!(seqs(&drain(&mut all)), [1, 2, 3, 4, 5]);
    assert_eq!((agent.cursor(), failed.cursor()), (5, 5), "the cursor moves past what was not wanted");
}

#[tokio::test]
async fn a_sleeping_subscriber_is_woken_only_by_what_it_wants() {
    let topics = keeping(100_000);
    let mut wanted = topics.subscribe(globs(&["wanted.*"]), None).unwrap();
    let reader = tokio::spawn(async move { wanted.next().await });
    tokio::task::yield_now().await;
    // More than one look at the ring covers.
    for n in 0..10_000 {
        publish(&topics, "noise.x", n);
    }
    tokio::task::yield_now().await;
    assert!(!reader.is_finished());
    let seq = publish(&topics, "wanted.x", 1);
    assert_eq!(event_seq(&within("the wanted event", reader).await.unwrap().unwrap()), seq);
}

#[tokio::test]
async fn a_cursor_from_the_future_is_refused() {
    let topics = keeping(10);
    publish(&topics, "a.b", 1);
    let error = topics.subscribe(Vec::new(), Some(2)).unwrap_err();
    assert_eq!(error, SubscribeError::CursorAhead { after: 2, head: 1 });
    assert!(topics.subscribe(Vec::new(), Some(1)).is_ok());
    assert!(topics.subscribe(Vec::new(), Some(u64::MAX)).is_err());
    assert_eq!(topics.subscriptions(), 0, "dropped and refused ones leave nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coming_and_going_during_the_fan_out_disturbs_nobody() {
    let topics = keeping(100_000);
    let mut steady = topics.subscribe(Vec::new(), None).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let comers: Vec<_> = (0..4)
        .map(|_| {
            let (topics, done) = (Arc::clone(&topics), Arc::clone(&done));
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let mut brief = topics.subscribe(globs(&["a.*"]), None).unwrap();
                    // Sleeps in the ring, and goes away asleep.
                    let _ = tokio::time::timeout(Duration::from_micros(50), brief.next()).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let publisher = tokio::spawn({
        let topics = Arc::clone(&topics);
        async move {
            for n in 0..5000 {
                publish(&topics, "a.b", n);
                if n % 8 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    for expected in 1..=5000 {
        assert_eq!(event_seq(&within("an event", steady.next()).await.unwrap()), expected);
    }
    publisher.await.unwrap();
    done.store(true, Ordering::SeqCst);
    for comer in comers {
        within("a passer-by", comer).await.unwrap();
    }
    drop(steady);
    assert_eq!(topics.subscriptions(), 0);
}

#[tokio::test]
async fn a_clock_that_jumps_back_does_not_reorder_ids() {
    static NOW: AtomicU64 = AtomicU64::new(1_800_000_000_000);
    fn clock() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(NOW.load(Ordering::SeqCst))
    }
    let dir = tempfile::tempdir().unwrap();
    let topics = Topics::with_sequence_file(Retention::default(), &dir.path().join("seq"), clock).unwrap();
    let mut events = topics.subscribe(Vec::new(), None).unwrap();
    for jump in [0_i64, 1, -3_600_000, 5, -1, -900_000_000_000, 3] {
        NOW.fetch_add_signed(jump);
        publish(&topics, "a.b", 1);
    }
    let ids: Vec<String> = drain(&mut events)
        .iter()
        .map(|delivery| delivery.to_envelope(clock()).id.as_str().to_owned())
        .collect();
    assert_eq!(ids.len(), 7);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
}

trait AddSigned {
    fn fetch_add_signed(&self, by: i64);
}
impl AddSigned for AtomicU64 {
    fn fetch_add_signed(&self, by: i64) {
        self.store(self.load(Ordering::SeqCst).saturating_add_signed(by), Ordering::SeqCst);
    }
}

#[tokio::test]
async fn too_many_topics_are_an_error_and_the_known_ones_go_on() {
    let topics = keeping(10_000);
    for n in 0..1024 {
        publish(&topics, &format!("topic.t{n}"), 1);
    }
    let refused = topics.publish("topic.onemore", &Meta::default(), None, &serde_json::json!({}));
    assert!(matches!(refused, Err(PublishError::TooManyTopics(1024))), "{refused:?}");
    assert_eq!(publish(&topics, "topic.t5", 2), 1025, "a refused event takes no number");
}

#[tokio::test]
async fn what_is_not_an_event_is_refused_and_takes_no_number() {
    let topics = keeping(10);
    let scope = Meta::default();
    for bad in ["", "A.b", "a b", "a..b", "bus.gap"] {
        assert!(topics.publish(bad, &scope, None, &serde_json::json!({})).is_err(), "{bad:?}");
    }
    for bad in [serde_json::json!([]), serde_json::json!(1), serde_json::json!("x"), serde_json::json!(null)]
    {
        let refused = topics.publish("a.b", &scope, None, &bad);
        assert!(matches!(refused, Err(PublishError::Payload)), "{bad}");
    }
    assert_eq!(topics.head(), 0);
}

#[tokio::test]
async fn a_closed_bus_takes_no_events_and_ends_every_stream_after_the_last() {
    let topics = keeping(10);
    let mut behind = topics.subscribe(Vec::new(), None).unwrap();
    let mut asleep = topics.subscribe(Vec::new(), None).unwrap();
    publish(&topics, "a.b", 1);
    assert!(asleep.next().await.is_some());
    let sleeper = tokio::spawn(async move { asleep.next().await.is_none() });
    tokio::task::yield_now().await;
    topics.close();
    let refused = topics.publish("a.b", &Meta::default(), None, &serde_json::json!({}));
    assert!(matches!(refused, Err(PublishError::Closed)), "{refused:?}");
    assert!(within("the sleeper wakes", sleeper).await.unwrap(), "the end, not an event");
    assert_eq!(event_seq(&behind.next().await.unwrap()), 1);
    assert!(behind.next().await.is_none() && behind.next().await.is_none());
}

#[tokio::test]
async fn pages_walk_over_everything_once() {
    let topics = keeping(50);
    for n in 1..=100 {
        publish(&topics, if n % 2 == 0 { "even.x" } else { "odd.x" }, n);
    }
    let first = topics.read(Vec::new(), None, 10).unwrap();
    assert_eq!(
        (first.events[0].seq, first.next, first.head),
        (51, 60, 100),
        "from the oldest, without a gap"
    );
    let (mut after, mut seen) = (Some(first.next), 10);
    loop {
        let page = topics.read(Vec::new(), after, 10).unwrap();
        seen += page.events.len();
        after = Some(page.next);
        if page.next == page.head {
            break;
        }
    }
    assert_eq!(seen, 50);
    let even = topics.read(globs(&["even.*"]), Some(0), 100).unwrap();
    assert_eq!(even.events[0].topic.as_str(), "bus.gap");
    assert_eq!(even.events.len(), 1 + 25);
    assert_eq!(even.next, 100);
}
