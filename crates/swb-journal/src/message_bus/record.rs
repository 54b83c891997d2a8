//! The message itself: what a reader gets back and what a poster hands in.
//!
//! A [`Record`] borrows from the bytes it was parsed from where it can; [`Message`] is the same with nothing borrowed.
//! Bodies are bytes: the format does not promise UTF-8. The reserved `meta` keys never appear in either type; the
//! parser consumes them and the writer adds them.

use std::borrow::Cow;

use super::timestamp::Timestamp;

/// Names in `meta` that start like this belong to the bus itself and are refused from posters.
pub const RESERVED_META_PREFIX: &str = "swb_";
/// Byte length of the stored body, for bodies whose extent the format cannot show.
pub(super) const META_BYTES: &str = "swb_bytes";
/// Present if body lines were escaped.
pub(super) const META_ESCAPED: &str = "swb_escaped";
/// The poster's idempotency key.
pub(super) const META_KEY: &str = "swb_key";
/// The kind of parent that means "this answers that".
pub const REPLY_TO: &str = "reply_to";

/// A message with nothing borrowed.
pub type Message = Record<'static>;

/// One message as read from a bus file.
///
/// Absent strings are empty. A record whose header named no known field (a phantom) has an empty id and no time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// `msg_id`.
    pub id: Cow<'a, str>,
    /// `ts`, in the offset it was written with.
    pub timestamp: Option<Timestamp>,
    /// `type`.
    pub kind: Cow<'a, str>,
    /// `project_id`.
    pub project_id: Cow<'a, str>,
    /// `task_id`.
    pub task_id: Cow<'a, str>,
    /// `run_id`.
    pub run_id: Cow<'a, str>,
    /// `issue_id`.
    pub issue_id: Cow<'a, str>,
    /// `parents`, typed.
    pub parents: Vec<Parent<'a>>,
    /// `links`.
    pub links: Vec<Link<'a>>,
    /// `meta` without the reserved keys, in file order.
    pub meta: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The poster's idempotency key, if one was given.
    pub idempotency_key: Option<Cow<'a, str>>,
    /// The body, exactly as posted where the file can tell.
    pub body: Cow<'a, [u8]>,
    /// Whether the body is known to be what was posted.
    pub body_state: BodyState,
}

/// What is known about a body beyond its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyState {
    /// Nothing contradicts it.
    #[default]
    Whole,
    /// Shorter than its writer noted: the write was cut, or someone edited the file.
    Cut,
    /// Longer than its writer noted: someone edited the file.
    Altered,
}

/// A message this one depends on, answers or otherwise refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parent<'a> {
    /// The id of the other message.
    pub id: Cow<'a, str>,
    /// How it is related; empty if unsaid.
    pub kind: Cow<'a, str>,
    /// Free words about the relation.
    pub meta: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A reference to something outside the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link<'a> {
    /// Where it is.
    pub url: Cow<'a, str>,
    /// What to call it.
    pub label: Cow<'a, str>,
    /// What it is.
    pub kind: Cow<'a, str>,
}

impl Record<'_> {
    /// The value of a `meta` key.
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<&str> {
        self.meta.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_ref())
    }

    /// The message this one answers.
    #[must_use]
    pub fn reply_to(&self) -> Option<&str> {
        self.parents.iter().find(|parent| parent.kind == REPLY_TO).map(|parent| parent.id.as_ref())
    }

    /// The body as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The same record with nothing borrowed.
    #[must_use]
    pub fn into_message(self) -> Message {
        Record {
            id: owned(self.id),
            timestamp: self.timestamp,
            kind: owned(self.kind),
            project_id: owned(self.project_id),
            task_id: owned(self.task_id),
            run_id: owned(self.run_id),
            issue_id: owned(self.issue_id),
            parents: self.parents.into_iter().map(Parent::into_owned).collect(),
            links: self.links.into_iter().map(Link::into_owned).collect(),
            meta: self.meta.into_iter().map(|(key, value)| (owned(key), owned(value))).collect(),
            idempotency_key: self.idempotency_key.map(owned),
            body: Cow::Owned(self.body.into_owned()),
            body_state: self.body_state,
        }
    }
}

impl Parent<'_> {
    fn into_owned(self) -> Parent<'static> {
        Parent {
            id: owned(self.id),
            kind: owned(self.kind),
            meta: self.meta.into_iter().map(|(key, value)| (owned(key), owned(value))).collect(),
        }
    }
}

impl Link<'_> {
    fn into_owned(self) -> Link<'static> {
        Link { url: owned(self.url), label: owned(self.label), kind: owned(self.kind) }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// What a poster hands in; id and order are the bus's to give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// `type`; must not be blank.
    pub kind: String,
    /// `project_id`; must not be blank.
    pub project_id: String,
    /// `task_id`.
    pub task_id: String,
    /// `run_id`.
    pub run_id: String,
    /// `issue_id`; a message of type `ISSUE` without one gets its own id.
    pub issue_id: String,
    /// When it happened; the time of posting if absent.
    pub timestamp: Option<Timestamp>,
    /// Typed parents.
    pub parents: Vec<Parent<'static>>,
    /// Links.
    pub links: Vec<Link<'static>>,
    /// Free words; keys with the reserved prefix are refused.
    pub meta: Vec<(String, String)>,
    /// Posting again under the same key returns the first message.
    pub idempotency_key: Option<super::idempotency::IdempotencyKey>,
    /// Any bytes.
    pub body: Vec<u8>,
}

impl Draft {
    /// A message of this type, for this project, saying this.
    #[must_use]
    pub fn new(kind: impl Into<String>, project_id: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { kind: kind.into(), project_id: project_id.into(), body: body.into(), ..Self::default() }
    }

    /// Marks it as an answer to another message.
    #[must_use]
    pub fn reply_to(mut self, id: impl Into<String>) -> Self {
        self.parents.push(Parent {
            id: Cow::Owned(id.into()),
            kind: Cow::Borrowed(REPLY_TO),
            meta: Vec::new(),
        });
        self
    }
}
