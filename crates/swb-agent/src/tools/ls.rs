//! `ls`: what is in a folder.

use std::collections::BinaryHeap;
use std::fs::DirEntry;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::one_line;
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
        "List a folder, sorted by name; folders end with a slash, links show where they lead."
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
            // The first ones by name, whatever number there is.
            let mut first = BinaryHeap::new();
            let mut total = 0;
            for entry in std::fs::read_dir(&path).map_err(ToolError::io(&path))?.flatten() {
                if call.cancel.is_cancelled() {
                    break;
                }
                total += 1;
                first.push(shown(&entry));
                if first.len() > MAX_ENTRIES {
                    first.pop();
                }
            }
            if total == 0 {
                return Ok("[the folder is empty]\n".to_owned());
            }
            let mut list = first.into_sorted_vec().concat();
            if total > MAX_ENTRIES {
                list.push_str(&format!("[{} more]\n", total - MAX_ENTRIES));
            }
            Ok(list)
        })
        .boxed()
    }
}

fn shown(entry: &DirEntry) -> String {
    let name = one_line(&entry.file_name().to_string_lossy());
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => format!("{name}/\n"),
        Ok(kind) if kind.is_symlink() => {
            let target = entry.path().read_link().unwrap_or_default();
            format!("{name} -> {}\n", one_line(&target.to_string_lossy()))
        }
        _ => format!("{name}\n"),
    }
}
