//! The borrowed reader for headers in the shape programs write them.
//!
//! Keys in their fixed order, one per line, values plain from a small alphabet or in double quotes without escapes.
//! Everything else makes it decline, which costs speed and never correctness. It reads straight from the opener
//! through the closing delimiter, so the usual record is touched once.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Header;
use crate::message_bus::record::{Link, Parent, Record};
use crate::message_bus::timestamp::Timestamp;

/// Reads a header that starts at the first byte, and its closing `---` line. Returns the bytes used by both.
#[inline]
pub(in crate::message_bus) fn decode_prefix(bytes: &[u8]) -> Option<(Header<'_>, usize)> {
    // All of it is checked to be text once; the fields are then cut out of it.
    let end = CLOSER.find(&bytes[..bytes.len().min(LONGEST)])? + 5;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = Lines { text, at: 0 };
    let mut record = Record {
        id: lines.field(b"msg_id: ")?,
        timestamp: Some(Timestamp::parse_unquoted(lines.plain_field(b"ts: ")?)?),
        kind: lines.field(b"type: ")?,
        project_id: lines.field(b"project_id: ")?,
        task_id: lines.field(b"task_id: ")?,
        run_id: lines.field(b"run_id: ")?,
        ..Record::default()
    };
    if lines.closes() {
        return Some((Header { record, note: super::BodyNote::default() }, lines.at));
    }
    if lines.starts_with(b"issue_id: ") {
        record.issue_id = lines.field(b"issue_id: ")?;
    }
    if lines.skip(b"parents:\n") {
        record.parents = lines.parents()?;
    }
    if lines.skip(b"links:\n") {
        record.links = lines.links()?;
    }
    if lines.skip(b"meta:\n") {
        record.meta = lines.meta()?;
    }
    lines.closes().then(|| (Header::from_fields(record), lines.at))
}

/// Longer headers are rare enough for the general reader; a limit keeps a search for the end from running away.
const LONGEST: usize = 4096;

static CLOSER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n---\n"));

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    fn starts_with(&self, prefix: &[u8]) -> bool {
        self.text.as_bytes()[self.at..].starts_with(prefix)
    }

    fn skip(&mut self, prefix: &[u8]) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn closes(&mut self) -> bool {
        self.skip(b"---\n")
    }

    /// The rest of the line after `prefix`, without its newline.
    fn rest_of_line(&mut self, prefix: &[u8]) -> Option<&'a str> {
        if !self.skip(prefix) {
            return None;
        }
        let start = self.at;
        let end = start + memchr::memchr(b'\n', &self.text.as_bytes()[start..])?;
        self.at = end + 1;
        self.text.get(start..end)
    }

    fn field(&mut self, prefix: &[u8]) -> Option<Cow<'a, str>> {
        value(self.rest_of_line(prefix)?)
    }

    /// A field that must not be quoted.
    fn plain_field(&mut self, prefix: &[u8]) -> Option<&'a str> {
        plain(self.rest_of_line(prefix)?)
    }

    fn parents(&mut self) -> Option<Vec<Parent<'a>>> {
        let mut parents = Vec::new();
        while self.starts_with(b"    - ") {
            let id = self.field(b"    - msg_id: ")?;
            let kind =
                if self.starts_with(b"      kind: ") { self.field(b"      kind: ")? } else { Cow::default() };
            parents.push(Parent { id, kind, meta: Vec::new() });
        }
        (!parents.is_empty()).then_some(parents)
    }

    fn links(&mut self) -> Option<Vec<Link<'a>>> {
        let mut links = Vec::new();
        while self.starts_with(b"    - ") {
            let url = self.field(b"    - url: ")?;
            let label = if self.starts_with(b"      label: ") {
                self.field(b"      label: ")?
            } else {
                Cow::default()
            };
            let kind =
                if self.starts_with(b"      kind: ") { self.field(b"      kind: ")? } else { Cow::default() };
            links.push(Link { url, label, kind });
        }
        (!links.is_empty()).then_some(links)
    }

    fn meta(&mut self) -> Option<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
        let mut meta: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        while self.skip(b"    ") {
            let rest = self.text.get(self.at..)?;
            let len = rest.bytes().take_while(|byte| is_key_byte(*byte)).count();
            let key = rest.get(..len)?;
            if !key.starts_with(|first: char| first.is_ascii_alphabetic()) || is_null_word(key.as_bytes()) {
                return None;
            }
            self.at += len;
            let value = self.field(b": ")?;
            if meta.iter().any(|(known, _)| known == key) {
                return None;
            }
            meta.push((Cow::Borrowed(key), value));
        }
        (!meta.is_empty()).then_some(meta)
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn value(text: &str) -> Option<Cow<'_, str>> {
    if let Some(inner) = text.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        let simple = inner.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
        return simple.then_some(Cow::Borrowed(inner));
    }
    plain(text).map(Cow::Borrowed)
}

/// A plain scalar of characters that mean nothing to YAML where they stand.
fn plain(value: &str) -> Option<&str> {
    let text = value.as_bytes();
    let (first, last) = (text.first()?, text.last()?);
    let safe_edges = (first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/' | b'.'))
        && !matches!(last, b' ' | b':');
    if !safe_edges || is_null_word(text) {
        return None;
    }
    // Without an early exit the loop keeps several bytes in flight.
    let seen = text.iter().fold(0, |seen, byte| seen | CLASS[usize::from(*byte)]);
    if seen & UNUSUAL != 0 || (seen & COLON != 0 && text.windows(2).any(|pair| pair == b": ")) {
        return None;
    }
    Some(value)
}

fn is_null_word(text: &[u8]) -> bool {
    matches!(text, b"null" | b"Null" | b"NULL")
}

/// A byte that a plain scalar of the canonical shape does not hold.
const UNUSUAL: u8 = 1;
const COLON: u8 = 2;

const CLASS: [u8; 256] = {
    let mut table = [UNUSUAL; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'@' | b',' | b';' | b' ' | b'?' | b'(' | b')'
            );
        if plain {
            table[byte as usize] = 0;
        }
        byte += 1;
    }
    table[b':' as usize] = COLON;
    table
};
