//! `edit`: exact replacements in one file, all of them or none.
//!
//! A file is bytes here: what is not touched stays as it is, in whatever encoding. Models write `\n`; in a file whose lines
//! end otherwise, their texts are taken to mean its own line ends.

use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread, text, write};

/// How many places an error names.
const PLACES: usize = 5;

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
            let count = edit(&path, args)?;
            let s = if count == 1 { "" } else { "s" };
            Ok(format!("made {count} replacement{s} in {}", call.place.name(&path)))
        })
        .boxed()
    }
}

fn edit(path: &Path, args: Arguments) -> Result<usize, ToolError> {
    let mut edits = args.edits;
    match (args.old_text, args.new_text) {
        (Some(old_text), Some(new_text)) => {
            edits.insert(0, Replacement { old_text, new_text, replace_all: args.replace_all });
        }
        (None, None) => {}
        _ => return Err(ToolError::refused("old_text and new_text belong together: one of them is missing")),
    }
    let content = text::bytes(path)?;
    let (edited, count) = apply(content.clone(), &edits)?;
    // Somebody else may have written it meanwhile; their work is not to be lost.
    if text::bytes(path)? != content {
        return Err(ToolError::refused(format!(
            "{} was changed by somebody else meanwhile; nothing was changed",
            path.display()
        )));
    }
    write::replace(path, &edited)?;
    Ok(count)
}

fn apply(mut content: Vec<u8>, edits: &[Replacement]) -> Result<(Vec<u8>, usize), ToolError> {
    if edits.is_empty() {
        return Err(ToolError::refused("there is nothing to replace: give old_text and new_text, or edits"));
    }
    let crlf = has_crlf_only(&content);
    let mut made = 0;
    for (at, Replacement { old_text, new_text, replace_all }) in edits.iter().enumerate() {
        let refused = |what: String| {
            Err(ToolError::refused(format!("old_text of replacement {} {what}; nothing was changed", at + 1)))
        };
        if old_text.is_empty() {
            return refused("is empty".to_owned());
        }
        if old_text == new_text {
            return refused("is the same as its new_text".to_owned());
        }
        let (old, new) = if crlf {
            (with_crlf(old_text), with_crlf(new_text))
        } else {
            (old_text.clone(), new_text.clone())
        };
        let found = occurrences(&content, old.as_bytes());
        match (found.len(), replace_all) {
            (0, _) => return refused("does not occur".to_owned()),
            (1, _) | (_, true) => {}
            (count, false) => {
                let places: Vec<String> =
                    found.iter().take(PLACES).map(|at| line_of(&content, *at).to_string()).collect();
                let more = if count > PLACES { ", …" } else { "" };
                return refused(format!(
                    "occurs {count} times (lines {}{more}): add context or set replace_all",
                    places.join(", ")
                ));
            }
        }
        made += replace(&mut content, old.as_bytes(), new.as_bytes());
    }
    Ok((content, made))
}

/// Where the text begins, also where one occurrence overlaps another: which of them is meant would be a guess.
fn occurrences(content: &[u8], text: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = content.get(from..).and_then(|rest| finder.find(rest)) {
        found.push(from + at);
        from += at + 1;
    }
    found
}

fn replace(content: &mut Vec<u8>, old: &[u8], new: &[u8]) -> usize {
    let mut replaced = Vec::with_capacity(content.len());
    let mut from = 0;
    let mut count = 0;
    for at in memmem::find_iter(content, old) {
        replaced.extend_from_slice(&content[from..at]);
        replaced.extend_from_slice(new);
        from = at + old.len();
        count += 1;
    }
    replaced.extend_from_slice(&content[from..]);
    *content = replaced;
    count
}

fn has_crlf_only(content: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', content).peekable();
    ends.peek().is_some() && ends.all(|at| at > 0 && content[at - 1] == b'\r')
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &content[..at]).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, replace_all: bool) -> Replacement {
        Replacement { old_text: old.into(), new_text: new.into(), replace_all }
    }

    fn applied(content: &[u8], edits: &[Replacement]) -> Vec<u8> {
        apply(content.to_vec(), edits).unwrap().0
    }

    fn refusal(content: &str, edits: &[Replacement]) -> String {
        apply(content.into(), edits).unwrap_err().to_string()
    }

    #[test]
    fn edits_are_exact_and_in_order() {
        let edits = [edit("a", "c", false), edit("c b", "d", false)];
        assert_eq!(apply(b"a b b".to_vec(), &edits).unwrap(), (b"d b".to_vec(), 2));
        assert_eq!(apply(b"b b".to_vec(), &[edit("b", "c", true)]).unwrap(), (b"c c".to_vec(), 2));
    }

    #[test]
    fn what_is_not_there_once_is_refused() {
        assert!(refusal("b", &[]).contains("nothing to replace"));
        assert!(refusal("b", &[edit("x", "y", false)]).contains("replacement 1 does not occur"));
        assert!(
            refusal("b", &[edit("b", "c", false), edit("", "c", true)]).contains("replacement 2 is empty")
        );
        assert!(refusal("b", &[edit("b", "b", false)]).contains("the same"));
        let seven = "b\n".repeat(7);
        assert!(
            refusal(&seven, &[edit("b", "c", false)]).contains("occurs 7 times (lines 1, 2, 3, 4, 5, …)")
        );
        assert!(
            refusal("aaa", &[edit("aa", "b", false)]).contains("occurs 2 times"),
            "overlapping is ambiguous"
        );
    }

    #[test]
    fn line_ends_of_the_file_stay_what_they_are() {
        let edits = [edit("a\nb", "a\nx\nb", false), edit("c", "c\nd", false)];
        assert_eq!(applied(b"a\r\nb\r\nc\r\n", &edits), b"a\r\nx\r\nb\r\nc\r\nd\r\n");
        assert_eq!(applied(b"a\nb\n", &[edit("a\nb", "a\r\nb", false)]), b"a\r\nb\n");
        assert_eq!(
            applied(b"a\r\nb\nc", &[edit("b\nc", "x\ny", false)]),
            b"a\r\nx\ny",
            "mixed ends are exact"
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_stay_what_they_are() {
        assert_eq!(applied(b"gr\xfcn = 1", &[edit("= 1", "= 2", false)]), b"gr\xfcn = 2");
        assert_eq!(applied(b"\xef\xbb\xbfa", &[edit("a", "b", false)]), b"\xef\xbb\xbfb");
    }
}
