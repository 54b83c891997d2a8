//! `find`: files by the pattern of their names.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::Walk;
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
            let mut walk = Walk::new(&call.place.resolve(&path), Some(&pattern), call.cancel.clone())?;
            let mut list = String::new();
            for count in 0.. {
                match walk.next() {
                    Some(_) if count == MAX_FILES => {
                        list.push_str("[there are more]\n");
                        break;
                    }
                    Some(found) => list.push_str(&format!("{}\n", call.place.name(&found.path))),
                    None if count == 0 => {
                        list.push_str("[nothing matches]\n");
                        break;
                    }
                    None => break,
                }
            }
            list.push_str(&walk.notes());
            Ok(list)
        })
        .boxed()
    }
}
