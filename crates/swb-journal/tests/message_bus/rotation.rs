//! Rotation that loses nothing.

use swb_journal::message_bus::{FollowEvent, FollowFrom, Follower};

use crate::support::{PATIENCE, World, bodies, draft, foreign, ids};

#[test]
fn reads_go_across_archives_as_if_there_were_none() {
    let world = World::new();
    let bus = world.rotating_bus(1000);
    let posted: Vec<_> =
        (0..60).map(|n| bus.append(&draft(format!("body {n}"))).unwrap().id.into_string()).collect();
    assert!(world.archives().len() >= 5, "{}", world.archives().len());
    let fresh = world.bus();
    assert_eq!(ids(&fresh.read_all().unwrap()), posted);
    for at in 0..60 {
        assert_eq!(ids(&fresh.read_since(&posted[at]).unwrap()), posted[at + 1..], "since {at}");
        assert_eq!(ids(&fresh.read_last(at + 1).unwrap()), posted[59 - at..], "last {}", at + 1);
    }
    assert_eq!(ids(&fresh.read_since_limited(&posted[5], 30).unwrap()), posted[30..]);
    assert_eq!(fresh.find(&posted[0]).unwrap().unwrap().body_text(), "body 0");
    assert!(fresh.read_since("MSG-none").unwrap_err().is_unknown_cursor());
    assert!(posted.is_sorted(), "ids rise across archives");
}

#[test]
fn a_fresh_process_goes_on_above_the_archived_ids() {
    let world = World::new();
    world.write(foreign("MSG-20991231-235959-999999999-PID00001-0001", "from the future"));
    // As a manual rotation by someone else leaves it: archived, and nothing or an empty file in its place.
    std::fs::rename(world.file(), world.dir.path().join("MESSAGE-BUS.md.20261115-102436.archived")).unwrap();
    let first = world.bus().append(&draft("x")).unwrap();
    assert!(first.id.as_str().starts_with("MSG-21000101-"), "{}", first.id);
    assert_eq!(bodies(&world.bus().read_all().unwrap()), ["from the future", "x"]);
}

#[test]
fn a_crash_between_naming_the_archive_and_the_fresh_file_shows_nothing_twice() {
    let world = World::new();
    let bus = world.rotating_bus(1);
    bus.append(&draft("one")).unwrap();
    std::fs::hard_link(world.file(), world.dir.path().join("MESSAGE-BUS.md.20261115-102436.archived"))
        .unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["one"]);
    assert_eq!(bodies(&bus.read_last(5).unwrap()), ["one"]);
    world.bus().append(&draft("two")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["one", "two"]);
    bus.append(&draft("three")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["one", "two", "three"]);
    assert_eq!(world.archives().len(), 1, "the name that was there is used");
}

fn next(follower: &mut Follower) -> String {
    match follower.next_event(Some(PATIENCE)).unwrap().expect("an event in time") {
        FollowEvent::Message(message) => message.body_text().into_owned(),
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn a_follower_sees_what_a_slow_stranger_appends_to_the_archive() {
    let world = World::new();
    let bus = world.rotating_bus(1);
    bus.append(&draft("one")).unwrap();
    // The incumbent opens, then waits for the lock; meanwhile the file is rotated.
    let mut late = std::fs::OpenOptions::new().append(true).open(world.file()).unwrap();
    let mut follower = bus.follow(&FollowFrom::Beginning).unwrap();
    assert_eq!(next(&mut follower), "one");
    bus.append(&draft("two")).unwrap();
    assert_eq!(next(&mut follower), "two");
    std::io::Write::write_all(&mut late, format!("\n{}", foreign("late", "sorry")).as_bytes()).unwrap();
    assert_eq!(next(&mut follower), "sorry");
    bus.append(&draft("three")).unwrap();
    assert_eq!(next(&mut follower), "three");
    assert_eq!(bodies(&bus.read_all().unwrap()), ["one", "sorry", "two", "three"]);
}

#[test]
fn the_permissions_of_the_file_survive_a_rotation() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let bus = world.rotating_bus(1);
    bus.append(&draft("one")).unwrap();
    std::fs::set_permissions(world.file(), std::fs::Permissions::from_mode(0o600)).unwrap();
    bus.append(&draft("two")).unwrap();
    assert_eq!(world.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
