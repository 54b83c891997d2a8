//! What is shown of a command in the record: without secrets, without key presses, and never more than a few kilobytes.
//!
//! Long values are cut before they are looked through, so that a megabyte costs no more than a page. A cut never lies
//! inside a secret that would then not be recognised: [`RedactedStream`] keeps back what is not decided yet.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use swb_journal::audit::Json;
use swb_rules::redact::{self, RedactedStream, is_plain_json, redact_json};

/// What is kept of arguments, about, and of one text in them.
const ARGUMENTS: usize = 16 * 1024;
const TEXT: usize = 4 * 1024;
/// What is kept of the words of an error.
const MESSAGE: usize = 1024;
/// The longest id of others that is kept whole.
const FOREIGN_ID: usize = 128;

/// Who asks and where, among the arguments.
const CONTEXT: &str = "_meta";
/// The method whose arguments are key presses.
const TYPED: &str = "terminal.input";

/// Something as the record shows it, made once and shown as often as wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub(super) json: Json,
    /// The rules of redaction that found something in it.
    pub(super) found: Vec<&'static str>,
}

impl Shown {
    /// A value without its secrets, and never more than a few kilobytes of it.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Self {
        let mut found = Vec::new();
        let json = match to_raw_value(value) {
            Ok(json) => shown(json, &mut found),
            // It has a member whose name is not text: nothing that anybody means to show.
            Err(_) => Value::Null.into(),
        };
        Shown { json, found }
    }
}

/// Nothing was said.
pub(super) fn is_empty(args: &str) -> bool {
    matches!(args.trim(), "" | "{}" | "null" | "[]")
}

/// The arguments of a method.
pub(super) fn arguments(method: &str, args: &RawValue, found: &mut Vec<&'static str>) -> Option<Json> {
    let (raw, args) = (args, args.get());
    let is_shown_whole = args.len() <= ARGUMENTS && method != TYPED && !args.contains(CONTEXT);
    if is_shown_whole && is_plain_json(args) {
        return Some(raw.to_owned().into());
    }
    // What is JSON and still cannot be read holds a number that is too large, half a character, or is nested too deep.
    let mut value: Value =
        serde_json::from_str(args).unwrap_or_else(|_| json!({ "unreadable_bytes": args.len() }));
    if let Value::Object(members) = &mut value {
        // The ids and the actor stand in the record already.
        members.remove(CONTEXT);
        if members.is_empty() {
            return None;
        }
        if method == TYPED {
            lengths(members);
        }
    }
    let value =
        if args.len() > ARGUMENTS { bounded(value, args.len(), found) } else { redacted(value, found) };
    Some(value.into())
}

fn shown(json: Box<RawValue>, found: &mut Vec<&'static str>) -> Json {
    let bytes = json.get().len();
    if bytes <= ARGUMENTS && is_plain_json(json.get()) {
        return json.into();
    }
    let Ok(value) = serde_json::from_str(json.get()) else { return Value::Null.into() };
    if bytes > ARGUMENTS { bounded(value, bytes, found) } else { redacted(value, found) }.into()
}

/// A value that holds no secret any more, if it is not too long; otherwise its beginning.
pub(super) fn bounded_if_long(json: Box<RawValue>) -> Json {
    let bytes = json.get().len();
    if bytes <= ARGUMENTS {
        return json.into();
    }
    let value = serde_json::from_str(json.get()).unwrap_or_default();
    bounded(value, bytes, &mut Vec::new()).into()
}

/// The words of an error: without secrets and without absolute paths.
pub(super) fn message(text: &str) -> (String, Vec<&'static str>) {
    let mut found = Vec::new();
    let text = if text.len() > MESSAGE {
        cut(text, MESSAGE, &mut found)
    } else {
        let redacted = redact::redact(text);
        found.extend(redacted.matches.iter().map(|secret| secret.rule));
        redacted.text
    };
    (redact::without_paths(&text).into_owned(), found)
}

/// An id of somebody else, bounded.
pub(super) fn foreign_id(id: &str) -> String {
    id[..id.floor_char_boundary(FOREIGN_ID)].to_owned()
}

/// What was typed is nobody's business; how much, and where, is.
fn lengths(members: &mut Map<String, Value>) {
    for (name, member) in members {
        let is_id = name.ends_with("_id") || name == "seq";
        *member = match member.take() {
            Value::String(text) if !is_id => json!({ "bytes": text.len() }),
            kept @ (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null) => kept,
            other => json!({ "bytes": other.to_string().len() }),
        };
    }
}

fn redacted(mut value: Value, found: &mut Vec<&'static str>) -> Value {
    found.extend(redact_json(&mut value));
    value
}

/// The beginning of everything, with a note of how much there was.
fn bounded(mut value: Value, bytes: usize, found: &mut Vec<&'static str>) -> Value {
    let mut left = ARGUMENTS;
    shorten(&mut value, &mut left, found);
    found.extend(redact_json(&mut value));
    match &mut value {
        Value::Object(members) => drop(members.insert("_cut".to_owned(), json!({ "bytes": bytes }))),
        other => *other = json!({ "_cut": { "bytes": bytes }, "value": other.take() }),
    }
    value
}

fn shorten(value: &mut Value, left: &mut usize, found: &mut Vec<&'static str>) {
    match value {
        Value::String(text) => {
            let room = TEXT.min(*left);
            if text.len() > room {
                *text = cut(text, room, found);
            }
            *left = left.saturating_sub(text.len() + 2);
        }
        Value::Array(items) => {
            let mut kept = 0;
            for item in items.iter_mut() {
                if *left == 0 {
                    break;
                }
                shorten(item, left, found);
                kept += 1;
            }
            items.truncate(kept);
        }
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                if *left == 0 {
                    break;
                }
                // A name this long is data, and goes with what it names.
                if name.len() > TEXT {
                    continue;
                }
                *left = left.saturating_sub(name.len() + 4);
                shorten(&mut member, left, found);
                members.insert(name, member);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => *left = left.saturating_sub(8),
    }
}

/// The beginning of a text, redacted, and how long the whole is.
fn cut(text: &str, room: usize, found: &mut Vec<&'static str>) -> String {
    let mut stream = RedactedStream::new();
    let mut beginning = stream.push(&text[..text.floor_char_boundary(room)]);
    // What the stream keeps back is left out: it may be half a secret.
    let (_, secrets) = stream.finish();
    found.extend(secrets.iter().map(|secret| secret.rule));
    beginning.push_str(&format!("… ({} bytes in all)", text.len()));
    beginning
}
