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
    let bytes = text.as_bytes();
    // Escapes hide letters, breaks of lines cut words, and other alphabets have letters that become ours. Without a way
    // out of the loop several bytes are looked at together.
    let hides = |byte: &u8| matches!(byte, b'\\' | 0..=0x1f | 0x7f..);
    if bytes.iter().fold(false, |found, byte| found | hides(byte)) {
        return false;
    }
    let opened = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    opened <= MAX_DEPTH && !anchors::any(bytes) && !has_part(&flat(bytes))
}

/// The letters and digits, in lower case.
fn flat(bytes: &[u8]) -> Vec<u8> {
    let mut flat = vec![0; bytes.len()];
    let mut length = 0;
    for byte in bytes {
        // What does not belong there is written over by the next: cheaper than to decide each time.
        let letter = FLAT[usize::from(*byte)];
        flat[length] = letter;
        length += usize::from(letter != 0);
    }
    flat.truncate(length);
    flat
}

/// Letters and digits in lower case; nothing for the rest.
const FLAT: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

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
