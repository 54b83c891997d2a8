//! `write`: a file with this content and no other.

use std::io::Write as _;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};

/// The tool.
#[derive(Debug)]
pub(super) struct Write;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn description(&self) -> &'static str {
        "Write a file, replacing what was in it. Missing folders are made."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
            "required": ["path", "content"],
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Write(place.resolve(&arguments::<Arguments>(value)?.path)))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let Arguments { path, content } = arguments(&call.arguments)?;
            let path = call.place.resolve(&path);
            replace(&path, &content)?;
            Ok(format!("wrote {} bytes to {}", content.len(), call.place.shown(&path).display()))
        })
        .boxed()
    }
}

/// Puts the content in the place of whatever the file was, all at once.
pub(super) fn replace(path: &Path, content: &str) -> Result<(), ToolError> {
    let folder = path.parent().ok_or_else(|| ToolError::refused("a folder cannot be written"))?;
    std::fs::create_dir_all(folder).map_err(ToolError::io(folder))?;
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            let mut next = tempfile::NamedTempFile::new_in(folder).map_err(ToolError::io(folder))?;
            next.write_all(content.as_bytes()).map_err(ToolError::io(path))?;
            next.as_file().set_permissions(metadata.permissions()).map_err(ToolError::io(path))?;
            next.persist(path).map(drop).map_err(|error| ToolError::io(path)(error.error))
        }
        Ok(_) => Err(ToolError::refused(format!("{} is not a regular file", path.display()))),
        // A new file gets the rights that new files get.
        Err(_) => std::fs::write(path, content).map_err(ToolError::io(path)),
    }
}
