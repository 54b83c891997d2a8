//! Bodies on disk: how any bytes are stored so that no reader loses step, and how they come back exactly.
//!
//! A body ends where the next delimiter line (`---`) stands, so a body line that looks like one must never reach the
//! file. Lines of zero or more backslashes followed by `---` get one backslash more; reading takes it off again, but
//! only if the header says so, because a foreign `\---` is just text. In Markdown the escaped line shows as `---`.
//!
//! On disk a body is followed by a newline it may not have had, and then by the separator of the next record. One rule
//! removes both, so a message reads the same whether or not another follows it. What the rule cannot give back (a
//! body of several lines could be cut at any of them; a final newline is lost) is noted by length in the header.

use std::borrow::Cow;

use super::header::BodyNote;
use super::record::BodyState;

/// The body as it goes into the file, and what must be noted about it in the header.
pub(super) fn store(body: &[u8]) -> (Cow<'_, [u8]>, BodyNote) {
    if memchr::memchr2(b'\n', b'\r', body).is_none() && !is_marker(body) {
        return (Cow::Borrowed(body), BodyNote::default());
    }
    let stored = escape(body);
    let escaped = matches!(stored, Cow::Owned(_));
    let note = BodyNote { bytes: Some(stored.len()), escaped };
    (stored, note)
}

/// How sure a reader can be that the last record of a file is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The noted length is reached.
    Whole,
    /// It ends like a record; whether more lines are on their way only the writer's lock can tell.
    Unsealed,
    /// A legacy line without its newline: whole for a reader of this moment, not for one that goes on.
    Unterminated,
    /// It stops in the middle.
    Cut,
}

/// Judges the bytes between a header and the end of the file, and says how many of them belong to the record.
pub(super) fn ending(raw: &[u8], note: BodyNote) -> (Ending, usize) {
    if let Some(bytes) = note.bytes {
        let len = stored_len(raw, bytes);
        return if raw.len() >= len { (Ending::Whole, len) } else { (Ending::Cut, raw.len()) };
    }
    let settled = without_torn_opener(raw);
    let own = if settled.len() < raw.len() { without_separator(settled) } else { raw };
    match own {
        [.., b'\n'] => (Ending::Unsealed, own.len()),
        _ => (Ending::Cut, raw.len()),
    }
}

/// Body plus the newline that closes it.
fn stored_len(raw: &[u8], bytes: usize) -> usize {
    let closed = bytes > 0 && raw.get(bytes - 1) == Some(&b'\n');
    if closed { bytes } else { bytes + 1 }
}

/// A writer that was stopped within the next record's first line leaves up to three dashes behind the separator.
fn without_torn_opener(raw: &[u8]) -> &[u8] {
    let rest = without_torn_dashes(raw);
    if rest.ends_with(b"\n\n") { rest } else { raw }
}

fn without_torn_dashes(raw: &[u8]) -> &[u8] {
    let dashes = raw.iter().rev().take(4).take_while(|byte| **byte == b'-').count();
    let rest = &raw[..raw.len() - dashes];
    if dashes <= 3 && rest.ends_with(b"\n") { rest } else { raw }
}

/// The body of a record, from the bytes between its header and the next opener (`closed`) or the end of the file.
pub(super) fn restore(raw: &[u8], note: BodyNote, closed: bool) -> (Cow<'_, [u8]>, BodyState) {
    let Some(bytes) = note.bytes else {
        let settled = without_torn_opener(raw);
        let raw = if closed || settled.len() < raw.len() { without_separator(settled) } else { raw };
        return (Cow::Borrowed(without_newline(raw)), BodyState::Whole);
    };
    if let Some((body, rest)) = raw.split_at_checked(bytes) {
        let rest = if closed { rest } else { without_torn_dashes(rest) };
        let only_line_ends = rest.iter().all(|byte| matches!(byte, b'\n' | b'\r'));
        if only_line_ends && rest.len() <= 4 {
            return (if note.escaped { unescape(body) } else { Cow::Borrowed(body) }, BodyState::Whole);
        }
    }
    let state = if raw.len() < bytes { BodyState::Cut } else { BodyState::Altered };
    let body = without_newline(if closed { without_separator(raw) } else { raw });
    (if note.escaped { unescape(body) } else { Cow::Borrowed(body) }, state)
}

/// Every appender puts one newline before a record; files turned into CRLF have two bytes there.
fn without_separator(raw: &[u8]) -> &[u8] {
    match raw {
        [.., b'\n', b'\r', b'\n'] => &raw[..raw.len() - 2],
        [.., b'\n', b'\n'] => &raw[..raw.len() - 1],
        _ => raw,
    }
}

fn without_newline(raw: &[u8]) -> &[u8] {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    raw.strip_suffix(b"\r").unwrap_or(raw)
}

/// Whether a line without its newline is a delimiter, or one behind backslashes.
fn is_marker(line: &[u8]) -> bool {
    let dashes = line.iter().take_while(|byte| **byte == b'\\').count();
    line[dashes..].strip_prefix(b"---").is_some_and(|rest| rest.iter().all(|byte| *byte == b'\r'))
}

fn escape(body: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(body, b"---").is_none() {
        return Cow::Borrowed(body);
    }
    let mut out = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if is_marker(line.strip_suffix(b"\n").unwrap_or(line)) {
            out.extend_from_slice(&body[copied..at]);
            out.push(b'\\');
            copied = at;
        }
        at += line.len();
    }
    if out.is_empty() {
        return Cow::Borrowed(body);
    }
    out.extend_from_slice(&body[copied..]);
    Cow::Owned(out)
}

fn unescape(body: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let escaped = line.first() == Some(&b'\\') && is_marker(line.strip_suffix(b"\n").unwrap_or(line));
        out.extend_from_slice(&line[usize::from(escaped)..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on_disk(body: &[u8]) -> (Vec<u8>, BodyNote) {
        let (stored, note) = store(body);
        let mut raw = stored.into_owned();
        if raw.last() != Some(&b'\n') {
            raw.push(b'\n');
        }
        (raw, note)
    }

    fn reads_back(body: &[u8]) {
        let (raw, note) = on_disk(body);
        let mut lines = raw.split(|byte| *byte == b'\n');
        let delimiter =
            lines.any(|line| line.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(|b| *b == b'\r')));
        assert!(!delimiter, "a delimiter line of {body:?} reached the file");
        assert_eq!(restore(&raw, note, false), (Cow::Borrowed(body), BodyState::Whole), "as the last record");
        assert_ne!(ending(&raw, note).0, Ending::Cut);
        assert_eq!(ending(&raw, note).1, raw.len());
        let mut followed = raw.clone();
        followed.push(b'\n');
        assert_eq!(
            restore(&followed, note, true),
            (Cow::Borrowed(body), BodyState::Whole),
            "with one after it"
        );
        if note.bytes.is_some() {
            for cut in 0..raw.len() {
                assert_eq!(ending(&raw[..cut], note).0, Ending::Cut, "cut at {cut}");
            }
        }
    }

    #[test]
    fn awkward_bodies_read_back_exactly() {
        for body in [
            "",
            "x",
            "x\n",
            "x\n\n",
            "x\r",
            "x\r\n",
            "\n",
            "\r",
            "\r\n",
            "---",
            "---\n",
            "---\r\r\n",
            "\\---",
            "\\\\---\r\n",
            "a\n---\nmsg_id: forged\n---\nb",
            "--- ",
            " ---",
            "----",
            "--",
            "-",
            "a\n\n-",
            "a\n\n---",
            "a\u{0}b",
        ] {
            reads_back(body.as_bytes());
        }
        reads_back(b"\xff\xfe\n---\n\xff");
    }

    #[test]
    fn a_single_line_needs_no_note() {
        assert_eq!(store(b"hello").1, BodyNote::default());
        assert_eq!(store(b"").1, BodyNote::default());
        assert_eq!(store(b"---").1, BodyNote { bytes: Some(4), escaped: true });
    }

    #[test]
    fn a_foreign_body_reads_the_same_whatever_follows() {
        for (last, followed) in
            [("hello\n", "hello\n\n"), ("a\nb\n", "a\nb\n\n"), ("\n", "\n\n"), ("x\n\n", "x\n\n\n")]
        {
            let note = BodyNote::default();
            assert_eq!(restore(last.as_bytes(), note, false), restore(followed.as_bytes(), note, true));
        }
        assert_eq!(
            restore(b"hi\r\n\r\n", BodyNote::default(), true).0,
            restore(b"hi\r\n", BodyNote::default(), false).0
        );
    }

    #[test]
    fn a_cut_and_an_edited_body_are_recognised() {
        let note = BodyNote { bytes: Some(8), escaped: false };
        assert_eq!(restore(b"one\n\n", note, true), (Cow::Borrowed(&b"one"[..]), BodyState::Cut));
        assert_eq!(restore(b"one two three\n\n", note, true).1, BodyState::Altered);
    }

    proptest! {
        #[test]
        fn any_bytes_read_back(body: Vec<u8>) {
            reads_back(&body);
        }

        #[test]
        fn any_lines_read_back(lines in prop::collection::vec("(\\\\{0,2}-{0,4}|[ab: ]{0,3})\r{0,2}\n?", 0..8)) {
            reads_back(lines.concat().as_bytes());
        }
    }
}
