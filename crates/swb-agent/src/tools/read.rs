//! `read`: a text file, or some lines of it.
//!
//! Lines are read one by one, so the size of a file does not matter, and a long line is cut. What is not UTF-8 is shown as
//! far as it is.

use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::limits::CAPTURED_BYTES;
use super::text::{Lines, MAX_WHOLE_BYTES};
use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};
use crate::cancel::Cancel;

const MAX_LINES: usize = 2000;
const MAX_LINE_BYTES: usize = 4000;
/// Whoever has given up is noticed after so many lines.
const LINES_AT_A_TIME: usize = 10_000;

/// The tool.
#[derive(Debug)]
pub(super) struct Read;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn description(&self) -> &'static str {
        "Read a text file. Returns its lines with their numbers, at most 2000 at a time; long lines are cut."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "offset": { "type": "integer", "minimum": 1, "description": "The first line wanted; 1 if not given." },
                "limit": { "type": "integer", "minimum": 1, "description": "How many lines." },
            },
            "required": ["path"],
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Read(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let args: Arguments = arguments(&call.arguments)?;
            let path = call.place.resolve(&args.path);
            let count = args.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
            shown(&path, args.offset.unwrap_or(1).max(1), count, &call.cancel)
        })
        .boxed()
    }
}

fn shown(path: &Path, first: usize, count: usize, cancel: &Cancel) -> Result<String, ToolError> {
    let mut lines = Lines::open(path)?;
    let mut text = String::new();
    let mut number = 0;
    let mut last = 0;
    let mut broken = false;
    while number + 1 < first.saturating_add(count) {
        let most = if number + 1 < first { 0 } else { MAX_LINE_BYTES };
        let Some(line) = lines.next(most).map_err(ToolError::io(path))? else { break };
        number += 1;
        if number % LINES_AT_A_TIME == 0 && cancel.is_cancelled() {
            break;
        }
        if number < first {
            continue;
        }
        let shown = String::from_utf8_lossy(&line.bytes);
        broken |= line.more == 0 && matches!(shown, std::borrow::Cow::Owned(_));
        let more = if line.more > 0 { format!(" [{} more bytes]", line.more) } else { String::new() };
        let line = format!("{number:>6}\t{shown}{more}\n");
        if text.len() + line.len() > CAPTURED_BYTES {
            break;
        }
        text.push_str(&line);
        last = number;
    }
    // How many there are is worth a look at the rest, but not at any price.
    let large = lines.size > MAX_WHOLE_BYTES;
    while !large && (number % LINES_AT_A_TIME != 0 || !cancel.is_cancelled()) {
        match lines.next(0).map_err(ToolError::io(path))? {
            Some(_) => number += 1,
            None => break,
        }
    }
    if broken {
        text.push_str("[it is not UTF-8 throughout: what is not is shown as \u{fffd}]\n");
    }
    match last {
        0 if number == 0 => text.push_str("[the file is empty]\n"),
        0 => text.push_str(&format!("[there is no line {first}: the file has {number}]\n")),
        last if large => text.push_str(&format!("[lines {first} to {last}; there may be more]\n")),
        last if first > 1 || last < number => {
            text.push_str(&format!("[lines {first} to {last} of {number}]\n"));
        }
        _ => {}
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8], first: usize, count: usize) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        shown(file.path(), first, count, &Cancel::new()).unwrap()
    }

    #[test]
    fn lines_have_numbers_and_a_part_says_that_it_is_one() {
        assert_eq!(read(b"a\nb\n", 1, 9), "     1\ta\n     2\tb\n");
        assert_eq!(read(b"a\nb\nc", 2, 1), "     2\tb\n[lines 2 to 2 of 3]\n");
        assert_eq!(read(b"a\nb\nc", 2, 9), "     2\tb\n     3\tc\n[lines 2 to 3 of 3]\n");
    }

    #[test]
    fn nothing_to_show_is_said() {
        assert_eq!(read(b"", 1, 9), "[the file is empty]\n");
        assert_eq!(read(b"a\n", 5, 9), "[there is no line 5: the file has 1]\n");
    }

    #[test]
    fn long_lines_and_other_encodings_are_shown_as_far_as_possible() {
        let minified = "x".repeat(1_000_000);
        assert!(read(minified.as_bytes(), 1, 9).ends_with("xxx [996000 more bytes]\n"));
        assert!(read(b"gr\xfcn\n", 1, 9).contains("gr\u{fffd}n\n[it is not UTF-8"));
        let many = "word\n".repeat(5000);
        assert!(read(many.as_bytes(), 1, 2000).ends_with("[lines 1 to 2000 of 5000]\n"));
    }

    #[test]
    fn a_flood_of_long_lines_is_bounded() {
        let flood = format!("{}\n", "x".repeat(MAX_LINE_BYTES)).repeat(2000);
        let text = read(flood.as_bytes(), 1, 2000);
        assert!(text.len() <= CAPTURED_BYTES + 100 && text.ends_with(" of 2000]\n"), "{}", text.len());
    }
}
