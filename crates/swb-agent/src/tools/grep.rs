//! `grep`: lines that match a pattern, searched in this process.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::Walk;
use super::{Call, Effect, Place, Tool, ToolError, arguments, ls, on_a_thread};
use crate::cancel::Cancel;
use crate::gate::paths;
use crate::regular_file::RegularFile;

const MAX_MATCHES: usize = 500;
const MAX_LINE_CHARS: usize = 500;
/// A line that needs more memory than this is no text.
const MAX_HEAP: usize = 16 * 1024 * 1024;
/// A pattern that needs more is an attack or a mistake.
const MAX_PATTERN: usize = 10 * 1024 * 1024;
/// One file may not take all the time there is.
const FILE_PATIENCE: Duration = Duration::from_secs(10);

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

/// What has been found so far.
#[derive(Debug, Default)]
struct Matches {
    text: String,
    count: usize,
}

fn search(call: &Call) -> Result<String, ToolError> {
    let args: Arguments = arguments(&call.arguments)?;
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build(&args.pattern)
        .map_err(|error| ToolError::refused(error.to_string()))?;
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).heap_limit(Some(MAX_HEAP)).build();
    let mut walk = Walk::new(&call.place.resolve(&args.path), args.glob.as_deref(), call.cancel.clone())?;
    let mut matches = Matches::default();
    while let Some(found) = walk.next() {
        // The gate has judged the folder, not each file in it.
        if !found.is_file || paths::is_secret(&found.path) {
            continue;
        }
        let name = call.place.name(&found.path);
        let Ok(file) = RegularFile::open(&found.path) else {
            walk.unreadable += 1;
            continue;
        };
        let reader = Patient { file, cancel: &call.cancel, deadline: Instant::now() + FILE_PATIENCE };
        if in_file(&mut searcher, &matcher, reader, &name, &mut matches).is_err() {
            walk.unreadable += 1;
        }
        if matches.count > MAX_MATCHES {
            matches.text.push_str("[there are more]\n");
            break;
        }
    }
    if matches.count == 0 {
        matches.text.push_str("[nothing matches]\n");
    }
    Ok(matches.text + &walk.notes())
}

fn in_file(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    reader: Patient<'_>,
    name: &str,
    matches: &mut Matches,
) -> io::Result<()> {
    let sink = Lossy(|number, line| {
        matches.count += 1;
        if matches.count > MAX_MATCHES {
            return Ok(false);
        }
        let line = line.trim_end();
        let end = line.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _)| at);
        let more = if end < line.len() { " […]" } else { "" };
        matches.text.push_str(&format!("{name}:{number}:{}{more}\n", &line[..end]));
        Ok(true)
    });
    searcher.search_reader(matcher, reader, sink)
}

/// A file whose reading ends when nobody waits for it any more.
struct Patient<'a> {
    file: RegularFile,
    cancel: &'a Cancel,
    deadline: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() || Instant::now() > self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
