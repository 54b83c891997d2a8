//! What a person is shown of a question: without secrets, and no longer than can be looked at.
//!
//! A long text keeps its beginning and its end, because what matters may have been pushed out of sight; what lies between is
//! counted. The rules have judged the whole. The same question comes out the same, so that it is known when asked again.

use serde_json::{Map, Value, json};
use swb_rules::redact::{redact, redact_json};

/// The longest reason of a question or an answer, in bytes.
pub(crate) const LONGEST_REASON: usize = 4 * 1024;
/// The longest text inside a subject, in bytes.
const LONGEST_TEXT: usize = 8 * 1024;
/// The longest subject, in bytes of JSON.
const LONGEST: usize = 16 * 1024;
/// What stands at the end of a long text, in bytes.
const TAIL: usize = 2 * 1024;

/// The subject as it is kept and shown.
pub(super) fn presentable(mut subject: Value) -> Value {
    redact_json(&mut subject);
    shorten(&mut subject);
    let text = subject.to_string();
    let subject =
        if text.len() > LONGEST { json!({ "json": shortened(&text, LONGEST_TEXT) }) } else { subject };
    match subject {
        Value::Object(members) => Value::Object(members),
        other => Value::Object(Map::from_iter([("value".to_owned(), other)])),
    }
}

/// A reason as it is kept and shown.
pub(super) fn presentable_reason(text: &str) -> String {
    let text = redact(text).text;
    if text.len() > LONGEST_REASON { shortened(&text, LONGEST_REASON) } else { text }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => *text = shortened(text, LONGEST_TEXT),
        Value::Array(members) => members.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn shortened(text: &str, longest: usize) -> String {
    let tail_length = TAIL.min(longest / 4);
    let head = &text[..text.floor_char_boundary(longest - tail_length)];
    let tail = &text[text.ceil_char_boundary(text.len() - tail_length)..];
    let between = text.len() - head.len() - tail.len();
    format!("{head}\n[… {between} bytes are not shown …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let shown = presentable(json!({"command": format!("curl -H 'x: {key}'"), "password": "hunter2"}));
        assert!(!shown.to_string().contains(&key) && !shown.to_string().contains("hunter2"), "{shown}");
        assert!(!presentable_reason(&format!("with {key}")).contains(&key));
    }

    #[test]
    fn the_end_of_a_long_line_stays_in_sight() {
        let line = format!("echo {} ; rm -rf important", "ä".repeat(20_000));
        let shown = presentable(json!({ "command": line }));
        let text = shown["command"].as_str().unwrap();
        assert!(text.starts_with("echo ä") && text.ends_with("; rm -rf important"), "{text}");
        assert!(text.contains("bytes are not shown") && text.len() < LONGEST_TEXT + 100);
    }

    #[test]
    fn whatever_it_is_it_becomes_a_small_object_and_the_same_one_again() {
        let wide: Value = (0..5_000).map(|n| json!([n, "text"])).collect();
        for subject in [wide, json!("text"), json!(null), json!({"a": {"b": "c"}})] {
            let shown = presentable(subject.clone());
            assert!(shown.is_object() && shown.to_string().len() < LONGEST + 100, "{shown}");
            assert_eq!(presentable(subject), shown);
        }
        assert_eq!(presentable(json!({"a": 1})), json!({"a": 1}));
    }
}
