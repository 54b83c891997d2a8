//! Torn tails, strangers' leftovers and interrupted writes: the next writer repairs, every reader stays in step.

use swb_journal::message_bus::{AppendErrorKind, BodyState};

use crate::support::{World, bodies, child, draft, foreign, ids, incumbent_reads};

/// Cuts the third record of a file at every byte; nothing whole may be lost and nothing cut may come back.
fn every_cut_is_repaired(third_body: &str) {
    let world = World::new();
    let bus = world.bus();
    let first = bus.append(&draft("one")).unwrap().id.into_string();
    let second = bus.append(&draft("two\nlines\n---\n")).unwrap().id.into_string();
    let whole = world.bytes();
    bus.append(&draft(third_body)).unwrap();
    let full = world.bytes();
    for cut in whole.len()..full.len() {
        world.write(&full[..cut]);
        let before = world.bus().read_all().unwrap();
        assert_eq!(ids(&before), [first.clone(), second.clone()], "before the repair, cut at {cut}");
        assert_eq!(bodies(&before), ["one", "two\nlines\n---\n"]);
        let fourth = world.bus().append(&draft("four")).unwrap().id.into_string();
        let after = world.bus().read_all().unwrap();
        assert_eq!(
            ids(&after),
            [first.clone(), second.clone(), fourth.clone()],
            "after the repair, cut at {cut}"
        );
        assert_eq!(bodies(&after), ["one", "two\nlines\n---\n", "four"]);
        let old: Vec<_> = incumbent_reads(&world.bytes()).into_iter().map(|(id, _)| id).collect();
        assert_eq!(old, [first.clone(), second.clone(), fourth], "as old readers see it, cut at {cut}");
        // A writer that has the file open and knows how it ended comes to the same result.
        world.write(&whole);
        let open = world.bus();
        let fifth = open.append(&draft("five")).unwrap().id.into_string();
        let mut torn = world.bytes();
        torn.extend_from_slice(&full[whole.len()..cut]);
        std::fs::write(world.file(), torn).unwrap();
        let sixth = open.append(&draft("six")).unwrap().id.into_string();
        let after = open.read_all().unwrap();
        assert_eq!(ids(&after), [first.clone(), second.clone(), fifth, sixth], "open writer, cut at {cut}");
        assert_eq!(bodies(&after)[2..], ["five", "six"]);
    }
    let torn = std::fs::read(world.dir.path().join(".MESSAGE-BUS.md.swb/torn")).unwrap();
    assert!(!torn.is_empty(), "what was cut is put aside");
}

#[test]
fn a_record_of_one_line_cut_anywhere_is_repaired() {
    every_cut_is_repaired("three");
}

#[test]
fn a_record_of_several_lines_cut_anywhere_is_repaired() {
    every_cut_is_repaired("three\nstatus: ok\n\n---\n- x\n---");
}

#[test]
fn a_torn_first_record_leaves_an_empty_bus() {
    let world = World::new();
    let bus = world.bus();
    bus.append(&draft("one\ntwo")).unwrap();
    let full = world.bytes();
    for cut in 1..full.len() {
        world.write(&full[..cut]);
        assert!(world.bus().read_all().unwrap().is_empty(), "cut at {cut}");
        world.bus().append(&draft("x")).unwrap();
        assert_eq!(bodies(&world.bus().read_all().unwrap()), ["x"], "cut at {cut}");
        assert_eq!(incumbent_reads(&world.bytes()).len(), 1);
    }
}

#[test]
fn text_behind_a_foreign_rule_line_swallows_nothing() {
    // The incumbent lets `---` in a body reach the file; the text after it is then taken for a header.
    for leftover in [
        "---\n",
        "---\nstatus: ok\n",
        "---\n# note\n",
        "---\n\n",
        "---\nprose\n",
        "---\na: [1,\n",
        "---\na: \"x\n",
        "---\na: b",
    ] {
        let world = World::new();
        world.write(foreign("a", &format!("text\n{leftover}")));
        let bus = world.bus();
        let id = bus.append(&draft("mine")).unwrap().id.into_string();
        assert_eq!(ids(&bus.read_all().unwrap()), ["a".to_owned(), id.clone()], "{leftover:?}");
        let old = incumbent_reads(&world.bytes());
        assert_eq!(old.last().unwrap(), &(id, b"mine".to_vec()), "{leftover:?}");
        assert_eq!(old.len(), 2, "{leftover:?} makes no phantom");
    }
}

#[test]
fn a_hand_written_last_record_without_newline_is_kept() {
    let world = World::new();
    world.write("---\nmsg_id: by-hand\ntype: NOTE\n---\nno newline here");
    let bus = world.bus();
    assert!(bus.read_all().unwrap().is_empty(), "as every reader has it: not finished");
    bus.append(&draft("x")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["no newline here", "x"]);
}

#[test]
fn legacy_files_and_plain_notes_are_appended_to_as_they_are() {
    let world = World::new();
    let before = "# Notes\n\n[2026-02-23 10:00:00] FACT: old\nno final newline";
    world.write(before);
    let bus = world.bus();
    bus.append(&draft("x")).unwrap();
    assert_eq!(bodies(&bus.read_all().unwrap()), ["old", "x"]);
    assert!(world.bytes().starts_with(before.as_bytes()));
}

#[test]
fn a_cut_body_that_someone_appended_behind_is_recognised() {
    let world = World::new();
    world.bus().append(&draft("one\ntwo\nthree\n")).unwrap();
    let mut bytes = world.bytes();
    bytes.truncate(bytes.len() - "three\n".len());
    // The incumbent does not look at what it appends to.
    bytes.extend_from_slice(format!("\n{}", foreign("b", "next")).as_bytes());
    world.write(bytes);
    let messages = world.bus().read_all().unwrap();
    assert_eq!(
        messages.iter().map(|message| message.body_state).collect::<Vec<_>>(),
        [BodyState::Cut, BodyState::Whole]
    );
    assert_eq!(bodies(&messages), ["one\ntwo", "next"]);
}

#[test]
fn a_write_that_fits_only_in_part_is_taken_back() {
    let world = World::new();
    world.bus().append(&draft("before")).unwrap();
    let before = world.bytes();
    let mut child =
        child("damage::child_with_a_full_disk", &[("SWB_BUS", world.file().display().to_string())]);
    assert!(child.wait().unwrap().success());
    assert_eq!(world.bytes(), before);
    world.bus().append(&draft("after")).unwrap();
    assert_eq!(bodies(&world.bus().read_all().unwrap()), ["before", "after"]);
}

#[test]
#[ignore = "runs as a child of a_write_that_fits_only_in_part_is_taken_back"]
fn child_with_a_full_disk() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use swb_journal::message_bus::{BusOptions, BusPath, MessageBus};
    let path = std::env::var("SWB_BUS").unwrap();
    let limit = std::fs::metadata(&path).unwrap().len() + 1000;
    setrlimit(Resource::Fsize, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let bus = MessageBus::new(BusPath::new(path).unwrap(), BusOptions::default());
    let error = bus.append(&draft("x\n".repeat(5000))).unwrap_err();
    assert!(matches!(error.kind, AppendErrorKind::Write(_)), "{error:?}");
}
