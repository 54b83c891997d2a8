//! A writer of another make on the same file, at the same time: processes that append exactly as the incumbent does.
//!
//! It opens the file by name, takes its id *before* the lock, polls the lock, judges by the size alone whether a separator
//! is needed, and writes separator and record with two calls. Ours repair, rotate and read beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::process::Child;
use std::time::Duration;

use swb_journal::message_bus::{BusOptions, BusPath, FollowEvent, FollowFrom, Message, MessageBus};

use crate::support::{PATIENCE, World, acknowledgements, child, draft, foreign, incumbent_reads};

const EACH: usize = 400;

fn writers(world: &World, test: &str, name: &str, rotate: u64) -> Vec<Child> {
    let one = |n: usize| {
        let vars = [
            ("SWB_BUS", world.file().display().to_string()),
            ("SWB_WRITER", format!("{name}{n}")),
            ("SWB_ROTATE", rotate.to_string()),
        ];
        child(test, &vars)
    };
    (0..3).map(one).collect()
}

/// The incumbent's append.
fn append(path: &str, record: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    if file.metadata().unwrap().len() > 0 {
        file.write_all(b"\n").unwrap();
    }
    file.write_all(record.as_bytes()).unwrap();
    file.unlock().unwrap();
}

#[test]
#[ignore = "runs as a child of the tests in this file"]
fn child_incumbent() {
    let var = |name: &str| std::env::var(name).unwrap();
    let (bus, name) = (var("SWB_BUS"), var("SWB_WRITER"));
    for n in 0..EACH {
        let id = format!("MSG-20200101-000000-{n:09}-PID{:05}-{n:04}", std::process::id() % 100_000);
        let more = if n % 3 == 0 { "\nand a second line" } else { "" };
        append(&bus, &foreign(&id, &format!("{name}/{n}{more}")));
        writeln!(std::io::stdout(), "ACK {name}/{n}").unwrap();
    }
}

#[test]
#[ignore = "runs as a child of the tests in this file"]
fn child_of_ours() {
    let var = |name: &str| std::env::var(name).unwrap();
    let rotate: u64 = var("SWB_ROTATE").parse().unwrap();
    let options = BusOptions { auto_rotate: (rotate > 0).then_some(rotate), ..BusOptions::default() };
    let bus = MessageBus::new(BusPath::new(var("SWB_BUS")).unwrap(), options);
    let name = var("SWB_WRITER");
    for n in 0..EACH {
        let more = if n % 3 == 0 { "\n---\nmsg_id: forged\n---\n" } else { "" };
        bus.append(&draft(format!("{name}/{n}{more}"))).unwrap();
        writeln!(std::io::stdout(), "ACK {name}/{n}").unwrap();
    }
}

/// The first line of a body: who posted it, and as which.
fn name_of(body: &str) -> (String, usize) {
    let (writer, n) = body.lines().next().unwrap().split_once('/').unwrap();
    (writer.to_owned(), n.parse().unwrap())
}

/// Every writer's messages, all of them, in its order.
fn check(bodies: impl IntoIterator<Item = String>) {
    let mut by_writer: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for body in bodies {
        let (writer, n) = name_of(&body);
        by_writer.entry(writer).or_default().push(n);
    }
    assert_eq!(by_writer.len(), 6);
    for (writer, numbers) in by_writer {
        assert_eq!(numbers, (0..EACH).collect::<Vec<_>>(), "{writer}");
    }
}

fn text(message: &Message) -> String {
    message.body_text().into_owned()
}

fn side_by_side(rotate: u64) {
    let world = World::new();
    let bus = world.bus();
    let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
    let mut children = writers(&world, "interchange::child_of_ours", "ours", rotate);
    children.extend(writers(&world, "interchange::child_incumbent", "theirs", 0));
    let mut followed = Vec::new();
    while followed.len() < 6 * EACH {
        match follower.next_event(Some(PATIENCE)).unwrap() {
            Some(FollowEvent::Message(message)) => followed.push(text(&message)),
            other => panic!("{other:?} after {} messages", followed.len()),
        }
    }
    for child in &mut children {
        assert_eq!(acknowledgements(child).count(), EACH);
        assert!(child.wait().unwrap().success());
    }
    let read: Vec<_> = bus.read_all().unwrap().iter().map(text).collect();
    check(read.clone());
    // A follower meets what a slow stranger adds to an archive when it is added, a reader where it stands.
    let names = |bodies: &[String]| -> BTreeSet<_> { bodies.iter().map(|body| name_of(body)).collect() };
    assert_eq!((names(&followed), followed.len()), (names(&read), read.len()));
    let files = world.archives().into_iter().chain([world.file()]);
    let old: Vec<_> = files.flat_map(|file| incumbent_reads(&std::fs::read(file).unwrap())).collect();
    assert_eq!(old.len(), read.len(), "its readers see everything too");
    assert!(old.iter().all(|(id, _)| id.starts_with("MSG-")), "and nothing forged");
    assert_eq!(rotate > 0, !world.archives().is_empty());
}

#[test]
fn writers_of_both_makes_lose_nothing_side_by_side() {
    side_by_side(0);
}

#[test]
fn our_rotation_loses_nothing_of_a_writer_that_knows_nothing_of_it() {
    side_by_side(20_000);
}

#[test]
fn an_incumbent_that_dies_between_its_two_writes_is_repaired() {
    let world = World::new();
    let bus = world.bus();
    bus.append(&draft("one")).unwrap();
    let mut file: File = OpenOptions::new().append(true).open(world.file()).unwrap();
    file.write_all(b"\n").unwrap();
    bus.append(&draft("two")).unwrap();
    // The same, and another of its make comes next: it repairs nothing, so the stray line stays and counts as text. Nobody
    // could tell it from the last line of a body that ends so.
    file.write_all(b"\n").unwrap();
    append(world.file().to_str().unwrap(), &foreign("F", "three"));
    bus.append(&draft("four")).unwrap();
    let read: Vec<_> = bus.read_all().unwrap().iter().map(text).collect();
    assert_eq!(read, ["one", "two\n", "three", "four"]);
    assert_eq!(incumbent_reads(&world.bytes()).len(), 4);
}
