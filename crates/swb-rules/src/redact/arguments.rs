//! Redaction of a JSON text that comes in chunks: the arguments of a call while a model writes them.
//!
//! A small automaton follows the text and knows which name each value stands behind. What
//! [`redact_json`](super::redact_json) would hide because of its name is hidden here, too; everything else goes through a
//! [`RedactedStream`]. Text that is no JSON still loses the secrets that are told by their looks.
//! Invariants: the result does not depend on the chunks; memory is bounded by a name and the way down to it, and what is
//! hidden is never kept. Proof: the tests below, against `redact_json`.

use super::json::{HIDDEN, MAX_DEPTH, Secrecy, secrecy};
use super::stream::RedactedStream;

/// A longer name is taken for a secret one.
const LONGEST_NAME: usize = 1024;

/// Redacts the text of a JSON value in chunks.
#[derive(Debug, Default)]
pub struct RedactedArguments {
    stream: RedactedStream,
    /// The objects and lists that are open.
    open: Vec<Open>,
    /// The member whose name was read: why its value is hidden.
    member: Option<Option<Secrecy>>,
    at: At,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    /// Why everything in it is hidden.
    hidden_by: Option<Secrecy>,
}

#[derive(Debug, Default)]
enum At {
    /// Between texts.
    #[default]
    Between,
    /// In the name of a member, which is kept with its quotes.
    Name {
        text: String,
        escaped: bool,
    },
    Text {
        escaped: bool,
    },
    HiddenText {
        is_replaced: bool,
        escaped: bool,
    },
    HiddenNumber,
    /// Nothing more is shown.
    TooDeep,
}

impl RedactedArguments {
    /// Takes a chunk; gives the text that can leave.
    pub fn push(&mut self, chunk: &str) -> String {
        let mut shown = String::with_capacity(chunk.len());
        chunk.chars().for_each(|character| self.take(character, &mut shown));
        self.stream.push(&shown)
    }

    /// Takes the end of the text; gives the rest.
    #[must_use]
    pub fn finish(self) -> String {
        self.stream.finish().0
    }

    fn take(&mut self, character: char, shown: &mut String) {
        match &mut self.at {
            At::TooDeep => return,
            At::Between => return self.between(character, shown),
            At::HiddenNumber if matches!(character, '0'..='9' | '.' | '-' | '+' | 'e' | 'E') => return,
            At::HiddenNumber => {
                self.at = At::Between;
                return self.between(character, shown);
            }
            At::Text { escaped } => {
                if ends_text(character, escaped) {
                    self.at = At::Between;
                }
            }
            At::HiddenText { is_replaced, escaped } => {
                if ends_text(character, escaped) {
                    self.at = At::Between;
                } else {
                    if !std::mem::replace(is_replaced, true) {
                        shown.push_str(HIDDEN);
                    }
                    return;
                }
            }
            At::Name { text, escaped } => {
                if text.len() < LONGEST_NAME {
                    text.push(character);
                }
                if ends_text(character, escaped) {
                    // One that was too long has no end, and is no text any more.
                    let name = serde_json::from_str::<String>(text);
                    let above = self.open.last().and_then(|open| open.hidden_by);
                    let own = || name.map_or(Some(Secrecy::All), |name| secrecy(&name));
                    self.member = Some(above.or_else(own));
                    self.at = At::Between;
                }
            }
        }
        shown.push(character);
    }

    fn between(&mut self, character: char, shown: &mut String) {
        let inside = self.open.last().copied();
        let hidden_by = self.member.unwrap_or_else(|| inside.and_then(|open| open.hidden_by));
        match character {
            '{' | '[' if self.open.len() > MAX_DEPTH => {
                self.at = At::TooDeep;
                return;
            }
            '{' | '[' => {
                self.open.push(Open { is_object: character == '{', hidden_by });
                self.member = None;
            }
            '}' | ']' => {
                self.open.pop();
                self.member = None;
            }
            ',' => self.member = None,
            '"' if inside.is_some_and(|open| open.is_object) && self.member.is_none() => {
                self.at = At::Name { text: "\"".to_owned(), escaped: false };
            }
            '"' if hidden_by.is_some() => self.at = At::HiddenText { is_replaced: false, escaped: false },
            '"' => self.at = At::Text { escaped: false },
            '-' | '0'..='9' if hidden_by == Some(Secrecy::All) => {
                self.at = At::HiddenNumber;
                shown.push('"');
                shown.push_str(HIDDEN);
                shown.push('"');
                return;
            }
            _ => {}
        }
        shown.push(character);
    }
}

fn ends_text(character: char, escaped: &mut bool) -> bool {
    let was_escaped = std::mem::take(escaped);
    *escaped = character == '\\' && !was_escaped;
    character == '"' && !was_escaped
}

#[cfg(test)]
mod tests {
    use super::super::redact_json;
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn in_chunks(text: &str, size: usize) -> String {
        let mut arguments = RedactedArguments::default();
        let characters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for chunk in characters.chunks(size) {
            shown += &arguments.push(&chunk.iter().collect::<String>());
        }
        shown + &arguments.finish()
    }

    #[test]
    fn what_stands_behind_a_secret_name_is_hidden_in_whatever_pieces_it_comes() {
        let value = json!({
            "path": "a \"b\" \\", "token": "hunter2", "n": -1.5e3, "max_tokens": 7, "list": [1, { "x": true }],
            "db": { "password": 12, "passwd": "", "user": "ann" }, "secrets": ["a\"", { "b": ["c", null] }, 3], "last": {},
        });
        let mut expected = value.clone();
        redact_json(&mut expected);
        for size in [1, 2, 3, 7, 1000] {
            let shown = in_chunks(&value.to_string(), size);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected, "{shown}");
        }
        let escaped = r#"{"to\u006ben" : "hunter2" , "x":"y"}"#;
        assert_eq!(in_chunks(escaped, 1), r#"{"to\u006ben" : "[REDACTED]" , "x":"y"}"#);
    }

    #[test]
    fn what_is_no_json_and_what_has_no_end_shows_nothing_secret() {
        for text in [
            r#"{"token":"hunter2"#,
            r#"{"token": {"a": "hunter2"#,
            r#"{"password":1234"#,
            r#"{"password":"x\"hunter2"#,
            &format!(r#"{{"{}":"hunter2"}}"#, "x".repeat(3 * LONGEST_NAME)),
            &format!(r#"{}"hunter2"#, r#"{"a":"#.repeat(2 * MAX_DEPTH)),
        ] {
            let shown = in_chunks(text, 5);
            assert!(!shown.contains("hunter2") && !shown.contains("1234"), "{shown}");
        }
        for text in ["plain words, \"quoted\": 7", "]}}{,:\"", ""] {
            assert_eq!(in_chunks(text, 2), text);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let name =
            prop_oneof!["[a-c]{1,3}", Just("api_key".to_owned()), Just("tokens".to_owned()), "\\PC{0,6}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],: ]{0,7}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(name.clone(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_says_what_the_value_would(value in values(), size in 1usize..9) {
            let mut expected = value.clone();
            redact_json(&mut expected);
            let shown = in_chunks(&value.to_string(), size);
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected);
        }
    }
}
