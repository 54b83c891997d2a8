//! Folders that only this user can enter.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a folder cannot be trusted with sockets or state.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// It could not be made or looked at.
    #[error("cannot use the folder {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Somebody else owns it, or it is a link or a file.
    #[error("{} is not a folder of this user: remove it, or set SWB_HOME to another place", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
}

/// Makes the folder, with its parents, or checks that it is ours; others lose access to it.
pub(crate) fn ensure(path: &Path) -> Result<(), PrivateDirError> {
    let failed = |source| PrivateDirError::Io { path: path.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    // Not followed: a link that somebody else put there would lead anywhere.
    let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(PrivateDirError::NotOurs { path: path.to_owned() });
    }
    if metadata.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Makes a folder that only this user can enter, if there is nothing. One that is there is as people want it.
pub(crate) fn make(path: &Path) -> Result<(), PrivateDirError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| PrivateDirError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_private_and_kept_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        ensure(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        ensure(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_link_or_a_file_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(matches!(ensure(&link), Err(PrivateDirError::NotOurs { .. })));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(ensure(&file).is_err());
    }
}
