//! `edit`: exact replacements in one file, all of them or none.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread, read, write};

/// The tool.
#[derive(Debug)]
pub(super) struct Edit;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_text: Option<String>,
    new_text: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    edits: Vec<Replacement>,
}

#[derive(Deserialize)]
struct Replacement {
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn description(&self) -> &'static str {
        "Replace exact text in a file. Each old_text must occur exactly once, unless replace_all is set. Give one \
         replacement as old_text and new_text, or several as edits; they are made in order, all of them or none."
    }

    fn input_schema(&self) -> Value {
        let replacement = json!({
            "old_text": { "type": "string" },
            "new_text": { "type": "string" },
            "replace_all": { "type": "boolean" },
        });
        let item =
            json!({ "type": "object", "properties": replacement, "required": ["old_text", "new_text"] });
        let mut properties = replacement;
        properties["path"] = json!({ "type": "string" });
        properties["edits"] = json!({ "type": "array", "items": item });
        json!({ "type": "object", "properties": properties, "required": ["path"] })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Write(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let args: Arguments = arguments(&call.arguments)?;
            let path = call.place.resolve(&args.path);
            let mut edits = args.edits;
            if let (Some(old_text), Some(new_text)) = (args.old_text, args.new_text) {
                edits.insert(0, Replacement { old_text, new_text, replace_all: args.replace_all });
            }
            let text = read::text_of(&path)?;
            let (edited, count) = apply(text, &edits)?;
            write::replace(&path, &edited)?;
            Ok(format!("made {count} replacements in {}", call.place.shown(&path).display()))
        })
        .boxed()
    }
}

fn apply(mut text: String, edits: &[Replacement]) -> Result<(String, usize), ToolError> {
    if edits.is_empty() {
        return Err(ToolError::refused("there is nothing to replace: give old_text and new_text, or edits"));
    }
    let mut made = 0;
    for (at, Replacement { old_text, new_text, replace_all }) in edits.iter().enumerate() {
        if old_text.is_empty() {
            return Err(ToolError::refused(format!("old_text of replacement {} is empty", at + 1)));
        }
        let count = text.matches(old_text.as_str()).count();
        match (count, replace_all) {
            (0, _) => {
                return Err(ToolError::refused(format!(
                    "old_text of replacement {} does not occur; nothing was changed",
                    at + 1
                )));
            }
            (1, _) | (_, true) => text = text.replace(old_text.as_str(), new_text),
            (count, false) => {
                return Err(ToolError::refused(format!(
                    "old_text of replacement {} occurs {count} times; add context or set replace_all; nothing was changed",
                    at + 1
                )));
            }
        }
        made += count;
    }
    Ok((text, made))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, replace_all: bool) -> Replacement {
        Replacement { old_text: old.into(), new_text: new.into(), replace_all }
    }

    #[test]
    fn edits_are_exact_and_in_order() {
        let (text, count) = apply("a b b".into(), &[edit("a", "c", false), edit("c b", "d", false)]).unwrap();
        assert_eq!((text.as_str(), count), ("d b", 2));
        assert_eq!(apply("b b".into(), &[edit("b", "c", true)]).unwrap().0, "c c");
    }

    #[test]
    fn what_is_not_there_once_is_refused() {
        for edits in
            [vec![], vec![edit("x", "y", false)], vec![edit("b", "c", false)], vec![edit("", "c", true)]]
        {
            assert!(apply("b b".into(), &edits).is_err());
        }
    }
}
