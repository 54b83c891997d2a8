//! The YAML front matter of a record: two readers with one answer, and one writer.
//!
//! Nearly every header was written by a program and has the canonical shape; [`canonical`] reads that shape line by
//! line and borrows. Anything it is not sure of goes to [`yaml`], a real YAML parser under a budget. The canonical
//! reader may decline but must never answer differently; `tests::both_readers_agree` holds it to that.
//! [`mod@write`] emits only what the canonical reader accepts or what any YAML 1.2 parser reads as the same text.
//!
//! Rules carried by both: unknown keys are ignored; scalars of any type count as their source text and null as empty;
//! a duplicate key, a wrong type or a bad time drops the whole record; an empty header is a record with empty fields.

pub(super) mod canonical;
pub(super) mod write;
pub(super) mod yaml;

use super::record::{META_BYTES, META_ESCAPED, META_KEY, RESERVED_META_PREFIX, Record};

/// What the writer noted about the body because the format cannot show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BodyNote {
    /// Length of the stored body in bytes.
    pub(super) bytes: Option<usize>,
    /// Lines that look like delimiters carry one backslash more than the poster wrote.
    pub(super) escaped: bool,
}

/// Header fields in a record without body, and the note about the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) record: Record<'a>,
    pub(super) note: BodyNote,
}

impl<'a> Header<'a> {
    /// Moves the reserved keys out of `meta`, where no door should show them.
    fn from_fields(mut record: Record<'a>) -> Self {
        let mut note = BodyNote::default();
        if record.meta.iter().any(|(key, _)| key.starts_with(RESERVED_META_PREFIX)) {
            record.meta.retain_mut(|(key, value)| match key.as_ref() {
                META_BYTES => {
                    note.bytes = value.parse().ok();
                    false
                }
                META_ESCAPED => {
                    note.escaped = value == "1";
                    false
                }
                META_KEY => {
                    record.idempotency_key = Some(std::mem::take(value));
                    false
                }
                _ => true,
            });
        }
        Self { record, note }
    }
}

/// Whether a text between two delimiter lines would be taken for a header.
pub(super) fn is_header(text: &[u8]) -> bool {
    if is_plain_prose(text) {
        return false;
    }
    yaml::decode(text).is_some()
}

/// A cheap and safe "no" for bodies: a document whose first line starts with a letter or digit in the first column
/// and holds no colon begins with a plain scalar that is no key, so it is not a mapping whatever follows.
fn is_plain_prose(text: &[u8]) -> bool {
    let line = match memchr::memchr(b'\n', text) {
        Some(end) => &text[..end],
        None => text,
    };
    line.first().is_some_and(u8::is_ascii_alphanumeric) && memchr::memchr(b':', line).is_none()
}

#[cfg(test)]
mod tests;
