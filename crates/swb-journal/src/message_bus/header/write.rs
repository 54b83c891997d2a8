//! The header writer: canonical keys, order and indentation, by hand.
//!
//! A value goes out plain only if it starts with a letter and no YAML version would take it for anything but text;
//! everything else is double-quoted on one line. So no value can start a line, and none can look like a delimiter.

use std::borrow::Cow;
use std::io::Write as _;

use super::BodyNote;
use crate::message_bus::record::{Draft, META_BYTES, META_ESCAPED, META_KEY};
use crate::message_bus::timestamp::Timestamp;

/// Appends the opener and the two fields that are known only under the lock.
pub(in crate::message_bus) fn head(out: &mut Vec<u8>, id: &str, timestamp: Timestamp) {
    out.extend_from_slice(b"---\nmsg_id: ");
    scalar(out, id);
    out.extend_from_slice(b"\nts: ");
    timestamp.write_to(out);
    out.push(b'\n');
}

/// Appends the fields from `type` to `issue_id`, if one was given.
pub(in crate::message_bus) fn scope(out: &mut Vec<u8>, draft: &Draft) {
    field(out, "type: ", &draft.kind);
    field(out, "project_id: ", &draft.project_id);
    field(out, "task_id: ", &draft.task_id);
    field(out, "run_id: ", &draft.run_id);
    if !draft.issue_id.is_empty() {
        issue(out, &draft.issue_id);
    }
}

/// Whether the message is an issue that is known by its own id.
pub(in crate::message_bus) fn is_own_issue(draft: &Draft) -> bool {
    draft.issue_id.is_empty() && draft.kind == "ISSUE"
}

/// Appends `issue_id`.
pub(in crate::message_bus) fn issue(out: &mut Vec<u8>, id: &str) {
    field(out, "issue_id: ", id);
}

/// Appends everything after `issue_id`, and the closing `---`.
pub(in crate::message_bus) fn rest(out: &mut Vec<u8>, draft: &Draft, note: BodyNote) {
    parents(out, draft);
    links(out, draft);
    meta(out, draft, note);
    out.extend_from_slice(b"---\n");
}

fn parents(out: &mut Vec<u8>, draft: &Draft) {
    if draft.parents.is_empty() {
        return;
    }
    out.extend_from_slice(b"parents:\n");
    for parent in &draft.parents {
        field(out, "    - msg_id: ", &parent.id);
        if !parent.kind.is_empty() {
            field(out, "      kind: ", &parent.kind);
        }
        if !parent.meta.is_empty() {
            out.extend_from_slice(b"      meta:\n");
            let mut pairs: Vec<_> =
                parent.meta.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
            mapping(out, "        ", &mut pairs);
        }
    }
}

fn links(out: &mut Vec<u8>, draft: &Draft) {
    if draft.links.is_empty() {
        return;
    }
    out.extend_from_slice(b"links:\n");
    for link in &draft.links {
        field(out, "    - url: ", &link.url);
        if !link.label.is_empty() {
            field(out, "      label: ", &link.label);
        }
        if !link.kind.is_empty() {
            field(out, "      kind: ", &link.kind);
        }
    }
}

fn meta(out: &mut Vec<u8>, draft: &Draft, note: BodyNote) {
    if draft.meta.is_empty() && note == BodyNote::default() && draft.idempotency_key.is_none() {
        return;
    }
    let bytes = note.bytes.map(|bytes| bytes.to_string());
    let mut pairs: Vec<(&str, &str)> =
        draft.meta.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    if let Some(bytes) = &bytes {
        pairs.push((META_BYTES, bytes));
    }
    if note.escaped {
        pairs.push((META_ESCAPED, "1"));
    }
    if let Some(key) = &draft.idempotency_key {
        pairs.push((META_KEY, key.as_str()));
    }
    if !pairs.is_empty() {
        out.extend_from_slice(b"meta:\n");
        mapping(out, "    ", &mut pairs);
    }
}

fn mapping(out: &mut Vec<u8>, indent: &str, pairs: &mut [(&str, &str)]) {
    pairs.sort_by(|left, right| natural_order(left.0, right.0));
    for (key, value) in pairs {
        out.extend_from_slice(indent.as_bytes());
        scalar(out, key);
        field(out, ": ", value);
    }
}

fn field(out: &mut Vec<u8>, prefix: &str, value: &str) {
    out.extend_from_slice(prefix.as_bytes());
    scalar(out, value);
    out.push(b'\n');
}

fn scalar(out: &mut Vec<u8>, value: &str) {
    if is_plain(value) {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(b'"');
    for c in value.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if needs_escape(c) => {
                // Writing into a vector cannot fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => {
                let mut buffer = [0; 4];
                out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// Characters YAML calls unprintable, line breaks of older YAML versions, and the byte-order mark.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn is_plain(value: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.bytes().all(safe)
        && !RESOLVES_TO_OTHER.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Words that some YAML version reads as null or a boolean.
const RESOLVES_TO_OTHER: [&str; 9] = ["null", "true", "false", "y", "n", "yes", "no", "on", "off"];

/// Runs of digits compare as numbers, everything else byte by byte.
fn natural_order(left: &str, right: &str) -> std::cmp::Ordering {
    let key = |text: &str| -> Vec<(Cow<'static, str>, u128)> {
        let mut parts: Vec<(Cow<'static, str>, u128)> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let words = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(words);
            let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            let (number, tail) = tail.split_at(digits);
            parts.push((Cow::Owned(word.to_owned()), number.parse().unwrap_or(0)));
            rest = tail;
        }
        parts
    };
    key(left).cmp(&key(right)).then_with(|| left.cmp(right))
}
