//! Following the log: whatever it holds after the last number that is known goes into the index.
//!
//! Records are taken in portions, each one transaction that begins with what the ledger says it knows. So several
//! processes may follow at once, and one that is killed has done a portion or not.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::facet::facets_of;
use super::store::is_damage;
use super::words::words_of;
use super::{Ledger, LedgerError};
use crate::audit::{AuditReader, ChainHash, Record};

/// How many records go into one transaction.
const PORTION: usize = 5000;
/// How many numbers share the times of one block.
pub(super) const BLOCK: i64 = 1024;

/// What following has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaughtUp {
    /// How many records were added.
    pub added: u64,
    /// How many lines of the log were left out because they are damaged: `verify` says which.
    pub damaged: u64,
    /// The last number that is known.
    pub number: u64,
    /// Why everything was read again, if it was.
    pub rebuilt: Option<Rebuilt>,
}

/// Why a ledger was built again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuilt {
    /// Somebody asked for it.
    Asked,
    /// It belonged to another log.
    OtherLog,
    /// The log does not hold the last record that the ledger knew, or holds another one in its place.
    LogChanged,
    /// It was damaged.
    Damaged,
}

/// What the ledger knows of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    chain: String,
    number: u64,
    hash: Option<ChainHash>,
}

impl Ledger {
    /// Reads what has been recorded since the last time. A ledger that does not fit the log is built again first.
    pub fn catch_up(&mut self) -> Result<CaughtUp, LedgerError> {
        let mut caught_up = match self.follow() {
            Err(LedgerError::Sqlite(error)) if is_damage(&error) => {
                self.store.replace()?;
                CaughtUp { rebuilt: Some(Rebuilt::Damaged), ..self.follow()? }
            }
            outcome => outcome?,
        };
        // The index may hold records that a roll-back of the log has taken away again.
        if caught_up.rebuilt.is_some() {
            caught_up.number = known(self.store.connection()?)?.map_or(0, |known| known.number);
        }
        Ok(caught_up)
    }

    fn follow(&mut self) -> Result<CaughtUp, LedgerError> {
        let mut done = CaughtUp::default();
        if let Some(reason) = misfit(&self.reader, known(self.store.connection()?)?)? {
            self.store.clear()?;
            done.rebuilt = Some(reason);
        }
        let Some(chain) = self.reader.head()?.map(|head| head.chain) else { return Ok(done) };
        loop {
            let connection = self.store.connection()?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let after = known(&transaction)?.map_or(0, |known| known.number);
            let portion = take_portion(&transaction, &self.reader, after)?;
            done.number = portion.last.as_ref().map_or(after, |(number, _)| *number);
            done.added += portion.added;
            done.damaged += portion.damaged;
            if let Some((number, hash)) = &portion.last {
                remember(&transaction, &chain, *number, hash)?;
            }
            transaction.commit()?;
            if portion.is_last {
                return Ok(done);
            }
        }
    }
}

/// Why a ledger that knows this does not fit the log.
fn misfit(reader: &AuditReader, known: Option<Known>) -> Result<Option<Rebuilt>, LedgerError> {
    let Some(known) = known else { return Ok(None) };
    let Some(head) = reader.head()? else { return Ok(Some(Rebuilt::LogChanged)) };
    if head.chain != known.chain {
        return Ok(Some(Rebuilt::OtherLog));
    }
    let same = match reader.get(known.number) {
        Ok(record) => record.is_some_and(|record| Some(record.hash) == known.hash),
        // Damage in the log is no reason to read it again.
        Err(crate::audit::AuditReadError::Damaged { .. }) => true,
        Err(error) => return Err(error.into()),
    };
    Ok((!same).then_some(Rebuilt::LogChanged))
}

struct Portion {
    added: u64,
    damaged: u64,
    last: Option<(u64, ChainHash)>,
    is_last: bool,
}

fn take_portion(connection: &Connection, reader: &AuditReader, after: u64) -> Result<Portion, LedgerError> {
    let mut records = reader.records_after(after)?;
    let mut portion = Portion { added: 0, damaged: 0, last: None, is_last: true };
    let mut place = connection
        .prepare("INSERT OR REPLACE INTO records (n, segment, offset, at) VALUES (?1, ?2, ?3, ?4)")?;
    let mut index = connection.prepare("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
    let mut block = connection.prepare(
        "INSERT INTO blocks (block, oldest, newest) VALUES (?1, ?2, ?2) ON CONFLICT (block) DO UPDATE
         SET oldest = min(oldest, excluded.oldest), newest = max(newest, excluded.newest)",
    )?;
    let mut text = String::new();
    loop {
        if portion.added >= PORTION as u64 {
            portion.is_last = false;
            return Ok(portion);
        }
        let (segment, offset, record) = match records.next_line() {
            Ok(Some(line)) => (line.segment, line.offset, line.parse()),
            Ok(None) => return Ok(portion),
            Err(error) => (0, 0, Err(error)),
        };
        let record = match record {
            Ok(record) => record,
            Err(crate::audit::AuditReadError::Damaged { .. }) => {
                portion.damaged += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let (number, at) = (signed(record.number), record.entry.at.unix_millis());
        place.execute(params![number, signed(segment), signed(offset), at])?;
        text.clear();
        for word in words_of(&record.entry).into_iter().chain(facets_of(&record.entry)) {
            text.push_str(&word);
            text.push(' ');
        }
        index.execute(params![number, text])?;
        block.execute(params![number / BLOCK, at])?;
        forget_purged(connection, &record)?;
        portion.added += 1;
        portion.last = Some((record.number, record.hash));
    }
}

/// Records that a purge has removed are not found any more. Their words stay until the ledger is built again.
fn forget_purged(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    for span in record.entry.purge.iter().flat_map(|proof| &proof.spans) {
        let span = params![signed(span.first), signed(span.last)];
        connection.execute("DELETE FROM records WHERE n BETWEEN ?1 AND ?2", span)?;
    }
    Ok(())
}

fn known(connection: &Connection) -> rusqlite::Result<Option<Known>> {
    let mut statement = connection.prepare("SELECT value FROM meta WHERE name = ?1")?;
    let chain: Option<String> = statement.query_row(["chain"], |row| row.get(0)).optional()?;
    let Some(chain) = chain else { return Ok(None) };
    let number: i64 = statement.query_row(["number"], |row| row.get(0))?;
    let hash: String = statement.query_row(["hash"], |row| row.get(0))?;
    Ok(Some(Known { chain, number: u64::try_from(number).unwrap_or(0), hash: hash.parse().ok() }))
}

fn remember(connection: &Connection, chain: &str, number: u64, hash: &ChainHash) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")?;
    statement.execute(params!["chain", chain])?;
    statement.execute(params!["number", signed(number)])?;
    statement.execute(params!["hash", hash.to_string()])?;
    Ok(())
}

/// A number as SQLite knows them. No log has more than 2⁶³ records.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
