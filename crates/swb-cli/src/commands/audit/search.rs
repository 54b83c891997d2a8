//! `swb audit search`.

use clap::Args;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use swb_journal::audit::{Kind, Moment, Record, Status};
use swb_journal::ledger::{Ledger, MAX_LIMIT, Query};

use super::place::{PlaceArgs, ledger_failed};
use super::show;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, WARN};

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Words that the record holds, all of them; `*` at the end of one stands for its rest.
    words: Vec<String>,
    /// Who acted: an id, or kind:id.
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
    /// The method or topic; `session.*` for all that begin so.
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// The session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The workspace.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// The correlation, by itself.
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// The correlation with all that is above and below it, from its beginning.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["words", "actor", "method", "session", "workspace", "correlation", "decision", "status",
                              "kind", "since", "until", "before", "limit"]
    )]
    chain: Option<String>,
    /// The policy decision.
    #[arg(long, value_name = "ID")]
    decision: Option<String>,
    /// How it ended: ok, error, denied, timed_out, cancelled or interrupted.
    #[arg(long, value_parser = named::<Status>)]
    status: Option<Status>,
    /// What sort of record: start, end, event, hold, release, purge or recovered.
    #[arg(long, value_parser = named::<Kind>)]
    kind: Option<Kind>,
    /// Not before: a time like 2026-11-15T10:00:00Z, or how long ago, like 90m, 12h or 7d.
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Moment>,
    /// Not after.
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Moment>,
    /// Only records before this number, to go on where the last search ended.
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// How many, up to 1000.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100, value_parser = limit)]
    limit: usize,
}

/// A word of the record itself.
fn named<T: for<'de> Deserialize<'de> + PartialEq + Named>(text: &str) -> Result<T, String> {
    let deserializer: StrDeserializer<'_, ValueError> = text.into_deserializer();
    match T::deserialize(deserializer) {
        Ok(value) if value != T::OTHER => Ok(value),
        _ => Err(format!("one of {}", T::NAMES)),
    }
}

trait Named: Sized {
    const OTHER: Self;
    const NAMES: &'static str;
}

impl Named for Status {
    const OTHER: Self = Status::Other;
    const NAMES: &'static str = "ok, error, denied, timed_out, cancelled, interrupted";
}

impl Named for Kind {
    const OTHER: Self = Kind::Other;
    const NAMES: &'static str = "start, end, event, hold, release, purge, recovered";
}

/// A moment as people write it: a date, or how long ago.
pub(in crate::commands) fn moment(text: &str) -> Result<Moment, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    if let Some((number, seconds)) = number.parse::<u32>().ok().zip(seconds) {
        let ago = i64::from(number) * seconds * 1000;
        return Ok(Moment::from_unix_millis(Moment::now().unix_millis() - ago));
    }
    Moment::parse(text)
        .ok_or_else(|| "a time like 2026-11-15T10:00:00Z, or how long ago, like 12h or 7d".to_owned())
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
        _ => Err(format!("a number from 1 to {MAX_LIMIT}")),
    }
}

pub(crate) fn run(args: SearchArgs, io: &Io) -> Result<u8, Failure> {
    let mut ledger = args.place.ledger()?;
    let caught_up = ledger.catch_up().map_err(ledger_failed)?;
    if let Some(reason) = caught_up.rebuilt {
        io.note(format!("{DIM}the index was built again: {}{DIM:#}", reason.describe()));
    }
    if caught_up.damaged > 0 {
        let count = caught_up.damaged;
        io.note(format!(
            "{WARN}warning:{WARN:#} {count} damaged records are left out: `swb audit verify` names them"
        ));
    }
    let (mut records, more) = match &args.chain {
        Some(id) => chain(&mut ledger, id)?,
        None => search(&mut ledger, args)?,
    };
    records.sort_by_key(|record| record.number);
    for record in &records {
        show::record(record, io)?;
    }
    if let Some(first) = records.first().filter(|_| more) {
        io.note(format!("{DIM}… and earlier ones: --before {}{DIM:#}", first.number));
    }
    Ok(exit_code::SUCCESS)
}

fn chain(ledger: &mut Ledger, id: &str) -> Result<(Vec<Record>, bool), Failure> {
    let (records, whole) = ledger.chain(id).map_err(ledger_failed)?;
    Ok((records, !whole))
}

fn search(ledger: &mut Ledger, args: SearchArgs) -> Result<(Vec<Record>, bool), Failure> {
    let query = Query {
        words: args.words,
        actor: args.actor,
        method: args.method,
        workspace_id: args.workspace,
        session_id: args.session,
        correlation_id: args.correlation,
        parent_correlation_id: None,
        decision_id: args.decision,
        status: args.status,
        kind: args.kind,
        from: args.since,
        to: args.until,
        before: args.before,
        limit: args.limit,
    };
    let hits = ledger.search(&query).map_err(ledger_failed)?;
    Ok((hits.records, hits.more))
}
