//! `read`: a text file, or some lines of it.

use std::path::PathBuf;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::limits::CAPTURED_BYTES;
use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};

const MAX_LINES: usize = 2000;
/// A larger file is not read whole just to show a part of it.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

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
        "Read a text file. Returns its lines with their numbers, at most 2000 at a time."
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
            let text = text_of(&call.place.resolve(&args.path))?;
            Ok(lines(&text, args.offset.unwrap_or(1).max(1), args.limit.unwrap_or(MAX_LINES).min(MAX_LINES)))
        })
        .boxed()
    }
}

/// The text of a regular file.
pub(super) fn text_of(path: &PathBuf) -> Result<String, ToolError> {
    let metadata = std::fs::metadata(path).map_err(ToolError::io(path))?;
    if !metadata.is_file() {
        // A FIFO would never end.
        return Err(ToolError::refused(format!("{} is not a regular file", path.display())));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(ToolError::refused(format!(
            "{} has {} bytes, which is too much",
            path.display(),
            metadata.len()
        )));
    }
    let bytes = std::fs::read(path).map_err(ToolError::io(path))?;
    String::from_utf8(bytes).map_err(|_| ToolError::refused(format!("{} is not a text file", path.display())))
}

fn lines(text: &str, first: usize, count: usize) -> String {
    let mut shown = String::new();
    let mut last = first - 1;
    for (number, line) in text.lines().enumerate().skip(first - 1).take(count) {
        let line = format!("{:>6}\t{line}\n", number + 1);
        if shown.len() + line.len() > CAPTURED_BYTES {
            break;
        }
        shown.push_str(&line);
        last = number + 1;
    }
    let total = text.lines().count();
    if last < total {
        shown.push_str(&format!("[lines {first} to {last} of {total}]\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_a_part_says_that_it_is_one() {
        assert_eq!(lines("a\nb\n", 1, 9), "     1\ta\n     2\tb\n");
        assert_eq!(lines("a\nb\nc", 2, 1), "     2\tb\n[lines 2 to 2 of 3]\n");
        assert_eq!(lines("", 1, 9), "");
    }
}
