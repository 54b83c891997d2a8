//! Frozen files, each with the parse it must have.
//!
//! `fixtures/message-bus/<case>.md` holds the bytes, `<case>.json` the messages: a list of objects with the fields that
//! are not empty. Cases are added, never edited.

use std::path::Path;

use serde_json::{Map, Value, json};
use swb_journal::message_bus::{BodyState, Message};

use crate::support::World;

fn shown(message: &Message) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        let empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Null => true,
            _ => false,
        };
        if !empty {
            fields.insert(name.to_owned(), value);
        }
    };
    put("msg_id", json!(message.id));
    put("ts", json!(message.timestamp.map(|time| time.to_string())));
    put("type", json!(message.kind));
    put("project_id", json!(message.project_id));
    put("task_id", json!(message.task_id));
    put("run_id", json!(message.run_id));
    put("issue_id", json!(message.issue_id));
    let parents = message.parents.iter().map(|parent| {
        let meta: Map<String, Value> =
            parent.meta.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
        json!({ "msg_id": parent.id, "kind": parent.kind, "meta": meta })
    });
    put("parents", parents.collect());
    let links =
        message.links.iter().map(|link| json!({ "url": link.url, "label": link.label, "kind": link.kind }));
    put("links", links.collect());
    put(
        "meta",
        message.meta.iter().map(|(key, value)| (key.to_string(), json!(value))).collect::<Map<_, _>>().into(),
    );
    put("key", json!(message.idempotency_key));
    put("body", json!(message.body_text()));
    if message.body_state != BodyState::Whole {
        put("body_state", json!(format!("{:?}", message.body_state)));
    }
    Value::Object(fields)
}

#[test]
fn every_frozen_file_parses_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/message-bus");
    let mut cases = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        cases += 1;
        let world = World::new();
        std::fs::copy(&path, world.file()).unwrap();
        let parsed: Vec<_> = world.bus().read_all().unwrap().iter().map(shown).collect();
        let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
        assert_eq!(parsed, expected, "{}", path.display());
    }
    assert!(cases >= 10, "the fixtures were not found");
}
