//! A log with a ledger beside it, and entries of many sorts.

use std::path::PathBuf;

use serde_json::json;
use swb_journal::audit::{
    AuditLog, AuditOptions, AuditReader, Entry, Moment, Record, RecordedActor, RecordedDecision, Status,
};
use swb_journal::ledger::{Ledger, Query};

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("ledger.db")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    pub(crate) fn log(&self) -> AuditLog {
        let options = AuditOptions { segment_bytes: 200_000, ..AuditOptions::default() };
        AuditLog::open(&self.folder(), options, at(0)).unwrap().0
    }

    pub(crate) fn reader(&self) -> AuditReader {
        AuditReader::new(self.folder())
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.file(), self.reader()).unwrap()
    }

    /// A log of many sorts of entries.
    pub(crate) fn filled(count: u64) -> Self {
        let world = Self::new();
        let log = world.log();
        fill(&log, 0..count);
        world
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.reader().records_after(0).unwrap().map(Result::unwrap).collect()
    }
}

pub(crate) fn at(seconds: i64) -> Moment {
    Moment::from_unix_millis(1_763_202_276_007 + seconds * 1000)
}

pub(crate) fn fill(log: &AuditLog, range: std::ops::Range<u64>) {
    for n in range {
        log.append_now(&entry(n)).unwrap();
    }
}

/// An entry that shares each of its properties with some others.
pub(crate) fn entry(n: u64) -> Entry {
    let base = Entry {
        actor: Some(RecordedActor {
            kind: if n.is_multiple_of(4) { "user" } else { "agent" }.to_owned(),
            id: format!("actor_{}", n % 7),
        }),
        correlation_id: Some(format!("cor_{}", n / 4)),
        parent_correlation_id: (n / 4).is_multiple_of(3).then(|| format!("cor_{}", n / 8)),
        workspace_id: Some(format!("ws_{}", n % 2)),
        session_id: Some(format!("sess_{}", n % 11)),
        decision: Some(RecordedDecision {
            id: format!("dec_{}", n / 2),
            outcome: "permit".to_owned(),
            rules: vec!["default".to_owned()],
            approval_id: None,
        }),
        args: Some(
            json!({
                "command": format!("cargo test --package room{} Größe", n % 13),
                "nested": [{ "word": if n.is_multiple_of(50) { "needle" } else { "hay" } }],
            })
            .into(),
        ),
        ..Entry::start(
            at(i64::try_from(n).unwrap() - if n.is_multiple_of(97) { 400 } else { 0 }),
            "session.create",
        )
    };
    match n % 5 {
        0 | 1 => base,
        2 => Entry { method: Some("terminal.input".to_owned()), ..base },
        3 => {
            let status = if n.is_multiple_of(3) { Status::Denied } else { Status::Ok };
            Entry { message: Some("no such file".to_owned()), ..Entry::end(base.at, 1, status, &base) }
        }
        _ => Entry { payload: base.args.clone(), ..Entry::event(base.at, "agent.run.started", n) },
    }
}

/// The numbers of what is found.
pub(crate) fn found(ledger: &mut Ledger, query: &Query) -> Vec<u64> {
    ledger.search(query).unwrap().records.iter().map(|record| record.number).collect()
}

pub(crate) fn word(word: &str) -> Query {
    Query { words: vec![word.to_owned()], limit: 1000, ..Query::default() }
}
