//! What a list shows, and what it never does.

use super::*;
use crate::history::{History, Sessions};
use swb_proto::agent::Message;

fn folder(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("sessions")
}

fn create(dir: &tempfile::TempDir) -> History {
    Sessions::new(folder(dir)).create("demo", None, None).unwrap()
}

fn turn(history: &mut History, said: &str, outcome: TurnOutcome) {
    history.begin_turn(Message::user(said)).unwrap();
    history.end_turn(outcome).unwrap();
}

fn known(dir: &tempfile::TempDir) -> Known {
    newest_first(&folder(dir)).unwrap()[0].look().known.unwrap()
}

#[test]
fn a_session_in_which_nothing_was_said_has_no_title() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(newest_first(&folder(&dir)).unwrap(), [], "a folder that is not there");
    let _history = create(&dir);
    let known = known(&dir);
    assert_eq!((known.title, known.turns, known.last_turn), (None, Some(0), LastTurn::None));
}

#[test]
fn title_turns_model_and_state_stand_at_the_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = create(&dir);
    turn(&mut history, "  fix\nthe \t bug  ", TurnOutcome::Done);
    assert_eq!(known(&dir).last_turn, LastTurn::Done);
    // More than any window that is read first.
    turn(&mut history, &"x ".repeat(100_000), TurnOutcome::Cancelled);
    history.set_model("other").unwrap();
    let seen = known(&dir);
    assert_eq!(seen.title.as_deref(), Some("fix the bug"));
    assert_eq!((seen.turns, seen.last_turn, seen.model.as_str()), (Some(2), LastTurn::Cancelled, "other"));
    history.begin_turn(Message::user("y".repeat(300_000))).unwrap();
    assert_eq!((known(&dir).turns, known(&dir).last_turn), (Some(3), LastTurn::Begun));
    assert_eq!(known(&dir).model, "other");
}

#[test]
fn a_long_system_prompt_does_not_hide_the_title() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = Sessions::new(folder(&dir)).create("demo", Some("s".repeat(1 << 20)), None).unwrap();
    turn(&mut history, "hello", TurnOutcome::Failed);
    assert_eq!(known(&dir).title.as_deref(), Some("hello"));
    assert_eq!(known(&dir).last_turn, LastTurn::Failed);
}

#[test]
fn a_preview_is_short_whatever_was_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = create(&dir);
    turn(&mut history, &"ä".repeat(5000), TurnOutcome::Done);
    assert_eq!(known(&dir).title.unwrap().chars().count(), 120);
}

#[test]
fn a_session_is_live_while_somebody_has_it_open() {
    let dir = tempfile::tempdir().unwrap();
    let history = create(&dir);
    let listed = newest_first(&folder(&dir)).unwrap();
    assert!(listed[0].look().live);
    drop(history);
    assert!(!listed[0].look().live);
}

#[test]
fn a_torn_tail_is_no_damage_and_anything_else_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = create(&dir);
    turn(&mut history, "hi", TurnOutcome::Done);
    let listed = newest_first(&folder(&dir)).unwrap().remove(0);
    let bytes = std::fs::read(&listed.path).unwrap();
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for end in header..bytes.len() {
        std::fs::write(&listed.path, &bytes[..end]).unwrap();
        listed.look().known.unwrap_or_else(|reason| panic!("cut at {end}: {reason}"));
    }
    for damage in [
        Vec::new(),
        b"\n".to_vec(),
        b"\xff\xfe\n".to_vec(),
        bytes[1..].to_vec(),
        [&bytes[..], b"\0\0\0\n"].concat(),
        [&bytes[..], b"not json\n"].concat(),
        String::from_utf8(bytes.clone()).unwrap().replacen("\"version\":1", "\"version\":9", 1).into_bytes(),
    ] {
        std::fs::write(&listed.path, &damage).unwrap();
        assert!(listed.look().known.is_err(), "{:?}", String::from_utf8_lossy(&damage));
    }
}

#[test]
fn only_files_that_could_be_continued_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let history = create(&dir);
    std::fs::create_dir(folder(&dir).join("folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder(&dir).join("link.jsonl")).unwrap();
    std::fs::write(folder(&dir).join("a name.jsonl"), "").unwrap();
    std::fs::write(folder(&dir).join("notes.txt"), "").unwrap();
    let ids: Vec<_> = newest_first(&folder(&dir)).unwrap().into_iter().map(|listed| listed.id).collect();
    assert_eq!(ids, [history.id]);
}
