//! Reading.

use std::ops::ControlFlow;

use swb_journal::message_bus::{BusOptions, BusPath, MessageBus};

use crate::support::{World, bodies, draft, foreign, ids};

fn post(bus: &MessageBus, count: usize, body: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(|n| bus.append(&draft(body(n))).unwrap().id.into_string()).collect()
}

#[test]
fn a_missing_bus_is_empty_and_an_empty_one_knows_no_cursor() {
    let world = World::new();
    let bus = world.bus();
    assert!(bus.read_all().unwrap().is_empty());
    assert!(bus.read_since("MSG-x").unwrap().is_empty());
    assert!(bus.read_last(20).unwrap().is_empty());
    world.write("");
    assert!(bus.read_all().unwrap().is_empty());
    assert!(bus.read_since("MSG-x").unwrap_err().is_unknown_cursor());
}

#[test]
fn cursors_are_exclusive() {
    let world = World::new();
    let bus = world.bus();
    let posted = post(&bus, 5, |n| n.to_string());
    assert_eq!(bodies(&bus.read_since(&posted[1]).unwrap()), ["2", "3", "4"]);
    assert!(bus.read_since(&posted[4]).unwrap().is_empty());
    assert_eq!(bus.read_since(" ").unwrap().len(), 5);
    assert!(bus.read_since("MSG-none").unwrap_err().is_unknown_cursor());
    assert_eq!(bus.find(&posted[2]).unwrap().unwrap().body_text(), "2");
    assert_eq!(bus.find("MSG-none").unwrap(), None);
}

#[test]
fn a_limit_keeps_the_latest() {
    let world = World::new();
    let bus = world.bus();
    let posted = post(&bus, 6, |n| n.to_string());
    assert_eq!(bodies(&bus.read_since_limited(&format!(" {} ", posted[0]), 2).unwrap()), ["4", "5"]);
    assert_eq!(bus.read_since_limited(&posted[0], 0).unwrap().len(), 5);
    assert_eq!(bodies(&bus.read_since_limited("", 2).unwrap()), ["4", "5"]);
    assert!(bus.read_since_limited("MSG-none", 2).unwrap_err().is_unknown_cursor());
    assert_eq!(bodies(&bus.read_last(3).unwrap()), ["3", "4", "5"]);
    assert_eq!(bus.read_last(0).unwrap().len(), 6);
    assert_eq!(bus.read_last(60).unwrap().len(), 6);
}

#[test]
fn the_first_of_two_equal_ids_is_the_cursor() {
    let world = World::new();
    world.write([foreign("a", "1"), foreign("b", "2"), foreign("a", "3"), foreign("c", "4")].join("\n"));
    assert_eq!(bodies(&world.bus().read_since("a").unwrap()), ["2", "3", "4"]);
}

#[test]
fn a_message_reads_the_same_whatever_follows_it() {
    let world = World::new();
    let text = foreign("a", "hello");
    world.write(&text);
    let alone = world.bus().read_all().unwrap();
    world.write([text, foreign("b", "x")].join("\n"));
    assert_eq!(world.bus().read_all().unwrap()[0], alone[0]);
    assert_eq!(alone[0].body_text(), "hello");
}

#[test]
fn the_last_messages_are_right_even_if_every_body_looks_like_a_header() {
    // Windows that begin inside such a file never find their step by looking at it.
    for count in [300, 3000] {
        let world = World::new();
        let bus = world.bus();
        let body = |n: usize| format!("status: ok\nn: {n}\npad: {}", "x".repeat(n % 700));
        let posted = post(&bus, count, body);
        for tail in [1, 20, 100] {
            let last = bus.read_last(tail).unwrap();
            assert_eq!(ids(&last), posted[count - tail..], "last {tail} of {count}");
            assert_eq!(last[tail - 1].body_text(), body(count - 1));
        }
    }
}

#[test]
fn long_files_give_the_same_answers_as_short_ones() {
    let world = World::new();
    let bus = world.bus();
    let mut posted = post(&bus, 1500, |n| format!("{n} {}", "y".repeat(300)));
    for at in [0, 1, 700, 1498, 1499] {
        assert_eq!(ids(&bus.read_since(&posted[at]).unwrap()), posted[at + 1..], "since {at}");
    }
    // The index now covers the file; what comes after it must be found as well.
    posted.extend(post(&bus, 700, |n| format!("more {n} {}", "z".repeat(300))));
    for at in [3, 1499, 1500, 2000, 2199] {
        assert_eq!(ids(&bus.read_since(&posted[at]).unwrap()), posted[at + 1..], "since {at}");
    }
    assert!(bus.read_since("MSG-none").unwrap_err().is_unknown_cursor());
    assert_eq!(ids(&bus.read_last(20).unwrap()), posted[2180..]);
}

#[test]
fn an_index_is_never_believed_over_an_edited_file() {
    let world = World::new();
    let bus = world.bus();
    let posted = post(&bus, 1500, |n| format!("{n} {}", "y".repeat(300)));
    bus.read_since(&posted[700]).unwrap();
    let text = String::from_utf8(world.bytes()).unwrap();
    let record = |n: usize| {
        let start = text.find(&format!("---\nmsg_id: {}", posted[n])).unwrap();
        let end = text.find(&format!("\n---\nmsg_id: {}", posted[n + 1])).unwrap();
        start..end + 1
    };
    // A record taken out in place: everything behind it moves.
    let mut edited = text.clone();
    edited.replace_range(record(3), "");
    world.write(&edited);
    assert_eq!(ids(&bus.read_since(&posted[700]).unwrap()), posted[701..]);
    assert!(bus.read_since(&posted[3]).unwrap_err().is_unknown_cursor());
    // A record renamed in place, nothing moves: only the file can tell.
    world.write(&text);
    bus.read_since(&posted[5]).unwrap();
    let edited = text.replace(&posted[5], &posted[5].replace("MSG", "GSM"));
    world.write(&edited);
    assert!(bus.read_since(&posted[5]).unwrap_err().is_unknown_cursor());
    assert_eq!(ids(&bus.read_since(&posted[5].replace("MSG", "GSM")).unwrap()), posted[6..]);
    // Truncated by hand, then longer again than before.
    world.write(&text[..record(9).end]);
    assert_eq!(bus.read_all().unwrap().len(), 10);
    let again = post(&bus, 1600, |n| format!("again {n} {}", "w".repeat(300)));
    assert_eq!(ids(&bus.read_since(&again[800]).unwrap()), again[801..]);
    assert!(bus.read_since(&posted[700]).unwrap_err().is_unknown_cursor());
    // Nonsense where the index should be.
    for entry in std::fs::read_dir(world.dir.path().join(".MESSAGE-BUS.md.swb")).unwrap() {
        std::fs::write(entry.unwrap().path(), "nonsense").unwrap();
    }
    assert_eq!(ids(&bus.read_since(&again[800]).unwrap()), again[801..]);
}

#[test]
fn every_read_is_of_what_is_at_the_path_now() {
    let world = World::new();
    let bus = MessageBus::new(BusPath::in_root(world.dir.path(), "p", None).unwrap(), BusOptions::default());
    let (folder, file) = (bus.path().folder().to_owned(), bus.file_path().to_owned());
    let seen = || bodies(&bus.read_last(5).unwrap());
    bus.append(&draft("first")).unwrap();
    assert_eq!(seen(), ["first"]);
    // Another file under the same name, then none, then one in another folder of the same name.
    std::fs::rename(&file, folder.join("aside")).unwrap();
    std::fs::write(&file, foreign("X", "second")).unwrap();
    assert_eq!(seen(), ["second"]);
    std::fs::remove_file(&file).unwrap();
    assert!(seen().is_empty());
    std::fs::rename(&folder, world.dir.path().join("old")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&file, foreign("Y", "third")).unwrap();
    assert_eq!(seen(), ["third"]);
    // The same file in another folder: archives are those beside it now.
    let moved = world.dir.path().join("moved");
    std::fs::rename(&folder, &moved).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(moved.join(file.file_name().unwrap()), &file).unwrap();
    std::fs::write(file.with_extension("md.20200101-000000.archived"), foreign("Z", "earlier")).unwrap();
    assert_eq!(seen(), ["earlier", "third"]);
    // A link is refused however often the bus was read before.
    std::fs::rename(&folder, world.dir.path().join("outside")).unwrap();
    std::os::unix::fs::symlink(world.dir.path().join("old"), &folder).unwrap();
    std::fs::write(world.dir.path().join("old").join(file.file_name().unwrap()), foreign("E", "evil"))
        .unwrap();
    assert!(bus.read_last(5).is_err());
}

#[test]
fn an_index_that_cannot_be_written_is_done_without() {
    let world = World::new();
    let bus = world.bus();
    let posted = post(&bus, 600, |n| format!("{n} {}", "y".repeat(300)));
    std::fs::write(world.dir.path().join(".MESSAGE-BUS.md.swb"), "a file in the way").unwrap();
    assert_eq!(ids(&bus.read_since(&posted[300]).unwrap()), posted[301..]);
    assert_eq!(ids(&bus.read_last(5).unwrap()), posted[595..]);
}

#[test]
fn a_visit_borrows_and_can_be_broken_off() {
    let world = World::new();
    let bus = world.bus();
    let posted = post(&bus, 10, |n| n.to_string());
    let mut seen = Vec::new();
    bus.visit(Some(&posted[2]), |record| {
        seen.push(record.body_text().into_owned());
        if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(seen, ["3", "4"]);
}

#[test]
fn a_record_larger_than_any_buffer_is_read() {
    let world = World::new();
    let bus = world.bus();
    let large = "line of a very long body\n".repeat(200_000);
    bus.append(&draft("before")).unwrap();
    bus.append(&draft(large.clone())).unwrap();
    let after = bus.append(&draft("after")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["before".to_owned(), large.clone(), "after".to_owned()]);
    assert_eq!(bodies(&bus.read_last(2).unwrap())[0], large);
    assert!(bus.read_since(after.id.as_str()).unwrap().is_empty());
}

#[test]
fn legacy_ids_are_stable_cursors_in_long_files() {
    let world = World::new();
    let lines: String = (0..3000).map(|n| format!("[2026-02-23 10:00:00] FACT: line number {n}\n")).collect();
    world.write(lines);
    let bus = world.bus();
    let last = bus.read_last(1).unwrap();
    assert_eq!(last[0].id, "LEGACY-LINE-000003000");
    assert!(bus.read_since(&last[0].id).unwrap().is_empty());
    bus.append(&draft("new")).unwrap();
    assert_eq!(bodies(&bus.read_since(&last[0].id).unwrap()), ["new"]);
    assert_eq!(bodies(&bus.read_since("LEGACY-LINE-000002999").unwrap()), ["line number 2999", "new"]);
}
