//! `write`: a file with this content and no other.
//!
//! The new content is written beside the old one and takes its place at once, with its mode and its owner. Where nothing
//! can be put beside it, the file itself is written. A link is never followed here: the path that the gate has judged is
//! resolved, and what has become a link since is refused or replaced.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustix::fs::{Access, Gid, OFlags, Uid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};

/// What new files get, less what the user's mask takes away.
const NEW_MODE: u32 = 0o666;

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
            replace(&path, content.as_bytes())?;
            Ok(format!("wrote {} bytes to {}", content.len(), call.place.name(&path)))
        })
        .boxed()
    }
}

/// Puts the content in the place of whatever the file was, all at once.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), ToolError> {
    let folder = path.parent().ok_or_else(|| ToolError::refused("a folder cannot be written"))?;
    std::fs::create_dir_all(folder).map_err(ToolError::io(folder))?;
    match std::fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => {
            // What may not be written is not replaced either.
            rustix::fs::access(path, Access::WRITE_OK).map_err(|error| ToolError::io(path)(error.into()))?;
            match beside(folder, path, content, Some(&old)) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => in_place(path, content),
                written => written,
            }
        }
        Ok(_) => return Err(ToolError::refused(format!("{} is not a regular file", path.display()))),
        Err(_) => beside(folder, path, content, None),
    }
    .map_err(ToolError::io(path))
}

fn beside(folder: &Path, path: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    if old.is_none() {
        builder.permissions(Permissions::from_mode(NEW_MODE));
    }
    let mut next = builder.prefix(".swb-").tempfile_in(folder)?;
    next.write_all(content)?;
    if let Some(old) = old {
        keep_owner(next.as_file(), old)?;
        // After the owner: a change of that takes rights away.
        next.as_file().set_permissions(old.permissions())?;
    }
    next.as_file().sync_data()?;
    next.persist(path)?;
    Ok(())
}

/// A file of somebody else stays theirs, if we may give files away; else it is better written where it is.
fn keep_owner(next: &File, old: &Metadata) -> io::Result<()> {
    let new = next.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    rustix::fs::fchown(next, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())))
        .map_err(|_| io::ErrorKind::PermissionDenied.into())
}

fn in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let mut file = OpenOptions::new().write(true).truncate(true).custom_flags(flags).open(path)?;
    file.write_all(content)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_mode_stays_and_new_files_get_the_usual_one() {
        let dir = tempfile::tempdir().unwrap();
        let (script, usual) = (dir.path().join("deep/er/run.sh"), dir.path().join("usual"));
        replace(&script, b"one").unwrap();
        std::fs::write(&usual, "").unwrap();
        assert_eq!(mode(&script), mode(&usual), "as the user's mask says");
        std::fs::set_permissions(&script, Permissions::from_mode(0o4751)).unwrap();
        replace(&script, b"two").unwrap();
        assert_eq!((mode(&script), std::fs::read(&script).unwrap()), (0o4751, b"two".to_vec()));
        assert_eq!(
            std::fs::read_dir(script.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        assert!(replace(&link, b"x").unwrap_err().to_string().contains("not a regular file"));
        assert!(replace(Path::new("/dev/null"), b"x").is_err());
        assert!(replace(dir.path(), b"x").is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
    }

    #[test]
    fn what_may_not_be_written_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "kept").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        // Root may write everything.
        if rustix::process::geteuid().is_root() {
            return;
        }
        assert!(replace(&path, b"x").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    }
}
