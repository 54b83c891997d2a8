//! A message on the wire. The list shows all of it with lower-case keys; an event shows what clients of the stream know.
//!
//! A record without a time (a phantom) shows the zero time in both, so that it reads the same at every delivery.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use swb_journal::message_bus::{Record, Timestamp};

const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The answer of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageList<'a> {
    /// Oldest first.
    messages: Vec<MessageItem<'a>>,
}

/// One message of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageItem<'a> {
    /// Its id; the cursor for `since` and `after`.
    msg_id: &'a str,
    /// When it was posted, RFC 3339 with up to nine digits.
    timestamp: Time,
    /// Its type: `USER`, `FACT`, `RUN_START` …
    r#type: &'a str,
    /// The project it belongs to.
    project_id: &'a str,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    task_id: &'a str,
    /// The run that posted it.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    run_id: &'a str,
    /// The issue it is about.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    issue_id: &'a str,
    /// The messages it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    parents: Vec<ParentItem<'a>>,
    /// References to things outside the bus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    links: Vec<LinkItem<'a>>,
    /// Free words.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[schemars(default)]
    meta: Words<'a>,
    /// What it says.
    body: Cow<'a, str>,
}

/// A message that another one refers to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ParentItem<'a> {
    /// Its id.
    msg_id: &'a str,
    /// How they are related.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    kind: &'a str,
    /// Free words about the relation.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[schemars(default)]
    meta: Words<'a>,
}

/// A reference to something outside the bus.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkItem<'a> {
    /// Where it is.
    url: &'a str,
    /// What to call it.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    label: &'a str,
    /// What it is.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    kind: &'a str,
}

/// The `data` of one event of a stream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventItem<'a> {
    /// Its id; also the `id` of the event.
    msg_id: &'a str,
    /// When it was posted, RFC 3339 with up to nine digits.
    timestamp: Time,
    /// Its type.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    r#type: &'a str,
    /// The project it belongs to.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    project_id: &'a str,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    task_id: &'a str,
    /// The run that posted it.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    run_id: &'a str,
    /// The issue it is about.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(default)]
    issue_id: &'a str,
    /// The ids of the messages it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    parents: Vec<&'a str>,
    /// Free words.
    #[serde(skip_serializing_if = "Words::is_empty")]
    #[schemars(default)]
    meta: Words<'a>,
    /// What it says.
    body: Cow<'a, str>,
}

impl<'a> From<&'a Record<'_>> for MessageItem<'a> {
    fn from(record: &'a Record<'_>) -> Self {
        let parents = record.parents.iter().map(|parent| ParentItem {
            msg_id: &parent.id,
            kind: &parent.kind,
            meta: Words::of(&parent.meta),
        });
        let links =
            record.links.iter().map(|link| LinkItem { url: &link.url, label: &link.label, kind: &link.kind });
        MessageItem {
            msg_id: &record.id,
            timestamp: Time(record.timestamp),
            r#type: &record.kind,
            project_id: &record.project_id,
            task_id: &record.task_id,
            run_id: &record.run_id,
            issue_id: &record.issue_id,
            parents: parents.collect(),
            links: links.collect(),
            meta: Words::of(&record.meta),
            body: record.body_text(),
        }
    }
}

impl<'a> From<&'a Record<'_>> for EventItem<'a> {
    fn from(record: &'a Record<'_>) -> Self {
        EventItem {
            msg_id: &record.id,
            timestamp: Time(record.timestamp),
            r#type: &record.kind,
            project_id: &record.project_id,
            task_id: &record.task_id,
            run_id: &record.run_id,
            issue_id: &record.issue_id,
            parents: record.parents.iter().map(|parent| parent.id.as_ref()).collect(),
            meta: Words::of(&record.meta),
            body: record.body_text(),
        }
    }
}

/// A time, or the zero time.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Time(#[schemars(with = "String")] pub(crate) Option<Timestamp>);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(time) => serializer.collect_str(&time),
            None => serializer.serialize_str(ZERO_TIME),
        }
    }
}

/// Free words, by name.
#[derive(Debug, Default, JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Words<'a>(
    #[schemars(with = "std::collections::BTreeMap<String, String>")] Vec<(&'a str, &'a str)>,
);

impl<'a> Words<'a> {
    fn of(pairs: &'a [(Cow<'_, str>, Cow<'_, str>)]) -> Self {
        Words(pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
