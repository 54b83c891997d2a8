//! The file of the ledger: made, recognised, emptied, replaced.
//!
//! Nothing in it is worth keeping, because everything in it can be read from the log again; so a file that is damaged,
//! of another version, or no database at all is removed and made anew. Everyone who uses the file holds a shared lock
//! beside it, and only who has it alone may replace it: an old journal must never meet a new file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::LedgerError;

/// The version of what is in the file.
const VERSION: i64 = 1;
/// How long to wait for others to let go of the file, and for their transactions.
const PATIENCE: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE records (
        n INTEGER PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL, at INTEGER NOT NULL);
    CREATE TABLE blocks (block INTEGER PRIMARY KEY, oldest INTEGER NOT NULL, newest INTEGER NOT NULL);
    CREATE VIRTUAL TABLE words USING fts5(
        text, content='', detail=none, columnsize=0, tokenize='ascii');
    INSERT INTO words(words, rank) VALUES ('hashsize', 8388608);";
const EMPTY: &str = "
    DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS blocks;
    DROP TABLE IF EXISTS records; DROP TABLE IF EXISTS meta;";

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    lock: File,
    /// None only while the file is being replaced, or if it could not be.
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    /// Which file it is, by device and number.
    identity: (u64, u64),
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, LedgerError> {
        let lock_path = sibling(path, ".lock");
        let mut options = OpenOptions::new();
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|source| LedgerError::Io { path: lock_path, source })?;
        let mut store = Store { path: path.to_owned(), lock, opened: None };
        store.reopen()?;
        Ok(store)
    }

    /// The database; another one if somebody has removed or exchanged the file.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, LedgerError> {
        let same = self.opened.as_ref().is_some_and(|opened| identity(&self.path) == Some(opened.identity));
        if !same {
            self.reopen()?;
        }
        match &mut self.opened {
            Some(opened) => Ok(&mut opened.connection),
            None => Err(LedgerError::InUse { path: self.path.clone() }),
        }
    }

    /// Forgets everything, in one transaction.
    pub(super) fn clear(&mut self) -> Result<(), LedgerError> {
        let transaction = self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(EMPTY)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.commit()?;
        Ok(())
    }

    /// Removes the file and makes it anew.
    pub(super) fn replace(&mut self) -> Result<(), LedgerError> {
        self.opened = None;
        self.alone(|_| false)?;
        self.make()
    }

    /// Opens the file, or makes it if it is not there or is of no use.
    fn reopen(&mut self) -> Result<(), LedgerError> {
        self.opened = None;
        // Only who has the place alone may make the file; but another one may be faster.
        let made = self.path.exists() || !self.alone(Path::exists)?;
        if !made {
            return self.make();
        }
        self.lock.lock_shared().map_err(|source| self.failed(source))?;
        match connect(&self.path) {
            Ok(connection) => self.use_it(connection),
            Err(error) if is_damage(&error) => self.replace(),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock for ourselves alone; false if meanwhile something has come true.
    fn alone(&self, or_else: impl Fn(&Path) -> bool) -> Result<bool, LedgerError> {
        let deadline = Instant::now() + PATIENCE;
        // A lock that is held is changed by asking again; what cannot be had is let go of, too.
        while self.lock.try_lock().is_err() {
            if or_else(&self.path) {
                return Ok(false);
            }
            if Instant::now() >= deadline {
                return Err(LedgerError::InUse { path: self.path.clone() });
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(!or_else(&self.path))
    }

    /// Makes the file, while the lock is ours alone. What is left of an old one would be played back into it.
    fn make(&mut self) -> Result<(), LedgerError> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            match std::fs::remove_file(sibling(&self.path, suffix)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(self.failed(error)),
                _ => {}
            }
        }
        // By us and not by SQLite, so that it is the owner's only.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
        made.map_err(|source| self.failed(source))?;
        let connection = connect(&self.path)?;
        self.lock.lock_shared().map_err(|source| self.failed(source))?;
        self.use_it(connection)
    }

    fn use_it(&mut self, connection: Connection) -> Result<(), LedgerError> {
        let Some(identity) = identity(&self.path) else {
            return Err(LedgerError::InUse { path: self.path.clone() });
        };
        self.opened = Some(Opened { connection, identity });
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> LedgerError {
        LedgerError::Io { path: self.path.clone(), source }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // Whoever closes last would remove the journal by its name, which may belong to another file by then.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        transaction.execute_batch(EMPTY)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// Whether the file is to blame, so that another one would do.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                // A table that is not there, or is another one.
                || (failure.code == ErrorCode::Unknown && message.is_some())
        }
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
