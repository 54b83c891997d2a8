//! What survives: a kill at any byte, blocks that were never written, bits that flipped. A full disk is tried with the real
//! binary, in `crates/swb-cli/tests/rpc/full_disk.rs`.

use super::*;
use crate::attachments::{Kind, Loaded};
use proptest::prelude::*;
use serde_json::json;
use swb_proto::agent::{Block, Message, TurnUsage};

struct World {
    dir: tempfile::TempDir,
    id: String,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the first line ends.
    header: usize,
}

fn sessions(dir: &tempfile::TempDir) -> Sessions {
    Sessions::new(dir.path().join("sessions"))
}

fn calls() -> Message {
    let call = |id: &str| Block::ToolUse { id: id.into(), name: "ls".into(), input: json!({ "path": "a" }) };
    Message::assistant(vec![call("a"), call("b")])
}

fn answers() -> Message {
    let answer =
        |id: &str| Block::ToolResult { tool_use_id: id.into(), content: "gr\u{fc}n".into(), is_error: false };
    Message::results(vec![answer("a"), answer("b")])
}

/// A history in which there is something of everything.
fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let mut history = sessions(&dir).create("demo", None, None).unwrap();
    let header = usize::try_from(history.file.length).unwrap();
    history.begin_turn(Message::user("hi")).unwrap();
    history.push(calls()).unwrap();
    history.push(answers()).unwrap();
    history.used(&TurnUsage { input_tokens: 3, ..TurnUsage::default() }).unwrap();
    history.end_turn(crate::history::TurnOutcome::Done).unwrap();
    let seen = history.compactions();
    assert!(history.compact(seen, 2, "a summary", true).unwrap());
    let note = Loaded { title: "n".into(), kind: Kind::Text, bytes: b"note".to_vec() };
    let source = history.files().keep(&note).unwrap();
    history
        .begin_turn(Message::with_files("look", vec![Block::Document { title: "n".into(), source }]))
        .unwrap();
    history.push(calls()).unwrap();
    let (id, path) = (history.id.clone(), history.file.path.clone());
    drop(history);
    let bytes = std::fs::read(&path).unwrap();
    World { dir, id, path, bytes, header }
}

/// Every call has its answer, and each answer its call.
fn is_whole(history: &History) -> bool {
    let mut open: Vec<String> = Vec::new();
    for message in history.messages() {
        for block in message.blocks() {
            if let Block::ToolResult { tool_use_id, .. } = block {
                open.retain(|id| id != tool_use_id);
            }
        }
        if !open.is_empty() {
            return false;
        }
        open.extend(message.calls().map(str::to_owned));
    }
    open.is_empty()
}

#[test]
fn a_history_cut_at_any_byte_loads_and_answers_every_call() {
    let World { dir, id, path, bytes, header } = world();
    for end in header..=bytes.len() {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let mut history = sessions(&dir).open(&id).unwrap();
        assert!(is_whole(&history), "cut at {end}");
        // It goes on from there.
        history.push(Message::user("next")).unwrap();
        drop(history);
        let again = sessions(&dir).open(&id).unwrap();
        assert_eq!(again.messages().last().unwrap().user_text(), Some("next"), "cut at {end}");
    }
    std::fs::write(&path, &bytes).unwrap();
    let count = sessions(&dir).open(&id).unwrap().messages().len();
    let again = sessions(&dir).open(&id).unwrap();
    assert_eq!(again.messages().len(), count, "the closing answer is kept and not given twice");
    assert_eq!(again.totals().input_tokens, 3);
    assert!(!dir.path().join(format!("sessions/{id}.torn")).exists(), "half a line is nothing to keep");
}

#[test]
fn without_its_first_line_it_is_no_history() {
    let World { dir, id, path, bytes, header } = world();
    for end in [0, 1, header - 1] {
        std::fs::write(&path, &bytes[..end]).unwrap();
        assert!(matches!(sessions(&dir).open(&id), Err(OpenError::Damaged { line: 1, .. })), "cut at {end}");
        assert_eq!(std::fs::read(&path).unwrap(), &bytes[..end], "an error changes nothing");
    }
}

#[test]
fn blocks_that_never_reached_the_disk_are_cut_off_and_a_copy_is_kept() {
    let World { dir, id, path, bytes, .. } = world();
    let mut torn = bytes;
    torn.extend_from_slice(&[0; 4096]);
    torn.extend_from_slice(b"half of a line\"}}\n");
    std::fs::write(&path, &torn).unwrap();
    assert!(is_whole(&sessions(&dir).open(&id).unwrap()));
    let kept = std::fs::read(dir.path().join(format!("sessions/{id}.torn"))).unwrap();
    assert!(kept.ends_with(b"half of a line\"}}\n") && kept.len() == 4096 + 18, "{}", kept.len());
}

#[test]
fn a_damaged_middle_is_an_error_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = sessions(&dir).create("demo", None, None).unwrap();
    history.push(Message::user("hi")).unwrap();
    let (id, path) = (history.id.clone(), history.file.path.clone());
    drop(history);
    let text = std::fs::read_to_string(&path).unwrap().replace("\"role\"", "role")
        + "{\"type\":\"later\",\"x\":1}\n";
    std::fs::write(&path, &text).unwrap();
    assert!(matches!(sessions(&dir).open(&id), Err(OpenError::Damaged { line: 2, .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "an error changes nothing");
}

#[test]
fn flipped_bytes_never_break_more_than_they_must() {
    let World { dir, id, path, bytes, .. } = world();
    let flip = (any::<proptest::sample::Index>(), 1u8..);
    proptest!(ProptestConfig::with_cases(500), |(flips in proptest::collection::vec(flip, 1..4))| {
        let mut bytes = bytes.clone();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        match sessions(&dir).open(&id) {
            Ok(history) => {
                drop(history);
                // Whatever it is now, it stays so.
                prop_assert!(sessions(&dir).open(&id).is_ok());
            }
            Err(OpenError::Damaged { line, .. }) => {
                prop_assert!(line >= 1);
                prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    });
}
