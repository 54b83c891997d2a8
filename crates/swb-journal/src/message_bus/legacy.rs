//! The older one-line form: `[time] TYPE: text`, recognised only before a file's first delimiter line.

use std::borrow::Cow;

use super::record::Record;
use super::timestamp::Timestamp;

/// Reads one line; its number in the file becomes the message's id.
pub(super) fn parse_line(line: &[u8], number: u64) -> Option<Record<'_>> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let (time, rest) = text.strip_prefix('[')?.split_once(']')?;
    let timestamp = Timestamp::parse_legacy(time.trim())?;
    let rest = rest.trim();
    if rest.is_empty() {
        return None;
    }
    let (kind, body) = match rest.split_once(':') {
        Some((tag, text)) if is_tag(tag.trim()) => {
            let text = text.trim();
            (Cow::Owned(tag.trim().to_ascii_uppercase()), if text.is_empty() { rest } else { text })
        }
        _ => (Cow::Borrowed("INFO"), rest),
    };
    Some(Record {
        id: Cow::Owned(format!("LEGACY-LINE-{number:09}")),
        timestamp: Some(timestamp),
        kind,
        body: Cow::Borrowed(body.as_bytes()),
        ..Record::default()
    })
}

fn is_tag(tag: &str) -> bool {
    !tag.is_empty()
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_legacy_line() {
        let read = |line: &str| {
            parse_line(line.as_bytes(), 7)
                .map(|record| (record.kind.to_string(), record.body_text().into_owned()))
        };
        let some = |kind: &str, body: &str| Some((kind.to_owned(), body.to_owned()));
        assert_eq!(read("[2026-02-23 10:00:00] fact: it works\r\n"), some("FACT", "it works"));
        assert_eq!(read("  [ 2026-02-23T10:00:00Z ] plain text "), some("INFO", "plain text"));
        assert_eq!(read("[2026-02-23 10:00:00] two words: text"), some("INFO", "two words: text"));
        assert_eq!(read("[2026-02-23 10:00:00] TAG:"), some("TAG", "TAG:"));
        assert_eq!(read("[2026-02-23 10:00:00]"), None);
        assert_eq!(read("[yesterday] x"), None);
        assert_eq!(read("- [ ] todo"), None);
        assert_eq!(parse_line(b"[2026-02-23 10:00:00] x", 12).unwrap().id, "LEGACY-LINE-000000012");
    }
}
