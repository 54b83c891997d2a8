//! The key that arguments are hashed with: one per installation, so that equal arguments can be found, and secret, so that
//! short ones cannot be guessed from their hash.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The key itself.
pub(super) type Key = [u8; 32];

/// The key in this file; made if there is none. Without a file that can be used it holds for this process alone.
pub(super) fn load(path: &Path) -> Key {
    read(path).or_else(|_| make(path)).unwrap_or_else(|_| random())
}

fn read(path: &Path) -> io::Result<Key> {
    let bytes = fs::read(path)?;
    bytes.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Writes a new key beside the file and gives it the name that only one can have, whoever else does the same just now.
fn make(path: &Path) -> io::Result<Key> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // Such files are readable for the user alone.
    let mut draft = tempfile::Builder::new().prefix(".key").tempfile_in(folder)?;
    draft.write_all(&random())?;
    draft.as_file().sync_all()?;
    match draft.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => read(path),
    }
}

fn random() -> Key {
    let mut key = Key::default();
    // Without randomness the hash is not secret, which is no reason to stop working.
    let _ = getrandom::fill(&mut key);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn all_who_come_at_once_get_the_same_key_and_nobody_else_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/key");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || load(&path))
            })
            .collect();
        let keys: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(keys.iter().all(|key| *key == keys[0] && *key != Key::default()));
        assert_eq!(load(&path), keys[0]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_that_is_no_key_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, "short").unwrap();
        assert_ne!(load(&path), load(&path), "each process has its own");
        assert_eq!(fs::read(&path).unwrap(), b"short");
    }
}
