//! A quick look at the text of JSON that spares most of it the long one.
//!
//! Most of what is recorded and published holds nothing that a rule could even begin with: no anchor and no part of a
//! secret name. That can be seen in the text as it stands, without taking it apart, as long as nothing in it is written in
//! another way than it reads. Parts of names are looked for across everything, so they are found in more places than they
//! would count in: that only costs the long look.
//!
//! Invariant: what is plain here, [`super::redact_json`] finds nothing in.
//! Proof: `tests/redact_properties.rs`.

use super::anchors;
use super::json::{MAX_DEPTH, has_part};

/// Whether JSON surely holds no secret, to be seen from its text alone. If not, it may or may not.
#[must_use]
pub fn is_plain_json(text: &str) -> bool {
    let mut flat = Vec::with_capacity(text.len());
    let mut depth = 0;
    for byte in text.bytes() {
        match byte {
            // Escapes hide letters, breaks of lines cut words, and other alphabets have letters that become ours.
            b'\\' | 0..=0x1f | 0x7f.. => return false,
            b'{' | b'[' => depth += 1,
            _ if byte.is_ascii_alphanumeric() => flat.push(byte.to_ascii_lowercase()),
            _ => {}
        }
    }
    depth <= MAX_DEPTH && !anchors::any(text.as_bytes()) && !has_part(&flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_records_are_plain() {
        for text in [
            r#"{"project":"p","type":"FACT"}"#,
            r#"{"actor":{"kind":"user","id":"user_local"},"action":"message.post","resource":"house","risk":"low","contained":false}"#,
            r#"{"project":"p","msg_id":"MSG-20261115-075000-153429587-PID13843-0001","type":"FACT"}"#,
            "[]",
            "7",
        ] {
            assert!(is_plain_json(text), "{text}");
        }
    }

    #[test]
    fn what_could_hold_something_is_not() {
        for text in [
            r#"{"API_Key":"x"}"#,
            r#"{"pass word":"x"}"#,
            r#"{"p\u0061ssword":"x"}"#,
            r#"{"a":"ghp_x"}"#,
            "{\"a\":\n1}",
            "{\"\u{212a}ey\":1}",
        ] {
            assert!(!is_plain_json(text), "{text}");
        }
        assert!(!is_plain_json(&"[".repeat(MAX_DEPTH + 1)));
    }
}
