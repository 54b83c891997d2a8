//! A message of the message bus on the wire: what `GET …/messages` lists, what a stream's events carry, what
//! `swb bus read --json` prints. One type, so that a message looks the same through every door.
//!
//! The words are borrowed from wherever the message was read; nothing is copied but lists that are not empty. Texts that
//! are absent are empty and mostly left out. A record without a time (a phantom) shows the zero time, so that it reads the
//! same at every delivery.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The answer of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageList<'a> {
    /// Oldest first.
    pub messages: Vec<MessageItem<'a>>,
}

/// One message.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageItem<'a> {
    /// Its id; the cursor for `since` and `after`.
    pub msg_id: &'a str,
    /// When it was posted, RFC 3339 with up to nine digits.
    pub timestamp: Moment<'a>,
    /// Its type: `USER`, `FACT`, `RUN_START` …
    pub r#type: &'a str,
    /// The project it belongs to.
    pub project_id: &'a str,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub task_id: &'a str,
    /// The run that posted it.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub run_id: &'a str,
    /// The issue it is about.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub issue_id: &'a str,
    /// The messages it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub parents: Vec<ParentItem<'a>>,
    /// References to things outside the bus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub links: Vec<LinkItem<'a>>,
    /// Free words.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[schemars(default)]
    pub meta: Words<'a>,
    /// What it says.
    pub body: Cow<'a, str>,
    /// There was more of the body once: the write was cut, or somebody edited the file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub body_cut: bool,
}

/// A message that another one refers to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ParentItem<'a> {
    /// Its id.
    pub msg_id: &'a str,
    /// How they are related.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub kind: &'a str,
    /// Free words about the relation.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[schemars(default)]
    pub meta: Words<'a>,
}

/// A reference to something outside the bus.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkItem<'a> {
    /// Where it is.
    pub url: &'a str,
    /// What to call it.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub label: &'a str,
    /// What it is.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    pub kind: &'a str,
}

/// The `data` of one event of a stream: the message as clients of streams know it, with parents as bare ids, without
/// links, and with every empty text left out.
#[derive(Debug)]
pub struct EventItem<'a>(pub MessageItem<'a>);

impl Serialize for EventItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = &self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("msg_id", message.msg_id)?;
        map.serialize_entry("timestamp", &message.timestamp)?;
        let texts = [
            ("type", message.r#type),
            ("project_id", message.project_id),
            ("task_id", message.task_id),
            ("run_id", message.run_id),
            ("issue_id", message.issue_id),
        ];
        for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            map.serialize_entry(name, text)?;
        }
        if !message.parents.is_empty() {
            let ids: Vec<&str> = message.parents.iter().map(|parent| parent.msg_id).collect();
            map.serialize_entry("parents", &ids)?;
        }
        if !message.meta.is_empty() {
            map.serialize_entry("meta", &message.meta)?;
        }
        map.serialize_entry("body", &message.body)?;
        if message.body_cut {
            map.serialize_entry("body_cut", &true)?;
        }
        map.end()
    }
}

impl JsonSchema for EventItem<'_> {
    fn schema_name() -> Cow<'static, str> {
        "EventItem".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = MessageItem::json_schema(generator);
        schema.insert("description".to_owned(), "The `data` of one event of a stream.".into());
        schema.insert("required".to_owned(), ["msg_id", "timestamp", "body"].as_slice().into());
        if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
            properties.remove("links");
            let ids = json_schema!({
                "description": "The ids of the messages it refers to.",
                "type": "array",
                "items": { "type": "string" },
            });
            properties.insert("parents".to_owned(), ids.to_value());
        }
        schema
    }
}

/// A time, written as it displays; or none, written as the zero time.
#[derive(Clone, Copy)]
pub struct Moment<'a>(pub Option<&'a dyn fmt::Display>);

impl fmt::Display for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(time) => time.fmt(f),
            None => f.write_str("0001-01-01T00:00:00Z"),
        }
    }
}

impl fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moment({self})")
    }
}

impl Serialize for Moment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Moment<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Free words, by name.
#[derive(Debug, Clone, Copy, Default, JsonSchema)]
#[schemars(transparent)]
pub struct Words<'a>(
    /// In the order in which they stand in the file.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub &'a [(Cow<'a, str>, Cow<'a, str>)],
);

impl Words<'_> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal() -> MessageItem<'static> {
        MessageItem {
            msg_id: "",
            timestamp: Moment(None),
            r#type: "",
            project_id: "",
            task_id: "",
            run_id: "",
            issue_id: "",
            parents: Vec::new(),
            links: Vec::new(),
            meta: Words::default(),
            body: Cow::Borrowed("x"),
            body_cut: false,
        }
    }

    fn texts(item: MessageItem<'_>) -> [String; 2] {
        let listed = serde_json::to_string(&item).unwrap();
        [listed, serde_json::to_string(&EventItem(item)).unwrap()]
    }

    #[test]
    fn a_phantom_has_the_keys_that_every_message_has() {
        let [listed, event] = texts(minimal());
        assert_eq!(
            listed,
            r#"{"msg_id":"","timestamp":"0001-01-01T00:00:00Z","type":"","project_id":"","body":"x"}"#
        );
        assert_eq!(event, r#"{"msg_id":"","timestamp":"0001-01-01T00:00:00Z","body":"x"}"#);
    }

    #[test]
    fn a_message_with_everything_is_listed_in_full_and_streamed_as_clients_know_it() {
        let words = [("k".into(), "v".into()), ("a".into(), "b".into())];
        let [listed, event] = texts(MessageItem {
            msg_id: "m",
            timestamp: Moment(Some(&"2026-11-15T07:50:00.1Z")),
            r#type: "FACT",
            project_id: "p",
            task_id: "t",
            run_id: "r",
            issue_id: "i",
            parents: vec![
                ParentItem { msg_id: "one", kind: "reply_to", meta: Words(&words[..1]) },
                ParentItem { msg_id: "two", kind: "", meta: Words::default() },
            ],
            links: vec![
                LinkItem { url: "u", label: "l", kind: "k" },
                LinkItem { url: "", label: "", kind: "" },
            ],
            meta: Words(&words),
            body_cut: true,
            ..minimal()
        });
        let head = r#"{"msg_id":"m","timestamp":"2026-11-15T07:50:00.1Z","type":"FACT","project_id":"p","task_id":"t","run_id":"r","issue_id":"i","#;
        let tail = r#""meta":{"k":"v","a":"b"},"body":"x","body_cut":true}"#;
        let references = r#""parents":[{"msg_id":"one","kind":"reply_to","meta":{"k":"v"}},{"msg_id":"two"}],"links":[{"url":"u","label":"l","kind":"k"},{"url":""}],"#;
        assert_eq!(listed, format!("{head}{references}{tail}"));
        assert_eq!(event, format!(r#"{head}"parents":["one","two"],{tail}"#));
    }
}
