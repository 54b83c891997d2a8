//! Searching: words and filters, the latest records first.

use rusqlite::{Connection, OptionalExtension, params};

use super::facet::{Facet, name_of, namespace};
use super::follow::{BLOCK, Rebuilt, signed};
use super::store::is_damage;
use super::words::{words, words_of};
use super::{Ledger, LedgerError};
use crate::audit::{Entry, Kind, Moment, Points, Record, Status};

/// How many hits a search gives at most.
pub const MAX_LIMIT: usize = 1000;

/// What to search for. Everything that is given must hold.
#[derive(Debug, Clone)]
pub struct Query {
    /// Words that the entry holds, in any order; the last letters may be left out with `*`.
    pub words: Vec<String>,
    /// The id of the actor, or its kind and id as `kind:id`.
    pub actor: Option<String>,
    /// The method or topic; `name.*` for all of a name space.
    pub method: Option<String>,
    /// The workspace.
    pub workspace_id: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The correlation, by itself: see [`Ledger::chain`] for what belongs to it.
    pub correlation_id: Option<String>,
    /// What the correlation is part of.
    pub parent_correlation_id: Option<String>,
    /// The policy decision.
    pub decision_id: Option<String>,
    /// How it ended.
    pub status: Option<Status>,
    /// What sort of record.
    pub kind: Option<Kind>,
    /// Not before.
    pub from: Option<Moment>,
    /// Not after.
    pub to: Option<Moment>,
    /// Only records before this number: the last one seen, to go on.
    pub before: Option<u64>,
    /// How many, up to [`MAX_LIMIT`].
    pub limit: usize,
}

impl Default for Query {
    fn default() -> Self {
        Query {
            words: Vec::new(),
            actor: None,
            method: None,
            workspace_id: None,
            session_id: None,
            correlation_id: None,
            parent_correlation_id: None,
            decision_id: None,
            status: None,
            kind: None,
            from: None,
            to: None,
            before: None,
            limit: 100,
        }
    }
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// The records, the latest first.
    pub records: Vec<Record>,
    /// Whether there may be more: ask again with `before` set to the last number.
    pub more: bool,
}

impl Ledger {
    /// Searches. Only what the ledger has been told of is found: see [`catch_up`](Ledger::catch_up).
    pub fn search(&mut self, query: &Query) -> Result<Hits, LedgerError> {
        match self.attempt(query) {
            Ok(Some(hits)) => return Ok(hits),
            // The index names a place where something else stands.
            Ok(None) => self.store.clear()?,
            Err(LedgerError::Sqlite(error)) if is_damage(&error) => self.store.replace()?,
            Err(error) => return Err(error),
        }
        self.catch_up()?;
        Ok(self.attempt(query)?.unwrap_or(Hits { records: Vec::new(), more: false }))
    }

    /// The hits; none if the index is wrong.
    fn attempt(&mut self, query: &Query) -> Result<Option<Hits>, LedgerError> {
        let limit = query.limit.clamp(1, MAX_LIMIT);
        let mut points = Points::new(&self.reader)?;
        let connection = self.store.connection()?;
        let mut hits = Hits { records: Vec::new(), more: false };
        // What has no letter and no digit is no word, and nothing holds it.
        let wordless = query.words.iter().any(|text| wanted(text).next().is_none());
        let Some((low, high)) = numbers(connection, query)?.filter(|_| !wordless) else {
            return Ok(Some(hits));
        };
        let matching = matching(query);
        let sql = match &matching {
            Some(_) => {
                "SELECT r.n, r.segment, r.offset FROM words AS w CROSS JOIN records AS r ON r.n = w.rowid
                 WHERE w.words MATCH ?1 AND w.rowid BETWEEN ?2 AND ?3 ORDER BY w.rowid DESC"
            }
            None => {
                "SELECT n, segment, offset FROM records WHERE ?1 IS NULL AND n BETWEEN ?2 AND ?3 ORDER BY n DESC"
            }
        };
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(params![matching, low, high])?;
        while let Some(row) = rows.next()? {
            let [number, segment, offset] = [row.get(0)?, row.get(1)?, row.get(2)?].map(unsigned);
            match points.read(segment, offset)? {
                Some(record) if record.number == number => {
                    if !holds(query, &record.entry) {
                        continue;
                    }
                    if hits.records.len() == limit {
                        hits.more = true;
                        break;
                    }
                    hits.records.push(record);
                }
                // Purged, and the ledger has not been told yet.
                None if !points.has(segment) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(hits))
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The numbers between which hits can be; none if there are no such.
fn numbers(connection: &Connection, query: &Query) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut low = connection
        .query_row("SELECT min(n) FROM records", [], |row| row.get::<_, Option<i64>>(0))?
        .unwrap_or(0);
    let mut high = i64::MAX;
    if let Some(before) = query.before {
        high = signed(before) - 1;
    }
    if let Some(from) = query.from {
        let sql = "SELECT block FROM blocks WHERE newest >= ?1 ORDER BY block LIMIT 1";
        let first: Option<i64> =
            connection.query_row(sql, [from.unix_millis()], |row| row.get(0)).optional()?;
        let Some(first) = first else { return Ok(None) };
        low = low.max(first * BLOCK);
    }
    if let Some(to) = query.to {
        let sql = "SELECT block FROM blocks WHERE oldest <= ?1 ORDER BY block DESC LIMIT 1";
        let last: Option<i64> = connection.query_row(sql, [to.unix_millis()], |row| row.get(0)).optional()?;
        let Some(last) = last else { return Ok(None) };
        high = high.min((last + 1) * BLOCK - 1);
    }
    Ok((low <= high).then_some((low, high)))
}

/// The expression for the index; none if it does not matter.
fn matching(query: &Query) -> Option<String> {
    let mut terms = Vec::new();
    let mut facet =
        |facet: Facet, value: Option<&str>| terms.extend(value.map(|it| term(&facet.word(it), false)));
    if let Some(actor) = &query.actor {
        let (kind, id) = actor_parts(actor);
        facet(Facet::ActorKind, kind);
        facet(Facet::ActorId, Some(id));
    }
    match query.method.as_deref().map(|method| (method, method.strip_suffix(".*"))) {
        Some((_, Some(space))) => facet(Facet::Namespace, Some(space)),
        method => facet(Facet::Name, method.map(|(name, _)| name)),
    }
    facet(Facet::Workspace, query.workspace_id.as_deref());
    facet(Facet::Session, query.session_id.as_deref());
    facet(Facet::Correlation, query.correlation_id.as_deref());
    facet(Facet::ParentCorrelation, query.parent_correlation_id.as_deref());
    facet(Facet::Decision, query.decision_id.as_deref());
    facet(Facet::Status, query.status.map(name_of).as_deref());
    facet(Facet::Kind, query.kind.map(name_of).as_deref());
    for text in &query.words {
        terms.extend(wanted(text).map(|(word, beginning)| term(&word, beginning)));
    }
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// A word as the index wants it. It has no quotation marks.
fn term(word: &str, beginning: bool) -> String {
    if beginning { format!("\"{word}\" *") } else { format!("\"{word}\"") }
}

/// The words of a text that is searched for; the last one may be only the beginning of one.
fn wanted(text: &str) -> impl Iterator<Item = (String, bool)> {
    let beginning = text.ends_with('*');
    let mut found = words(text).peekable();
    std::iter::from_fn(move || {
        let word = found.next()?;
        let last = found.peek().is_none();
        Some((word, beginning && last))
    })
}

fn actor_parts(actor: &str) -> (Option<&str>, &str) {
    actor.split_once(':').map_or((None, actor), |(kind, id)| (Some(kind), id))
}

/// Whether an entry is what was asked for, by the entry itself.
fn holds(query: &Query, entry: &Entry) -> bool {
    fn same(wanted: &Option<String>, value: &Option<String>) -> bool {
        wanted.is_none() || wanted == value
    }
    let actor = query.actor.as_deref().is_none_or(|wanted| {
        let (kind, id) = actor_parts(wanted);
        entry.actor.as_ref().is_some_and(|actor| actor.id == id && kind.is_none_or(|kind| actor.kind == kind))
    });
    let name = entry.method.as_deref().or(entry.topic.as_deref());
    let method = query.method.as_deref().is_none_or(|wanted| match wanted.strip_suffix(".*") {
        Some(space) => name.map(namespace) == Some(space),
        None => name == Some(wanted),
    });
    actor
        && method
        && same(&query.workspace_id, &entry.workspace_id)
        && same(&query.session_id, &entry.session_id)
        && same(&query.correlation_id, &entry.correlation_id)
        && same(&query.parent_correlation_id, &entry.parent_correlation_id)
        && query.decision_id.as_ref().is_none_or(|id| entry.decision.as_ref().is_some_and(|it| it.id == *id))
        && query.status.is_none_or(|status| entry.status == Some(status))
        && query.kind.is_none_or(|kind| entry.kind == kind)
        && query.from.is_none_or(|from| entry.at >= from)
        && query.to.is_none_or(|to| entry.at <= to)
        && has_words(query, entry)
}

fn has_words(query: &Query, entry: &Entry) -> bool {
    if query.words.is_empty() {
        return true;
    }
    let words = words_of(entry);
    query.words.iter().flat_map(|text| wanted(text)).all(|(word, beginning)| {
        let mut from = words.range(word.clone()..);
        from.next().is_some_and(|found| if beginning { found.starts_with(&word) } else { *found == word })
    })
}

impl Rebuilt {
    /// In words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Rebuilt::Asked => "it was asked for",
            Rebuilt::OtherLog => "it belonged to another log",
            Rebuilt::LogChanged => "the log is not the one it knew",
            Rebuilt::Damaged => "it was damaged",
        }
    }
}
