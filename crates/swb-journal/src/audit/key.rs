//! The key of the log: 32 random bytes beside the segments, readable by the owner only.
//!
//! Arguments are hashed with it, so that nobody who has only the records can find out by trying whether a secret was
//! among them; and each record gets a salt from it, so that the digest of a record that is passed over in a bundle
//! gives nothing away either. Nothing needs the key to verify the chain. A key that is lost is made anew: hashes of before and
//! after cannot be compared then, and say so by the name of their key.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::hash::{ChainHash, push_hex};

const KEY_BYTES: usize = 32;
pub(super) const SALT_HEX_BYTES: usize = 16;

/// The keyed hash of arguments: eight digits that name the key, a colon, and the hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArgumentsHash(String);

impl AsRef<str> for ArgumentsHash {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArgumentsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key, in the two forms it is used in.
pub(super) struct LogKey {
    arguments: [u8; KEY_BYTES],
    salts: [u8; KEY_BYTES],
    name: String,
}

impl fmt::Debug for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LogKey {
    /// Reads the key, or makes one. A file of the wrong length is no key; it is left alone.
    pub(super) fn load_or_make(path: &Path) -> io::Result<Self> {
        match std::fs::File::open(path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
                match <[u8; KEY_BYTES]>::try_from(bytes) {
                    Ok(bytes) => Ok(Self::from_bytes(bytes)),
                    Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "not a key of 32 bytes")),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(path),
            Err(error) => Err(error),
        }
    }

    fn make(path: &Path) -> io::Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        // Under another name first: a key that is only half there would lock the log for good.
        let partial = path.with_extension("part");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)?;
        Ok(Self::from_bytes(bytes))
    }

    pub(super) fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        let name = blake3::derive_key("switchboard audit 2026 name of the key", &bytes);
        let mut hex = Vec::new();
        push_hex(&name[..4], &mut hex);
        LogKey {
            arguments: blake3::derive_key("switchboard audit 2026 arguments", &bytes),
            salts: blake3::derive_key("switchboard audit 2026 salts", &bytes),
            name: String::from_utf8(hex).unwrap_or_default(),
        }
    }

    pub(super) fn hash_arguments(&self, arguments: &[u8]) -> ArgumentsHash {
        let hash = blake3::keyed_hash(&self.arguments, arguments);
        let mut text = String::with_capacity(self.name.len() + 1 + 2 * KEY_BYTES);
        text.push_str(&self.name);
        text.push(':');
        text.push_str(&hash.to_hex());
        ArgumentsHash(text)
    }

    /// The salt of a record. It depends on the record before, so that a number that is used again after a torn tail was
    /// cut has another one.
    pub(super) fn push_salt(&self, before: ChainHash, number: u64, out: &mut Vec<u8>) {
        let mut input = [0; 40];
        input[..32].copy_from_slice(before.as_bytes());
        input[32..].copy_from_slice(&number.to_le_bytes());
        push_hex(&blake3::keyed_hash(&self.salts, &input).as_bytes()[..SALT_HEX_BYTES / 2], out);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_is_the_owners() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let first = LogKey::load_or_make(&path).unwrap().hash_arguments(b"{}");
        assert_eq!(LogKey::load_or_make(&path).unwrap().hash_arguments(b"{}"), first);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        let second = LogKey::load_or_make(&path).unwrap().hash_arguments(b"{}");
        let name = |hash: &ArgumentsHash| hash.as_ref().split(':').next().unwrap().to_owned();
        assert_ne!(name(&first), name(&second), "another key has another name");
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for bytes in [&b""[..], b"short", &[7; 33]] {
            std::fs::write(&path, bytes).unwrap();
            assert!(LogKey::load_or_make(&path).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn hashes_depend_on_key_and_arguments_and_salts_on_their_place() {
        let (one, two) = (LogKey::from_bytes([1; 32]), LogKey::from_bytes([2; 32]));
        assert_ne!(one.hash_arguments(b"a"), one.hash_arguments(b"b"));
        assert_ne!(one.hash_arguments(b"a"), two.hash_arguments(b"a"));
        let salt = |key: &LogKey, before: &[u8], number| {
            let mut out = Vec::new();
            key.push_salt(ChainHash::of_fields(before), number, &mut out);
            assert_eq!(out.len(), SALT_HEX_BYTES);
            out
        };
        assert_ne!(salt(&one, b"", 1), salt(&one, b"", 2));
        assert_ne!(salt(&one, b"", 1), salt(&one, b"x", 1));
        assert_ne!(salt(&one, b"", 1), salt(&two, b"", 1));
    }
}
