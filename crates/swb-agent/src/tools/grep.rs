//! `grep`: lines that match a pattern, searched in this process.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use grep_regex::RegexMatcherBuilder;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, find, ls, on_a_thread};
use crate::gate::paths;

const MAX_MATCHES: usize = 500;
const MAX_LINE_CHARS: usize = 500;

/// The tool.
#[derive(Debug)]
pub(super) struct Grep;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default = "ls::here")]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
}

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn description(&self) -> &'static str {
        "Search files for a regular expression. Returns path:line:text, at most 500 lines. What .gitignore names, hidden \
         and binary files are left out."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "A regular expression." },
                "path": { "type": "string", "description": "A file or folder; the current folder if not given." },
                "glob": { "type": "string", "description": "Only files that match, e.g. *.rs." },
                "ignore_case": { "type": "boolean" },
            },
            "required": ["pattern"],
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Read(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || search(&call)).boxed()
    }
}

fn search(call: &Call) -> Result<String, ToolError> {
    let args: Arguments = arguments(&call.arguments)?;
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .build(&args.pattern)
        .map_err(|error| ToolError::refused(error.to_string()))?;
    let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).build();
    let mut found = String::new();
    let mut count = 0;
    for entry in find::walk(&call.place.resolve(&args.path), args.glob.as_deref())?.flatten() {
        if call.cancel.is_cancelled() || count > MAX_MATCHES {
            break;
        }
        // The gate has judged the folder, not each file in it.
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || paths::is_secret(entry.path()) {
            continue;
        }
        let shown = call.place.shown(entry.path()).display();
        let sink = Lossy(|number, line| {
            count += 1;
            if count > MAX_MATCHES {
                found.push_str("[there are more]\n");
                return Ok(false);
            }
            let line: String = line.trim_end().chars().take(MAX_LINE_CHARS).collect();
            found.push_str(&format!("{shown}:{number}:{line}\n"));
            Ok(true)
        });
        // A file that cannot be read is like one that does not match.
        let _ = searcher.search_path(&matcher, entry.path(), sink);
    }
    Ok(found)
}
