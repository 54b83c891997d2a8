//! Messages as lines: for scripts, for people, as JSON.

use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value, json};
use swb_journal::message_bus::{BodyState, Message};

use crate::failure::Failure;
use crate::io::{BAD, DIM, Io};

/// Prints one message. The plain form is `[time] (TYPE) body`, with the time as the record has it.
pub(super) fn message(message: &Message, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.line(to_json(message));
    }
    let style = style_of(&message.kind);
    io.line(format!("{DIM}[{}]{DIM:#} {style}({}){style:#} {}", time(message), message.kind, body(message)))
}

/// The time of day as the record's author saw it.
pub(super) fn time(message: &Message) -> String {
    match message.timestamp.map(|timestamp| timestamp.civil()) {
        Some(t) => {
            format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute, t.second)
        }
        None => "0001-01-01 00:00:00".to_owned(),
    }
}

pub(super) fn body(message: &Message) -> String {
    let text = message.body_text();
    if message.body_state == BodyState::Cut {
        format!("{text} {BAD}(cut short){BAD:#}")
    } else {
        text.into_owned()
    }
}

/// A colour by the meaning of the common types.
pub(super) fn style_of(kind: &str) -> Style {
    match kind {
        "ERROR" | "RUN_CRASH" => AnsiColor::Red.on_default(),
        "WARN" | "WARNING" | "QUESTION" => AnsiColor::Yellow.on_default(),
        "FACT" | "DECISION" | "ANSWER" | "RUN_STOP" => AnsiColor::Green.on_default(),
        "USER" => AnsiColor::Magenta.on_default(),
        _ => AnsiColor::Cyan.on_default(),
    }
}

/// A message as JSON: the keys of the REST interface, empty ones left out.
pub(super) fn to_json(message: &Message) -> Value {
    let mut object = Map::new();
    object.insert("msg_id".into(), message.id.as_ref().into());
    object.insert("timestamp".into(), message.timestamp.map(|timestamp| timestamp.to_string()).into());
    let texts = [
        ("type", &message.kind),
        ("project_id", &message.project_id),
        ("task_id", &message.task_id),
        ("run_id", &message.run_id),
        ("issue_id", &message.issue_id),
    ];
    for (key, text) in texts {
        if !text.is_empty() {
            object.insert(key.into(), text.as_ref().into());
        }
    }
    if !message.parents.is_empty() {
        let parents =
            message.parents.iter().map(|parent| json!({ "msg_id": parent.id, "kind": parent.kind }));
        object.insert("parents".into(), parents.collect());
    }
    if !message.links.is_empty() {
        let links = message
            .links
            .iter()
            .map(|link| json!({ "url": link.url, "label": link.label, "kind": link.kind }));
        object.insert("links".into(), links.collect());
    }
    if !message.meta.is_empty() {
        let meta = message.meta.iter().map(|(key, value)| (key.to_string(), Value::from(value.as_ref())));
        object.insert("meta".into(), Value::Object(meta.collect()));
    }
    object.insert("body".into(), message.body_text().into());
    if message.body_state == BodyState::Cut {
        object.insert("body_cut".into(), true.into());
    }
    Value::Object(object)
}
