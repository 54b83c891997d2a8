//! JSON as this interface writes it: compact, safe inside a page, one line.
//!
//! `<`, `>`, `&` and the two line separators of Unicode are escaped, so that text from a message can neither end a script
//! element nor break a line of an event stream in a client that splits on them.

use std::io;

use axum::http::HeaderValue;
use serde::Serialize;
use serde_json::ser::Formatter;

/// Without a charset, as clients know it.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");

/// The value and a line feed.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value);
    out.push(b'\n');
    out
}

/// Appends the value.
pub(crate) fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    let mut serializer = serde_json::Serializer::with_formatter(out, PageSafe);
    value
        .serialize(&mut serializer)
        .expect("words of this interface have string keys, and a Vec takes every byte");
}

struct PageSafe;

impl Formatter for PageSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        // Most text has nothing of the kind, and without a way out of the loop several bytes are looked at together.
        let may_escape = |byte: &u8| matches!(byte, b'<' | b'>' | b'&' | 0xe2);
        if !bytes.iter().fold(false, |found, byte| found | may_escape(byte)) {
            return writer.write_all(bytes);
        }
        let mut done = 0;
        let mut at = 0;
        while at < bytes.len() {
            let (escape, len): (&[u8], usize) = match bytes[at] {
                b'<' => (b"\\u003c", 1),
                b'>' => (b"\\u003e", 1),
                b'&' => (b"\\u0026", 1),
                0xe2 if bytes[at..].starts_with("\u{2028}".as_bytes()) => (b"\\u2028", 3),
                0xe2 if bytes[at..].starts_with("\u{2029}".as_bytes()) => (b"\\u2029", 3),
                _ => {
                    at += 1;
                    continue;
                }
            };
            writer.write_all(&bytes[done..at])?;
            writer.write_all(escape)?;
            at += len;
            done = at;
        }
        writer.write_all(&bytes[done..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_safe_inside_a_page_and_reads_back() {
        let text = "</script>&amp;\u{2028}x\u{2029}é\n\"\\ € \u{e2}";
        let line = String::from_utf8(line(&text)).unwrap();
        assert!(!line.trim_end().contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\n']), "{line}");
        assert!(line.starts_with("\"\\u003c/script\\u003e\\u0026amp;\\u2028x\\u2029é\\n"), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
