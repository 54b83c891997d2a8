//! Which session is opened, and by whom.

use super::*;
use serde_json::json;
use swb_proto::agent::{Block, Message};

fn sessions(dir: &tempfile::TempDir) -> Sessions {
    Sessions::new(dir.path().join("sessions"))
}

fn call() -> Message {
    let call = |id: &str| Block::ToolUse { id: id.into(), name: "ls".into(), input: json!({}) };
    Message::assistant(vec![call("a"), call("b")])
}

#[test]
fn an_announced_session_opens_though_nothing_was_ever_said() {
    let dir = tempfile::tempdir().unwrap();
    let history = sessions(&dir).create("demo", Some("be brief".into()), None).unwrap();
    let id = history.id.clone();
    drop(history);
    let again = sessions(&dir).open(&id).unwrap();
    assert_eq!((again.model.as_str(), again.system.as_deref()), ("demo", Some("be brief")));
}

#[test]
fn a_session_that_is_open_is_refused_and_free_once_closed() {
    let dir = tempfile::tempdir().unwrap();
    let history = sessions(&dir).create("demo", None, None).unwrap();
    assert!(matches!(sessions(&dir).open(&history.id), Err(OpenError::InUse { .. })));
    let id = history.id.clone();
    drop(history);
    sessions(&dir).open(&id).unwrap();
}

#[test]
fn a_part_of_an_id_is_enough_if_it_fits_only_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut sessions = sessions(&dir);
    let first = sessions.create("demo", None, None).unwrap().id;
    let second = sessions.create("demo", None, None).unwrap().id;
    assert_eq!(sessions.open(&first[4..]).unwrap().id, first);
    assert_ne!(first, second);
    assert!(matches!(sessions.open("sess_"), Err(OpenError::Ambiguous { count: 2, .. })));
    for unknown in ["nobody", "../x", "", "a/b"] {
        assert!(matches!(sessions.open(unknown), Err(OpenError::Unknown { .. })), "{unknown:?}");
    }
}

#[test]
fn compaction_keeps_what_came_after_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = sessions(&dir).create("demo", None, None).unwrap();
    history.push(Message::user("one")).unwrap();
    history.push(call()).unwrap();
    let count = history.compactable(false);
    assert_eq!(count, 1, "a call is not parted from its answer");
    history.push(Message::user("meanwhile")).unwrap();
    assert!(history.compact(0, count, "summary", true).unwrap());
    assert!(!history.compact(0, count, "late", true).unwrap(), "positions have changed");
    let id = history.id.clone();
    let texts = |history: &History| -> Vec<Option<String>> {
        history.messages().iter().map(|message| message.user_text().map(str::to_owned)).collect()
    };
    let wanted = [
        Some("<context-summary>\nsummary\n</context-summary>".to_owned()),
        None,
        Some("meanwhile".to_owned()),
    ];
    assert_eq!(texts(&history), wanted);
    drop(history);
    assert_eq!(texts(&sessions(&dir).open(&id).unwrap()), wanted);
}
