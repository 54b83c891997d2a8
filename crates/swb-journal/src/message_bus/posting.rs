//! A poster's drafts, checked and written out as far as that is possible before their place in the file is known.
//!
//! Id and time are taken under the lock, and a few fields depend on them; everything else is text by then, so that the
//! lock is held for little more than one write. A posting owns its text: another thread may be the one that writes it.

use super::append::AppendErrorKind;
use super::body;
use super::header::write;
use super::idempotency::IdempotencyKey;
use super::message_id::MessageId;
use super::record::{Draft, RESERVED_META_PREFIX};
use super::timestamp::Timestamp;

/// What one call posts: its records stand side by side in one file.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) records: Vec<Rendered>,
}

impl Posting {
    /// Checks the drafts and writes them out.
    pub(super) fn new(drafts: &[Draft]) -> Result<Self, AppendErrorKind> {
        drafts.iter().try_for_each(validate)?;
        Ok(Self { records: drafts.iter().map(Rendered::new).collect() })
    }
}

/// A record without its id and time.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) key: Option<IdempotencyKey>,
    /// The poster's own time for it.
    pub(super) timestamp: Option<Timestamp>,
    /// Everything behind `ts`, with the body.
    text: Vec<u8>,
    /// Where in the text an issue's own id belongs.
    own_issue: Option<usize>,
}

impl Rendered {
    fn new(draft: &Draft) -> Self {
        let (stored, note) = body::store(&draft.body);
        let mut text = Vec::with_capacity(stored.len() + 192);
        write::scope(&mut text, draft);
        let own_issue = write::is_own_issue(draft).then_some(text.len());
        write::rest(&mut text, draft, note);
        text.extend_from_slice(&stored);
        if stored.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        Self { key: draft.idempotency_key.clone(), timestamp: draft.timestamp, text, own_issue }
    }

    /// Appends the record to what is about to be written.
    pub(super) fn write_to(&self, out: &mut Vec<u8>, id: &MessageId, timestamp: Timestamp) {
        write::head(out, id.as_str(), timestamp);
        let (before, after) = self.text.split_at(self.own_issue.unwrap_or(0));
        out.extend_from_slice(before);
        if self.own_issue.is_some() {
            write::issue(out, id.as_str());
        }
        out.extend_from_slice(after);
    }
}

fn validate(draft: &Draft) -> Result<(), AppendErrorKind> {
    if draft.kind.trim().is_empty() {
        return Err(AppendErrorKind::Blank { field: "type" });
    }
    if draft.project_id.trim().is_empty() {
        return Err(AppendErrorKind::Blank { field: "project_id" });
    }
    for (index, (key, _)) in draft.meta.iter().enumerate() {
        if key.starts_with(RESERVED_META_PREFIX) {
            return Err(AppendErrorKind::ReservedMeta { key: key.clone() });
        }
        if draft.meta[..index].iter().any(|(earlier, _)| earlier == key) {
            return Err(AppendErrorKind::RepeatedMeta { key: key.clone() });
        }
    }
    Ok(())
}
