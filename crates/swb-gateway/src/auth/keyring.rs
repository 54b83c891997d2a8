//! The tokens of all principals, as files in one private folder.
//!
//! ```text
//!  tokens/user.token   tokens/agent.<id>.token   tokens/page (our name below localhost)   tokens/links/<hash of a code>
//! ```
//!
//! A token is 256 random bits. In memory only hashes are kept, and only hashes are compared: hash equality takes the same
//! time whatever differs, and every known key is compared whatever matched. A cookie is derived from its token, so it is
//! no use as a token, survives a restart, and falls with the token it came from.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swb_proto::Actor;

use super::secret_file;

/// A folder changed this shortly before it was read may change again without a newer time stamp.
const CLOCK_GRAIN: Duration = Duration::from_millis(100);
const COOKIE_CONTEXT: &str = "switchboard 2026-11 cookie of a signed-in browser";

/// Who may knock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The person whose daemon this is.
    User,
    /// An agent.
    Agent(String),
}

/// Not the id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an agent's id is 1 to 80 of A-Z a-z 0-9 . _ -")]
pub struct PrincipalError;

impl Principal {
    /// An agent, if the id is one.
    ///
    /// # Errors
    /// If it is empty, too long, or holds anything but letters, digits, `.`, `_` and `-`.
    pub fn agent(id: &str) -> Result<Self, PrincipalError> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let usable = (1..=80).contains(&id.len()) && id.bytes().all(safe);
        if usable { Ok(Principal::Agent(id.to_owned())) } else { Err(PrincipalError) }
    }

    /// The same as the events name it.
    pub(crate) fn actor(&self) -> Actor {
        match self {
            Principal::User => Actor::local_user(),
            Principal::Agent(id) => {
                Actor::new("agent", id).expect("the id was checked when the principal was made")
            }
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Principal::User => "user".to_owned(),
            Principal::Agent(id) => format!("agent.{id}"),
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.strip_prefix("agent.") {
            Some(id) => Principal::agent(id).ok(),
            None => (name == "user").then_some(Principal::User),
        }
    }
}

/// A file of the keyring cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {source}", path.display())]
pub struct KeyringError {
    /// Which.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The tokens of one installation.
#[derive(Debug)]
pub struct Keyring {
    pub(super) folder: PathBuf,
    page: String,
    /// A key that the configuration names, for listening beyond this machine.
    extra: Option<blake3::Hash>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    keys: Vec<Key>,
    /// The folder that was read; asked itself, and not by its path, it says much sooner whether it has changed.
    folder: Option<File>,
    changed: Option<SystemTime>,
    /// The folder's time stamp was too young to be trusted: it is read again until it is not.
    young: bool,
}

/// When a folder was last changed: what is in it, or where it lies. To be renamed or removed is a change, too.
fn changed(folder: &File) -> Option<SystemTime> {
    let metadata = folder.metadata().ok()?;
    let (seconds, nanos) = (metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

#[derive(Debug)]
struct Key {
    principal: Principal,
    token: blake3::Hash,
    cookie: blake3::Hash,
}

impl Keyring {
    /// Opens the keyring; at the first time, makes the user's token and our name for pages.
    ///
    /// # Errors
    /// If a file cannot be read or made, or others could read it.
    pub fn open(folder: &Path) -> Result<Self, KeyringError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| KeyringError { path, source }
        };
        secret_file::private_folder(folder).map_err(failed(folder))?;
        let path = folder.join("page");
        let page = secret_file::read_or_make(&path, secret_file::random::<16>).map_err(failed(&path))?;
        let keyring = Keyring { folder: folder.to_owned(), page, extra: None, known: Mutex::default() };
        keyring.token(&Principal::User)?;
        Ok(keyring)
    }

    /// Takes the key in this file for the user's too.
    ///
    /// # Errors
    /// If it cannot be read, or others could read it.
    pub fn with_key_file(mut self, path: &Path) -> Result<Self, KeyringError> {
        let key = secret_file::read(path).map_err(|source| KeyringError { path: path.to_owned(), source })?;
        self.extra = Some(blake3::hash(key.as_bytes()));
        Ok(self)
    }

    /// The token of a principal; made if there is none.
    ///
    /// # Errors
    /// If its file cannot be read or made, or others could read it.
    pub fn token(&self, principal: &Principal) -> Result<String, KeyringError> {
        let path = self.folder.join(format!("{}.token", principal.name()));
        let make = || Ok(format!("swb_{}", secret_file::random::<32>()?));
        secret_file::read_or_make(&path, make).map_err(|source| KeyringError { path, source })
    }

    /// The first label of our own name below `localhost`.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// Whose token this is.
    pub(crate) fn owner_of_token(&self, token: &str) -> Option<Principal> {
        let hash = blake3::hash(token.as_bytes());
        if self.extra.is_some_and(|extra| extra == hash) {
            return Some(Principal::User);
        }
        self.owner(|key| key.token == hash)
    }

    /// Whose cookie this is.
    pub(crate) fn owner_of_cookie(&self, cookie: &str) -> Option<Principal> {
        let cookie = blake3::Hash::from_hex(cookie).ok()?;
        self.owner(|key| key.cookie == cookie)
    }

    /// The cookie of a principal.
    pub(super) fn cookie(&self, principal: &Principal) -> Result<String, KeyringError> {
        Ok(cookie_of(&self.token(principal)?).to_hex().to_string())
    }

    fn owner(&self, matches: impl Fn(&Key) -> bool) -> Option<Principal> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = known.folder.as_ref().and_then(changed);
        if known.young || now.is_none() || known.changed != now {
            *known = self.load();
        }
        find(&known.keys, &matches)
    }

    fn load(&self) -> Known {
        let folder = File::open(&self.folder).ok();
        let changed = folder.as_ref().and_then(changed);
        let young = changed.is_none_or(|at| at.elapsed().is_ok_and(|age| age < CLOCK_GRAIN));
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let keys = names.filter_map(|entry| {
            let principal = Principal::from_name(entry.file_name().to_str()?.strip_suffix(".token")?)?;
            let token = secret_file::read(&entry.path()).ok()?;
            Some(Key { principal, token: blake3::hash(token.as_bytes()), cookie: cookie_of(&token) })
        });
        Known { keys: keys.collect(), folder, changed, young }
    }
}

/// Looks at every key, so that the time taken does not tell which one it was.
fn find(keys: &[Key], matches: impl Fn(&Key) -> bool) -> Option<Principal> {
    keys.iter().fold(None, |found, key| if matches(key) { Some(key.principal.clone()) } else { found })
}

fn cookie_of(token: &str) -> blake3::Hash {
    blake3::Hash::from_bytes(blake3::derive_key(COOKIE_CONTEXT, token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_private_and_long() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tokens");
        let keyring = Keyring::open(&folder).unwrap();
        let token = keyring.token(&Principal::User).unwrap();
        assert_eq!(token.len(), 4 + 64, "256 bits");
        assert_eq!(Keyring::open(&folder).unwrap().token(&Principal::User).unwrap(), token);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("user.token"))), (0o700, 0o600));
        assert_eq!(keyring.owner_of_token(&token), Some(Principal::User));
        assert_eq!(keyring.owner_of_token(&token[1..]), None);
        assert_eq!(keyring.owner_of_token(""), None);
    }

    #[test]
    fn a_new_token_counts_at_once_and_a_removed_one_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(dir.path()).unwrap();
        let ada = Principal::agent("ada").unwrap();
        assert_eq!(keyring.owner_of_token("nonsense"), None);
        let token = Keyring::open(dir.path()).unwrap().token(&ada).unwrap();
        assert_eq!(keyring.owner_of_token(&token), Some(ada.clone()));
        let cookie = keyring.cookie(&ada).unwrap();
        assert_eq!(keyring.owner_of_cookie(&cookie), Some(ada));
        assert_eq!(keyring.owner_of_token(&cookie), None, "a cookie is no token");
        std::fs::remove_file(dir.path().join("agent.ada.token")).unwrap();
        assert_eq!((keyring.owner_of_token(&token), keyring.owner_of_cookie(&cookie)), (None, None));
    }

    #[test]
    fn another_folder_in_its_place_counts_and_the_old_one_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, old) = (dir.path().join("tokens"), dir.path().join("old"));
        let keyring = Keyring::open(&folder).unwrap();
        let first = keyring.token(&Principal::User).unwrap();
        assert_eq!(keyring.owner_of_token(&first), Some(Principal::User));
        std::fs::rename(&folder, &old).unwrap();
        assert_eq!(keyring.owner_of_token(&first), None, "moved away");
        let second = Keyring::open(&folder).unwrap().token(&Principal::User).unwrap();
        assert_eq!(keyring.owner_of_token(&second), Some(Principal::User));
        assert_eq!(keyring.owner_of_token(&first), None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(keyring.owner_of_token(&second), None, "removed");
    }

    #[test]
    fn a_secret_that_others_can_read_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("user.token");
        std::fs::write(&path, "swb_known\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Keyring::open(dir.path()).unwrap_err();
        assert_eq!(error.path, path);
        assert_eq!(error.source.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn ids_of_agents_cannot_name_another_file() {
        for id in ["", "a/b", "..", "a b", &"x".repeat(81)] {
            assert_eq!(Principal::agent(id).is_ok(), id == "..", "{id}");
        }
        assert_eq!(Principal::from_name("agent.a.b"), Some(Principal::Agent("a.b".to_owned())));
        assert_eq!(Principal::from_name("root"), None);
    }
}
