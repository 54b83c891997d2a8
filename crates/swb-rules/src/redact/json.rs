//! JSON: values behind names that say they are secret, and secrets inside any other text.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::custom::installed;
use super::redact;

/// What stands in the place of a value whose name is secret.
pub(super) const HIDDEN: &str = "[REDACTED]";
/// Deeper than any parser would have let through.
pub(super) const MAX_DEPTH: usize = 128;

/// Shorter texts hold no secret that a rule would find, nor do shorter words of small letters.
const SHORTEST_SECRET: usize = 8;
const SHORTEST_WORD: usize = 20;

/// The place of `token` in [`NAMES`]: numbers behind it are counts.
const TOKEN: usize = 0;
/// Parts of names, without case and separators.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authorization",
    "bearer",
    "privatekey",
    "accesskey",
    "credential",
    "setcookie",
    "sessionkey",
    "signingkey",
    "encryptionkey",
];

/// Names that hold such a part and no secret.
const OPEN_NAMES: &[&str] = &[
    "tokentype",
    "tokenizer",
    "tokenendpoint",
    "tokenurl",
    "tokenlimit",
    "tokencount",
    "secretname",
    "passwordpolicy",
];

/// The rule that hides a value because of its name.
pub(super) const BY_NAME: &str = "secret-name";

/// Redacts a value in place: what stands behind a secret name is hidden whole, everything else is looked through.
/// Gives the rules that found something, each once.
///
/// Numbers behind names with `token` are counts and stay; so does the shape of what is hidden.
pub fn redact_json(value: &mut Value) -> Vec<&'static str> {
    let mut found = Found::default();
    walk(value, None, 0, &mut found);
    found.0
}

/// The rules that found something.
#[derive(Default)]
struct Found(Vec<&'static str>);

impl Found {
    fn note(&mut self, rule: &'static str) {
        if let Err(at) = self.0.binary_search(&rule) {
            self.0.insert(at, rule);
        }
    }

    /// The text without its secrets, if there were any.
    fn look_through(&mut self, text: &str) -> Option<String> {
        if is_too_plain(text) {
            return None;
        }
        let redacted = redact(text);
        redacted.matches.iter().for_each(|secret| self.note(secret.rule));
        (!redacted.matches.is_empty()).then_some(redacted.text)
    }
}

fn walk(value: &mut Value, hidden_by: Option<Secrecy>, depth: usize, found: &mut Found) {
    if depth > MAX_DEPTH {
        found.note(BY_NAME);
        *value = Value::String(HIDDEN.to_owned());
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                walk(&mut member, hidden_by.or_else(|| secrecy(&name)), depth + 1, found);
                members.insert(found.look_through(&name).unwrap_or(name), member);
            }
        }
        Value::Array(members) => {
            members.iter_mut().for_each(|member| walk(member, hidden_by, depth + 1, found));
        }
        Value::String(text) => match hidden_by {
            Some(_) if text.is_empty() || text == HIDDEN => {}
            Some(_) => {
                found.note(BY_NAME);
                HIDDEN.clone_into(text);
            }
            None => {
                if let Some(redacted) = found.look_through(text) {
                    *text = redacted;
                }
            }
        },
        Value::Number(_) if hidden_by == Some(Secrecy::All) => {
            found.note(BY_NAME);
            *value = Value::String(HIDDEN.to_owned());
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// Whatever it is.
    All,
    /// Numbers behind this name are counts.
    AllButNumbers,
}

/// No rule finds anything in so short a text, or in a short word without digits and signs. Most texts in JSON are such.
fn is_too_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-' | b'.');
    text.len() < SHORTEST_SECRET || (text.len() < SHORTEST_WORD && text.bytes().all(is_plain))
}

/// All parts of names, searched for at once.
static PARTS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let custom = installed().names.iter().map(String::as_str);
    AhoCorasick::new(NAMES.iter().copied().chain(custom))
        .expect("a few dozen short literals fit any automaton")
});

/// Whether such a part is in a name that is flat already, or in all that is left of a text made flat.
pub(super) fn has_part(flat: &[u8]) -> bool {
    PARTS.is_match(flat)
}

/// Why values behind this name are hidden, if they are.
pub(super) fn secrecy(name: &str) -> Option<Secrecy> {
    let mut room = [0; 64];
    let flat_text: String;
    let flat = if name.is_ascii() && name.len() <= room.len() {
        let mut length = 0;
        for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
            room[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        &room[..length]
    } else {
        flat_text = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        flat_text.as_bytes()
    };
    let mut secrecy = None;
    for part in PARTS.find_overlapping_iter(flat) {
        if OPEN_NAMES.iter().any(|open| open.as_bytes() == flat) {
            return None;
        }
        if part.pattern().as_usize() != TOKEN {
            return Some(Secrecy::All);
        }
        secrecy = Some(Secrecy::AllButNumbers);
    }
    secrecy
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_behind_secret_names_are_hidden_at_any_depth() {
        let mut value = json!({
            "user": "ann", "Api-Key": "x", "nested": [{"access_token": "y", "ok": true}, {"db": {"PASSWORD": 1234}}],
            "secrets": ["a", {"b": "c"}], "clientSecret": "z",
        });
        assert_eq!(redact_json(&mut value), [BY_NAME]);
        assert!(redact_json(&mut value).is_empty(), "what is hidden already is not found again");
        assert_eq!(
            value,
            json!({
                "user": "ann", "Api-Key": HIDDEN, "nested": [{"access_token": HIDDEN, "ok": true}, {"db": {"PASSWORD": HIDDEN}}],
                "secrets": [HIDDEN, {"b": HIDDEN}], "clientSecret": HIDDEN,
            })
        );
    }

    #[test]
    fn what_is_passed_over_as_too_plain_holds_nothing_that_a_rule_would_find() {
        for rule in super::super::rules::RULES {
            for anchor in rule.anchors {
                for length in 0..SHORTEST_WORD.saturating_sub(anchor.len()) {
                    for filling in ["a", "q-", "x_", "y."] {
                        let text: String =
                            anchor.chars().chain(filling.chars().cycle().take(length)).collect();
                        if is_too_plain(&text) {
                            assert!(redact(&text).matches.is_empty(), "{text}");
                        }
                    }
                }
            }
        }
        assert_eq!((NAMES[TOKEN], secrecy("MAX_tokens")), ("token", Some(Secrecy::AllButNumbers)));
        assert_eq!(secrecy("secret_token"), Some(Secrecy::All));
        assert_eq!(secrecy("Pässwörd password"), Some(Secrecy::All));
        assert_eq!(secrecy(&format!("{}api-KEY", "x".repeat(80))), Some(Secrecy::All));
        assert_eq!((secrecy("token_type"), secrecy("name"), secrecy("")), (None, None, None));
    }

    #[test]
    fn counts_of_tokens_stay() {
        let usage = json!({"usage": {"input_tokens": 12, "total_tokens": {"cached": 3}, "token_type": "bearer", "max_tokens": null}});
        let mut value = usage.clone();
        assert!(redact_json(&mut value).is_empty());
        assert_eq!(value, usage);
    }

    #[test]
    fn secrets_in_other_text_and_in_names_are_found() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let mut value = json!({"log": format!("pushed with {key}"), (key.clone()): 1});
        assert_eq!(redact_json(&mut value), ["github-token"]);
        assert!(!value.to_string().contains(&key));
        assert_eq!(value["log"], "pushed with [REDACTED:FORGE_TOKEN]");
    }
}
