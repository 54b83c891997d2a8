//! A message as the carrier reads it: what counts of it, and no more of its text than an agent can be told.

use swb_journal::message_bus::{Draft, Message};
use swb_rules::inbox::means_urgent;

use crate::runs::taking::LONGEST_PROMPT;

/// The key in `meta` that marks a message as urgent.
pub(super) const URGENT: &str = "urgent";
/// The longest id that is looked at: it becomes part of others.
const LONGEST_ID: usize = 200;

/// A message on the bus of a task.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub(super) msg_id: String,
    pub(super) kind: String,
    pub(super) run_id: String,
    pub(super) is_urgent: bool,
    /// Of what counts of it.
    pub(super) hash: String,
    /// Its text; how long that is, where it is too long to be told.
    pub(super) body: Result<String, usize>,
}

impl Letter {
    /// None of a message that has no id by which others could speak of it, or that says nothing.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let id = message.id.trim();
        if id.is_empty() || id.len() > LONGEST_ID || message.body.trim_ascii().is_empty() {
            return None;
        }
        let is_urgent = message.meta_value(URGENT).is_some_and(means_urgent);
        let bytes = message.body.len();
        Some(Letter {
            msg_id: id.to_owned(),
            kind: message.kind.trim().to_owned(),
            run_id: message.run_id.trim().to_owned(),
            is_urgent,
            hash: hash(&message.kind, is_urgent, &message.body),
            // A frame around it takes room too.
            body: if bytes > LONGEST_PROMPT / 4 { Err(bytes) } else { Ok(message.body_text().into_owned()) },
        })
    }
}

/// The same of a message that is posted.
pub(super) fn hash_of_draft(draft: &Draft) -> String {
    let urgent = draft.meta.iter().find(|(key, _)| key == URGENT);
    hash(&draft.kind, urgent.is_some_and(|(_, value)| means_urgent(value)), &draft.body)
}

/// What counts of a message, in short.
pub(super) fn hash(kind: &str, is_urgent: bool, body: &[u8]) -> String {
    let kind = kind.trim();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(is_urgent)]).update(&(kind.len() as u64).to_le_bytes());
    hasher.update(kind.as_bytes()).update(body);
    hasher.finalize().to_hex()[..32].to_owned()
}
