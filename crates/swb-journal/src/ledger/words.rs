//! The words of an entry, as they are searched for.
//!
//! A word is a run of letters and digits in lower case, at most [`MAX_CHARS`] of them. Names of fields count too; hashes,
//! salts and times do not. What is searched for goes through the same mill, so `Cargo-test` finds what holds `cargo` and
//! `test`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::audit::Entry;

/// Longer words are cut, in entries and in searches alike.
const MAX_CHARS: usize = 64;
/// How many different words of one entry are searched for; a payload of a megabyte must not fill the index alone.
const MAX_WORDS: usize = 2000;

/// The words of a text, one after another.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| part.chars().flat_map(char::to_lowercase).take(MAX_CHARS).collect())
}

/// The different words of an entry.
pub(super) fn words_of(entry: &Entry) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let texts = [
        &entry.method,
        &entry.topic,
        &entry.correlation_id,
        &entry.parent_correlation_id,
        &entry.workspace_id,
        &entry.lane_id,
        &entry.session_id,
        &entry.terminal_id,
        &entry.command_id,
        &entry.event_id,
        &entry.error_code,
        &entry.message,
        &entry.release,
    ];
    texts.into_iter().flatten().for_each(|text| add(text, &mut found));
    if let Some(actor) = &entry.actor {
        add(&actor.kind, &mut found);
        add(&actor.id, &mut found);
    }
    if let Some(decision) = &entry.decision {
        add(&decision.id, &mut found);
        add(&decision.outcome, &mut found);
        decision.rules.iter().chain(&decision.approval_id).for_each(|text| add(text, &mut found));
    }
    if let Some(hold) = &entry.hold {
        add(&hold.id, &mut found);
        add(&hold.reason, &mut found);
    }
    if let Some(purge) = &entry.purge {
        add(&purge.reason, &mut found);
    }
    for value in [&entry.args, &entry.attributes, &entry.result, &entry.payload].into_iter().flatten() {
        add_value(&value.value(), &mut found);
    }
    found
}

fn add(text: &str, found: &mut BTreeSet<String>) {
    for word in words(text) {
        if found.len() >= MAX_WORDS {
            return;
        }
        found.insert(word);
    }
}

fn add_value(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => add(if *truth { "true" } else { "false" }, found),
        Value::Number(number) => add(&number.to_string(), found),
        Value::String(text) => add(text, found),
        Value::Array(items) => items.iter().for_each(|item| add_value(item, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                add(name, found);
                add_value(value, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::Moment;

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let found: Vec<_> = words("Cargo-test --workspace='ÄÖ_x' 3.14 über\nsess_01J日本語").collect();
        assert_eq!(found, ["cargo", "test", "workspace", "äö", "x", "3", "14", "über", "sess", "01j日本語"]);
        assert_eq!(words("§ … \u{0} !").count(), 0);
        assert_eq!(words(&"ß".repeat(1000)).next().unwrap().chars().count(), MAX_CHARS);
    }

    #[test]
    fn the_words_of_an_entry_are_those_of_its_fields_names_and_values() {
        let args = json!({ "path": ["src/main.rs", 7, true, null], "deep": { "inner": "Wort" } });
        let entry = Entry { args: Some(args.into()), ..Entry::start(Moment::default(), "project.clone") };
        let found = words_of(&entry);
        for word in ["project", "clone", "path", "src", "main", "rs", "7", "true", "deep", "inner", "wort"] {
            assert!(found.contains(word), "{word}");
        }
    }

    #[test]
    fn a_large_payload_has_a_bounded_number_of_words() {
        let text: String = (0..100_000).map(|n| format!("w{n} ")).collect();
        let entry = Entry { payload: Some(json!(text).into()), ..Entry::event(Moment::default(), "a.b", 1) };
        assert_eq!(words_of(&entry).len(), MAX_WORDS);
    }
}
