//! The ledger: an index over the audit log, for searching.
//!
//! It is one SQLite file that knows where each record stands, which words it holds, and what it can be filtered by. The
//! records themselves are read from the log, and every hit is compared with what was asked for: the files are the truth,
//! and the ledger can be deleted at any time.
//!
//! ```text
//! audit log ─► follow (after the last number) ─► words (FTS5: words and facets) ─┐
//!     ▲                                          records (number ─► place, time)  ├─► query ─► places
//!     └────────────────── every hit is read here ◄────────── blocks (times) ◄─────┘
//! ```
//!
//! Hits come by number, the latest first, so that the index stops when there are enough of them. A range of time becomes
//! a range of numbers by the times of blocks of records; a clock that was set back only widens it.
//!
//! Invariants: nothing is found that the log does not hold. A ledger of another log, of a log that was rolled back or
//! written anew, one that is damaged and says so, or one that names a place where something else stands, is built again.
//! What it cannot notice is an index that leaves something out: `check` looks for that, and `rebuild` mends it.
//!
//! Proof: `tests/ledger/` compares searches with reading everything, and deletes, damages and exchanges the file.

mod chain;
mod facet;
mod follow;
mod query;
mod store;
mod words;

use std::io;
use std::path::{Path, PathBuf};

pub use chain::MAX_CHAIN;
pub use follow::{CaughtUp, Rebuilt};
pub use query::{Hits, MAX_LIMIT, Query};

use crate::audit::{AuditReadError, AuditReader};
use store::Store;

/// An index over an audit log.
#[derive(Debug)]
pub struct Ledger {
    store: Store,
    reader: AuditReader,
}

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The database failed.
    #[error("the ledger failed")]
    Sqlite(#[from] rusqlite::Error),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] AuditReadError),
    /// The file must be replaced, and another process uses it.
    #[error("{} must be built again, and another process uses it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be made or removed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

impl Ledger {
    /// Opens the ledger of a log, or makes an empty one. It knows only what it has been told: see
    /// [`catch_up`](Ledger::catch_up).
    pub fn open(path: &Path, reader: AuditReader) -> Result<Self, LedgerError> {
        Ok(Ledger { store: Store::open(path)?, reader })
    }

    /// Forgets everything and reads the whole log again.
    pub fn rebuild(&mut self) -> Result<CaughtUp, LedgerError> {
        match self.store.clear() {
            Err(LedgerError::Sqlite(error)) if store::is_damage(&error) => self.store.replace()?,
            cleared => cleared?,
        }
        let caught_up = self.catch_up()?;
        Ok(CaughtUp { rebuilt: Some(Rebuilt::Asked), ..caught_up })
    }

    /// Looks for damage that a search would not notice: an index that hangs together wrongly or leaves records out.
    /// Reads the whole ledger.
    pub fn check(&mut self) -> Result<bool, LedgerError> {
        let connection = self.store.connection()?;
        let sound = || -> rusqlite::Result<bool> {
            let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            connection.execute("INSERT INTO words(words) VALUES ('integrity-check')", [])?;
            Ok(said == "ok")
        };
        match sound() {
            Ok(sound) => Ok(sound),
            Err(error) if store::is_damage(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
