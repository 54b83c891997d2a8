//! Several processes on one bus: posting, rotating, being killed, and one that follows all along.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::process::Child;
use std::time::Duration;

use proptest::prelude::*;
use swb_journal::message_bus::{BusOptions, BusPath, FollowEvent, FollowFrom, Message, MessageBus};

use crate::support::{PATIENCE, World, acknowledgements, child, draft};

/// What the writer's n-th message says: one line, several, or something that looks like records.
fn body(writer: &str, n: usize) -> String {
    match n % 4 {
        0 | 1 => format!("{writer}/{n}"),
        2 => format!("{writer}/{n}\nmsg_id: no\n---\nstatus: ok\n---\n{}", "long line ".repeat(n % 97)),
        _ => format!("{writer}/{n}\nsecond\n"),
    }
}

fn writer(world: &World, name: &str, count: usize, rotate: u64) -> Child {
    child(
        "processes::child_writer",
        &[
            ("SWB_BUS", world.file().display().to_string()),
            ("SWB_WRITER", name.to_owned()),
            ("SWB_COUNT", count.to_string()),
            ("SWB_ROTATE", rotate.to_string()),
        ],
    )
}

#[test]
#[ignore = "runs as a child of the tests in this file"]
fn child_writer() {
    let var = |name: &str| std::env::var(name).unwrap();
    let rotate = var("SWB_ROTATE").parse().unwrap();
    let options = BusOptions { auto_rotate: (rotate > 0).then_some(rotate), ..BusOptions::default() };
    let bus = MessageBus::new(BusPath::new(var("SWB_BUS")).unwrap(), options);
    let name = var("SWB_WRITER");
    let mut out = std::io::stdout().lock();
    for n in 0..var("SWB_COUNT").parse().unwrap() {
        let id = bus.append(&draft(body(&name, n))).unwrap().id;
        writeln!(out, "ACK {id}").unwrap();
    }
}

/// Checks that a message is one that was posted, and says by whom and as which.
fn recognise(message: &Message) -> (String, usize) {
    let text = message.body_text();
    let first = text.lines().next().unwrap_or("");
    let (writer, n) = first.split_once('/').unwrap_or_else(|| panic!("nobody posted {text:?}"));
    let n = n.parse().unwrap();
    assert_eq!(text, body(writer, n), "altered");
    (writer.to_owned(), n)
}

/// Every message was posted, none twice, each writer's in its order, ids rising.
fn check_order<'a>(messages: impl IntoIterator<Item = &'a Message>) -> HashSet<String> {
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut last_id = String::new();
    let mut seen = HashSet::new();
    for message in messages {
        let (writer, n) = recognise(message);
        let expected = next.entry(writer).or_default();
        assert_eq!(n, *expected, "out of order, lost or repeated");
        *expected += 1;
        assert!(*message.id > *last_id, "{} after {last_id}", message.id);
        last_id = message.id.to_string();
        assert!(seen.insert(message.id.to_string()));
    }
    seen
}

#[test]
fn eight_processes_with_rotation_lose_nothing_and_a_follower_sees_all_in_order() {
    let (processes, each) = (8, 10_000);
    let world = World::new();
    let bus = world.bus();
    let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
    let stop = follower.stopper();
    let (acked, followed) = std::thread::scope(|scope| {
        let watching = scope.spawn(move || {
            let mut messages = Vec::new();
            while messages.len() < processes * each {
                match follower.next_event(Some(PATIENCE)).unwrap() {
                    Some(FollowEvent::Message(message)) => messages.push(*message),
                    Some(other) => panic!("{other:?}"),
                    None => break,
                }
            }
            messages
        });
        let readers: Vec<_> = (0..processes)
            .map(|n| {
                let mut child = writer(&world, &format!("w{n}"), each, 64 << 10);
                scope.spawn(move || {
                    let acked: Vec<_> = acknowledgements(&mut child).collect();
                    assert!(child.wait().unwrap().success());
                    acked
                })
            })
            .collect();
        let acked: Vec<_> = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
        (acked, watching.join().unwrap())
    });
    stop.stop();
    assert_eq!(acked.len(), processes * each);
    assert_eq!(followed.len(), processes * each, "the follower saw all of them");
    let acked: HashSet<_> = acked.into_iter().collect();
    assert_eq!(check_order(&followed), acked);
    assert_eq!(bus.read_all().unwrap(), followed, "a reader afterwards sees the same");
    assert!(world.archives().len() > 100);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn killed_writers_lose_nothing_acknowledged_and_invent_nothing(
        kills in prop::collection::vec(0usize..300, 2..5),
        rotate in prop::sample::select(vec![0u64, 2000, 20_000]),
    ) {
        let world = World::new();
        let bus = world.bus();
        let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
        let acked: HashSet<String> = std::thread::scope(|scope| {
            let readers: Vec<_> = kills
                .iter()
                .enumerate()
                .map(|(n, after)| {
                    let mut child = writer(&world, &format!("w{n}"), 1_000_000, rotate);
                    scope.spawn(move || {
                        let mut lines = acknowledgements(&mut child);
                        let mut acked: Vec<_> = lines.by_ref().take(*after).collect();
                        child.kill().unwrap();
                        acked.extend(lines);
                        child.wait().unwrap();
                        acked
                    })
                })
                .collect();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        });
        // The next writer repairs what the killed ones may have left.
        let last = bus.append(&draft("last/0")).unwrap().id.into_string();
        let messages = bus.read_all().unwrap();
        let seen = check_order(&messages);
        prop_assert!(acked.is_subset(&seen), "lost {:?}", acked.difference(&seen).next());
        // Each killed writer may have one message in the file that it could not report any more.
        prop_assert!(seen.len() <= acked.len() + kills.len() + 1);
        let mut followed = Vec::new();
        while let Some(FollowEvent::Message(message)) = follower.next_event(Some(Duration::from_secs(30))).unwrap() {
            let done = *message.id == *last;
            followed.push(*message);
            if done {
                break;
            }
        }
        prop_assert_eq!(followed, messages);
    }
}

#[test]
fn two_processes_posting_under_one_key_make_one_message() {
    let world = World::new();
    let vars = [("SWB_BUS", world.file().display().to_string())];
    let mut children: Vec<_> = (0..4).map(|_| child("processes::child_with_keys", &vars)).collect();
    let answers: Vec<Vec<String>> =
        children.iter_mut().map(|child| acknowledgements(child).collect()).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert!(answers.iter().all(|ids| ids.len() == 50 && *ids == answers[0]), "all are told the same ids");
    assert_eq!(world.bus().read_all().unwrap().len(), 50);
}

#[test]
#[ignore = "runs as a child of two_processes_posting_under_one_key_make_one_message"]
fn child_with_keys() {
    use swb_journal::message_bus::{Draft, IdempotencyKey};
    let bus =
        MessageBus::new(BusPath::new(std::env::var("SWB_BUS").unwrap()).unwrap(), BusOptions::default());
    for n in 0..50 {
        let key = IdempotencyKey::new(format!("key {n}")).unwrap();
        let posted = bus.append(&Draft { idempotency_key: Some(key), ..draft("x".repeat(2000)) }).unwrap();
        writeln!(std::io::stdout(), "ACK {}", posted.id).unwrap();
    }
}
