//! Small files with one secret each: private, made once, read whole.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

const LONGEST: u64 = 4096;

/// So many random bytes, as lower-case hex.
pub(super) fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Makes a folder for this user alone, with those above it.
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// What the file says; what `make` says if there is none yet. Whoever comes second reads what the first has written.
pub(super) fn read_or_make(path: &Path, make: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let draft = path.with_extension(format!("draft-{}", random::<8>()?));
    let written = write_new(&draft, &make()?).and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    });
    let _ = std::fs::remove_file(&draft);
    written?;
    read(path)
}

/// Writes a file that must not exist yet.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

/// Reads a secret; one that others can read is none.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        let why = "others can read it: remove it, and a new one is made";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    let text = text.trim();
    if text.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is empty: remove it, and a new one is made",
        ));
    }
    Ok(text.to_owned())
}
