//! JSON: values behind names that say they are secret, and secrets inside any other text.

use serde_json::Value;

use super::custom::installed;
use super::redact;

/// What stands in the place of a value whose name is secret.
const HIDDEN: &str = "[REDACTED]";
/// Deeper than any parser would have let through.
const MAX_DEPTH: usize = 128;

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
enum Secrecy {
    All,
    /// Numbers behind this name are counts.
    AllButNumbers,
}

fn secrecy(name: &str) -> Option<Secrecy> {
    let flat: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if OPEN_NAMES.contains(&flat.as_str()) {
        return None;
    }
    if let Some(part) = NAMES.iter().find(|part| flat.contains(**part)) {
        return Some(if *part == "token" { Secrecy::AllButNumbers } else { Secrecy::All });
    }
    installed().names.iter().any(|part| flat.contains(part)).then_some(Secrecy::All)
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
