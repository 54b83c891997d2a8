//! `find`: files by the pattern of their names.

use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ignore::overrides::OverrideBuilder;
use ignore::{Walk, WalkBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, ls, on_a_thread};

const MAX_FILES: usize = 1000;

/// The tool.
#[derive(Debug)]
pub(super) struct Find;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default = "ls::here")]
    path: String,
}

impl Tool for Find {
    fn name(&self) -> &'static str {
        "find"
    }

    fn description(&self) -> &'static str {
        "Find files whose path matches a glob such as *.rs or src/**/*.md. What .gitignore names and hidden files are \
         left out."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "A glob." },
                "path": { "type": "string", "description": "Where to look; the current folder if not given." },
            },
            "required": ["pattern"],
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Read(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let Arguments { pattern, path } = arguments(&call.arguments)?;
            let root = call.place.resolve(&path);
            let mut found = String::new();
            let mut count = 0;
            for entry in walk(&root, Some(&pattern))?.flatten() {
                if call.cancel.is_cancelled() {
                    break;
                }
                if entry.file_type().is_none_or(|kind| kind.is_dir()) {
                    continue;
                }
                count += 1;
                if count > MAX_FILES {
                    found.push_str("[there are more]\n");
                    break;
                }
                found.push_str(&format!("{}\n", call.place.shown(entry.path()).display()));
            }
            Ok(found)
        })
        .boxed()
    }
}

/// The files below a folder, in order, without what is ignored; with a glob, only those it matches.
pub(super) fn walk(root: &Path, glob: Option<&str>) -> Result<Walk, ToolError> {
    std::fs::metadata(root).map_err(ToolError::io(root))?;
    let mut walk = WalkBuilder::new(root);
    walk.sort_by_file_name(Ord::cmp).require_git(false);
    if let Some(glob) = glob {
        let refused = |error: ignore::Error| ToolError::refused(error.to_string());
        let mut globs = OverrideBuilder::new(root);
        globs.add(glob).map_err(refused)?;
        walk.overrides(globs.build().map_err(refused)?);
    }
    Ok(walk.build())
}
