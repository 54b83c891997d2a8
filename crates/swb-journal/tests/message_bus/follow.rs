//! Following.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use swb_journal::message_bus::{BusOptions, BusPath, FollowEvent, FollowFrom, Follower, MessageBus};

use crate::support::{PATIENCE, World, bodies, draft, foreign, wait_until};

/// A poll interval no test would survive waiting for: only notification can wake a follower in time.
fn watched(world: &World) -> MessageBus {
    world.bus_with(BusOptions { poll_interval: Duration::from_secs(3600), ..BusOptions::default() })
}

fn next(follower: &mut Follower) -> FollowEvent {
    follower.next_event(Some(PATIENCE)).unwrap().expect("an event in time")
}

fn next_body(follower: &mut Follower) -> String {
    match next(follower) {
        FollowEvent::Message(message) => message.body_text().into_owned(),
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn each_start_begins_where_it_says() {
    let world = World::new();
    let bus = watched(&world);
    let posted: Vec<_> =
        (0..4).map(|n| bus.append(&draft(n.to_string())).unwrap().id.into_string()).collect();
    let mut from = [
        FollowFrom::Beginning,
        FollowFrom::Last(2),
        FollowFrom::After(posted[0].clone()),
        FollowFrom::End,
        FollowFrom::Last(0),
        FollowFrom::Last(99),
    ]
    .map(|from| bus.follow(&from).unwrap());
    bus.append(&draft("new")).unwrap();
    let expected: [&[&str]; 6] = [
        &["0", "1", "2", "3", "new"],
        &["2", "3", "new"],
        &["1", "2", "3", "new"],
        &["new"],
        &["new"],
        &["0", "1", "2", "3", "new"],
    ];
    for (follower, expected) in from.iter_mut().zip(expected) {
        let seen: Vec<_> = expected.iter().map(|_| next_body(follower)).collect();
        assert_eq!(seen, expected);
        assert_eq!(follower.poll().unwrap().events, []);
    }
    assert!(bus.follow(&FollowFrom::After("MSG-none".into())).unwrap_err().is_unknown_cursor());
}

#[test]
fn a_blocked_follower_is_woken_by_a_post() {
    let world = World::new();
    let bus = watched(&world);
    bus.append(&draft("first")).unwrap();
    let mut follower = bus.follow(&FollowFrom::End).unwrap();
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let stop = follower.stopper();
        scope.spawn(move || {
            for event in &mut follower {
                said.send(event.unwrap()).unwrap();
            }
        });
        for n in 0..20 {
            bus.append(&draft(n.to_string())).unwrap();
            let FollowEvent::Message(message) = heard.recv_timeout(PATIENCE).unwrap() else { panic!() };
            assert_eq!(message.body_text(), n.to_string());
        }
        stop.stop();
    });
    assert!(heard.recv().is_err(), "the iterator ended");
}

#[test]
fn a_bus_that_does_not_exist_yet_is_waited_for_down_to_its_folders() {
    let world = World::new();
    let path = BusPath::in_root(world.dir.path(), "p", Some("t")).unwrap();
    let bus = MessageBus::new(path, BusOptions::default());
    let mut follower = bus.follow(&FollowFrom::After("MSG-none".into())).unwrap();
    assert_eq!(follower.next_event(Some(Duration::ZERO)).unwrap(), None);
    bus.append(&draft("x")).unwrap();
    assert_eq!(next_body(&mut follower), "x");
    bus.append(&draft("y")).unwrap();
    assert_eq!(next_body(&mut follower), "y");
}

#[test]
fn a_bus_that_comes_to_lie_in_the_other_layout_is_found_there() {
    let world = World::new();
    let open =
        || MessageBus::new(BusPath::in_root(world.dir.path(), "p", None).unwrap(), BusOptions::default());
    let waited_for = open();
    let mut follower = waited_for.follow(&FollowFrom::Beginning).unwrap();
    assert_eq!(follower.next_event(Some(Duration::ZERO)).unwrap(), None);
    std::fs::create_dir_all(world.dir.path().join("runs/p")).unwrap();
    let found = open();
    assert_eq!(found.path().folder(), world.dir.path().join("runs/p"));
    let first = found.append(&draft("x")).unwrap();
    assert_eq!(next_body(&mut follower), "x");
    found.append(&draft("y")).unwrap();
    assert_eq!(next_body(&mut follower), "y");
    let mut resumed = waited_for.follow(&FollowFrom::After(first.id.into_string())).unwrap();
    assert_eq!(next_body(&mut resumed), "y");
}

#[test]
fn an_event_loop_is_woken_and_polls() {
    let world = World::new();
    let bus = watched(&world);
    bus.append(&draft("first")).unwrap();
    let mut follower = bus.follow(&FollowFrom::End).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    follower.set_waker(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(follower.poll().unwrap().events, []);
    let before = woken.load(Ordering::SeqCst);
    bus.append(&draft("second")).unwrap();
    wait_until("the waker is called", || woken.load(Ordering::SeqCst) > before);
    let mut bodies = Vec::new();
    wait_until("the message is polled", || {
        for event in follower.poll().unwrap().events {
            let FollowEvent::Message(message) = event else { panic!("{event:?}") };
            bodies.push(message.body_text().into_owned());
        }
        !bodies.is_empty()
    });
    assert_eq!(bodies, ["second"]);
}

#[test]
fn reading_does_not_wake_followers() {
    let world = World::new();
    let bus = watched(&world);
    let first = bus.append(&draft("first")).unwrap();
    let mut follower = bus.follow(&FollowFrom::End).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    follower.set_waker(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    follower.poll().unwrap();
    let quiet = woken.load(Ordering::SeqCst);
    for _ in 0..50 {
        bus.read_since(first.id.as_str()).unwrap();
    }
    // One change after the reads proves that events are delivered, and that the reads made none before it.
    bus.append(&draft("marker")).unwrap();
    assert_eq!(next_body(&mut follower), "marker");
    assert!(woken.load(Ordering::SeqCst) - quiet <= 4, "{}", woken.load(Ordering::SeqCst) - quiet);
}

#[test]
fn an_edited_file_is_noticed_and_followed_from_the_last_message_shown() {
    let world = World::new();
    let bus = watched(&world);
    for n in 0..3 {
        bus.append(&draft(format!("message {n}"))).unwrap();
    }
    let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
    for n in 0..3 {
        assert_eq!(next_body(&mut follower), format!("message {n}"));
    }
    // An editor writes another file and renames it over the bus.
    let text = String::from_utf8(world.bytes()).unwrap().replace("message 0", "message zero");
    let edited = world.dir.path().join("edited");
    std::fs::write(&edited, text + "\n" + &foreign("hand", "by hand")).unwrap();
    std::fs::rename(&edited, world.file()).unwrap();
    assert_eq!(next(&mut follower), FollowEvent::Rewritten);
    assert_eq!(next_body(&mut follower), "by hand");
    // Truncated in place, the last message shown is gone: everything there is comes again.
    world.write(foreign("a", "fresh start"));
    assert_eq!(next(&mut follower), FollowEvent::Rewritten);
    assert_eq!(next_body(&mut follower), "fresh start");
    bus.append(&draft("and on")).unwrap();
    assert_eq!(next_body(&mut follower), "and on");
}

#[test]
fn a_repair_is_not_mistaken_for_an_edit() {
    let world = World::new();
    let bus = watched(&world);
    for body in ["one", "two\nlines\n"] {
        for torn in [
            "\n",
            "\n--",
            "\n---\n",
            "\n---\nmsg_id: MSG",
            "\n---\nmsg_id: MSG-20261115-075000-153429587-PID13843-0001\n---\nha",
        ] {
            let before = bus.append(&draft(body)).unwrap();
            let mut follower = bus.follow(&FollowFrom::Last(1)).unwrap();
            assert_eq!(next_body(&mut follower), body);
            let mut bytes = world.bytes();
            bytes.extend_from_slice(torn.as_bytes());
            world.write(bytes);
            assert_eq!(follower.poll().unwrap().events, [], "{torn:?}");
            bus.append(&draft("after")).unwrap();
            assert_eq!(next_body(&mut follower), "after", "behind {torn:?}");
            assert_eq!(follower.poll().unwrap().events, []);
            assert_eq!(bodies(&bus.read_since(before.id.as_str()).unwrap()), ["after"]);
            assert_eq!(bus.find(before.id.as_str()).unwrap().unwrap().body_text(), body, "{torn:?}");
        }
    }
}

#[test]
fn a_phantom_last_record_is_shown_once() {
    let world = World::new();
    let bus = watched(&world);
    world.write("---\nmsg_id: a\n---\nx\n\n---\nstatus: ok\n---\nphantom\n");
    let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
    assert_eq!((next_body(&mut follower), next_body(&mut follower)), ("x".to_owned(), "phantom".to_owned()));
    bus.append(&draft("real")).unwrap();
    assert_eq!(next_body(&mut follower), "real");
    assert_eq!(follower.poll().unwrap().events, []);
}

#[test]
fn a_record_in_the_middle_of_being_written_is_not_shown_in_part() {
    let world = World::new();
    let bus = watched(&world);
    bus.append(&draft("first")).unwrap();
    let mut follower = bus.follow(&FollowFrom::End).unwrap();
    // A stranger writes a body of several lines in two steps, under the lock as all writers do.
    let mut stranger = std::fs::OpenOptions::new().append(true).open(world.file()).unwrap();
    stranger.lock().unwrap();
    let record = format!("\n{}", foreign("b", "line one\nline two\n"));
    let (head, tail) = record.split_at(record.len() - "line two\n".len());
    std::io::Write::write_all(&mut stranger, head.as_bytes()).unwrap();
    let polled = follower.poll().unwrap();
    assert_eq!(polled.events, []);
    assert!(polled.recheck.is_some());
    std::io::Write::write_all(&mut stranger, tail.as_bytes()).unwrap();
    stranger.unlock().unwrap();
    assert_eq!(next_body(&mut follower), "line one\nline two");
}

#[test]
fn waiting_for_new_messages_returns_them_or_nothing() {
    let world = World::new();
    let bus = watched(&world);
    let first = bus.append(&draft("first")).unwrap();
    assert!(bus.wait_for_new(first.id.as_str(), Duration::from_millis(5)).unwrap().is_empty());
    assert_eq!(bodies(&bus.wait_for_new("", PATIENCE).unwrap()), ["first"]);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bus.wait_for_new(first.id.as_str(), PATIENCE).unwrap());
        world.bus().append(&draft("second")).unwrap();
        assert_eq!(bodies(&waiting.join().unwrap()), ["second"]);
    });
}
