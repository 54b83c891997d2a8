//! `ls`: what is in a folder.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};

const MAX_ENTRIES: usize = 1000;

/// The tool.
#[derive(Debug)]
pub(super) struct Ls;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "here")]
    path: String,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

impl Tool for Ls {
    fn name(&self) -> &'static str {
        "ls"
    }

    fn description(&self) -> &'static str {
        "List a folder, sorted by name; folders end with a slash."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "path": { "type": "string", "description": "The current folder if not given." } },
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Read(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let path = call.place.resolve(&arguments::<Arguments>(&call.arguments)?.path);
            let mut names: Vec<String> = std::fs::read_dir(&path)
                .map_err(ToolError::io(&path))?
                .flatten()
                .map(|entry| {
                    let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
                    format!("{}{slash}\n", entry.file_name().to_string_lossy())
                })
                .collect();
            names.sort_unstable();
            let total = names.len();
            names.truncate(MAX_ENTRIES);
            if total > MAX_ENTRIES {
                names.push(format!("[{} more]\n", total - MAX_ENTRIES));
            }
            Ok(names.concat())
        })
        .boxed()
    }
}
