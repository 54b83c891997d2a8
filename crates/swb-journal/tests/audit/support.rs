//! A log in a folder of its own, entries to put into it, and child processes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use swb_journal::audit::{
    AuditLog, AuditOptions, AuditReader, Durability, Entry, Head, Moment, Opened, Record, RecordedActor,
    Report, Status, verify,
};

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    pub(crate) fn open(&self) -> AuditLog {
        self.open_with(AuditOptions::default()).0
    }

    pub(crate) fn open_with(&self, options: AuditOptions) -> (AuditLog, Opened) {
        AuditLog::open(&self.folder(), options, at(0)).unwrap()
    }

    pub(crate) fn reader(&self) -> AuditReader {
        AuditReader::new(self.folder())
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.reader().records_after(0).unwrap().collect::<Result<_, _>>().unwrap()
    }

    pub(crate) fn verify(&self, anchors: &[Head]) -> Report {
        verify(&self.folder(), anchors).unwrap()
    }

    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        segments(&self.folder())
    }

    /// A log of so many records in small segments.
    pub(crate) fn with_records(count: u64, segment_bytes: u64) -> Self {
        let world = Self::new();
        let log = world.open_with(small(segment_bytes)).0;
        for n in 1..=count {
            log.append_now(&event(n)).unwrap();
        }
        world
    }
}

pub(crate) fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    found.sort();
    found
}

pub(crate) fn small(segment_bytes: u64) -> AuditOptions {
    AuditOptions { segment_bytes, ..AuditOptions::default() }
}

pub(crate) fn synced() -> AuditOptions {
    AuditOptions { durability: Durability::Synced, ..AuditOptions::default() }
}

/// So many seconds after some moment.
pub(crate) fn at(seconds: i64) -> Moment {
    Moment::from_unix_millis(1_763_202_276_007 + seconds * 1000)
}

pub(crate) fn days(days: i64) -> Moment {
    at(days * 86_400)
}

pub(crate) fn actor() -> RecordedActor {
    RecordedActor { kind: "agent".to_owned(), id: "agent_1".to_owned() }
}

pub(crate) fn start(n: u64) -> Entry {
    Entry {
        actor: Some(actor()),
        correlation_id: Some(format!("cor_{n}")),
        workspace_id: Some("ws_1".to_owned()),
        session_id: Some(format!("sess_{}", n % 3)),
        args: Some(json!({ "name": format!("number {n}"), "lines": "a\nb" }).into()),
        ..Entry::start(at(0), "session.create")
    }
}

pub(crate) fn end(of: u64, start: &Entry) -> Entry {
    Entry { duration_us: Some(12), ..Entry::end(at(1), of, Status::Ok, start) }
}

pub(crate) fn event(n: u64) -> Entry {
    Entry {
        session_id: Some(format!("sess_{}", n % 3)),
        payload: Some(json!({ "n": n, "text": "ü \u{0} \u{2028} \" \\" }).into()),
        ..Entry::event(at(0), "session.created", n * 10)
    }
}

/// Runs an ignored test of this binary as a process of its own, behind a shell's words if there are any.
pub(crate) fn child(shell: &str, test: &str, vars: &[(&str, String)]) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .envs(vars.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// What a child says after a word, as it says it.
pub(crate) fn said(child: &mut Child, word: &'static str) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(move |line| line.split_once(word).map(|(_, rest)| rest.trim().to_owned()))
}
