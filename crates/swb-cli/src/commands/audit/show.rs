//! A record on one line: when, who, what, how it ended, and as much of the rest as fits.

use swb_journal::audit::{Kind, Record, Status};

use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

pub(super) fn record(record: &Record, io: &Io) -> Result<(), Failure> {
    if io.json { io.json_line(record) } else { io.line(line(record, columns())) }
}

fn line(record: &Record, columns: usize) -> String {
    let entry = &record.entry;
    let (sign, style) = match (entry.kind, entry.status) {
        (Kind::Start, _) => ("▶", DIM),
        (Kind::End, Some(Status::Ok)) => ("✔", GOOD),
        (Kind::End, Some(Status::Denied)) => ("⊘", BAD),
        (Kind::End, Some(Status::Error)) => ("✗", BAD),
        (Kind::End, _) => ("!", WARN),
        (Kind::Event, _) => ("•", NAME),
        _ => ("§", WARN),
    };
    let name = entry.method.as_deref().or(entry.topic.as_deref());
    let name = plain::line(name.unwrap_or(kind(entry.kind)), 40);
    let actor = entry.actor.as_ref().map_or(String::new(), |actor| plain::line(&actor.id, 24));
    let time = entry.at.to_string().replace('T', " ");
    let time = time.get(..19).unwrap_or(&time);
    let number = record.number;
    let used = 8 + 2 + 19 + 2 + 1 + 1 + 24 + 1 + 40 + 1;
    let rest = plain::cut(&plain::line(&details(record), 400), columns.saturating_sub(used).max(20));
    format!("{DIM}{number:>8}  {time}{DIM:#}  {style}{sign}{style:#} {actor:<24} {NAME}{name}{NAME:#} {rest}")
}

/// What is worth saying beside the name.
fn details(record: &Record) -> String {
    let entry = &record.entry;
    let mut parts = Vec::new();
    if let Some(of) = entry.of {
        parts.push(format!("of {of}"));
    }
    parts.extend(entry.error_code.clone());
    parts.extend(entry.message.clone());
    parts.extend(entry.session_id.clone());
    if let Some(hold) = &entry.hold {
        parts.push(format!("{} placed: {}", hold.id, hold.reason));
    }
    if let Some(hold) = &entry.release {
        parts.push(format!("{hold} released"));
    }
    if let Some(purge) = &entry.purge {
        parts.push(format!("{} records removed: {}", purge.records, purge.reason));
    }
    if let Some(cut) = &entry.recovered {
        parts.push(format!("a torn tail of {} bytes was cut", cut.bytes));
    }
    let values = [&entry.args, &entry.payload, &entry.result];
    parts.extend(values.into_iter().flatten().map(ToString::to_string));
    parts.join(" · ")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Start => "start",
        Kind::End => "end",
        Kind::Event => "event",
        Kind::Hold => "hold",
        Kind::Release => "release",
        Kind::Purge => "purge",
        Kind::Recovered => "recovered",
        Kind::Other => "other",
    }
}

/// As wide as the terminal; without one, as wide as it takes.
fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(400, |(width, _)| usize::from(width.0))
}
