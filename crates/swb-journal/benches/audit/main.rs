//! The audit log and its ledger against what the machine could do at best, or against their targets, in one run.
//!
//! Each line is `name: ours X, limit Y, ratio Z`; the ratio is ours to the limit, of rates where a rate is given and of
//! times where a time is given. `--quick` takes a fiftieth of everything; names of groups run only those.

#![expect(clippy::print_stdout, reason = "printing is what a benchmark does")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

mod search;

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::json;
use swb_journal::audit::{
    AuditLog, AuditOptions, AuditReader, Durability, Entry, Moment, RecordedActor, RecordedDecision, Status,
    Verdict, verify,
};

const ROUNDS: usize = 5;
/// How many appends are under way at a time.
const FLIGHT: usize = 64;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let groups: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|wanted| wanted == group);
    let scale = if quick { 50 } else { 1 };
    let dir = tempfile::tempdir().unwrap();
    if wanted("append") {
        written_rows(dir.path(), 100_000 / scale);
        synced_rows(dir.path(), 5_000 / scale);
    }
    if !wanted("verify") && !wanted("read") && !wanted("search") {
        return;
    }
    let [small, large] = ["small", "large"].map(|name| dir.path().join(name));
    fill(&small, 10_000 / scale as u64);
    fill(&large, 1_000_000 / scale as u64);
    if wanted("verify") {
        verify_row(&large);
    }
    if wanted("read") {
        read_rows(&small, &large);
    }
    if wanted("search") {
        search::rows(&large, &dir.path().join("ledger.db"));
    }
}

/// A command as the daemon records it.
fn start(n: u64) -> Entry {
    Entry {
        actor: Some(RecordedActor { kind: "agent".into(), id: format!("agent_{}", n % 40) }),
        correlation_id: Some(format!("cor_01JCQ8{n:020}")),
        parent_correlation_id: n.is_multiple_of(16).then(|| format!("cor_01JCQ8{:020}", n / 16)),
        workspace_id: Some(format!("ws_01JCQ8ZJ5T7R2M4N6P8Q0S{:02}", n % 8)),
        session_id: Some(format!("sess_01JCQ8ZJ5T7R2M4N6P8Q{:05}", n / 500)),
        command_id: Some(format!("req_01JCQ8{n:020}")),
        decision: Some(RecordedDecision {
            id: format!("dec_01JCQ8{n:020}"),
            outcome: "permit".into(),
            rules: vec!["default.read".into()],
            approval_id: None,
        }),
        args: Some(json!({
            "path": format!("crates/room_{}/src/file_{}.rs", n % 12, n % 2000),
            "text": format!("run {} of the tests is {}", n % 1000, WORDS[usize::try_from(n).unwrap() % WORDS.len()]),
        }).into()),
        ..Entry::start(moment(n), METHODS[usize::try_from(n).unwrap() % METHODS.len()])
    }
}

const METHODS: [&str; 5] =
    ["session.create", "terminal.input", "agent.run", "project.clone", "approval.request.resolve"];
const WORDS: [&str; 11] = [
    "green",
    "red",
    "slow",
    "flaky",
    "done",
    "skipped",
    "cached",
    "stale",
    "blocked",
    "waiting",
    "cancelled",
];

fn moment(n: u64) -> Moment {
    Moment::from_unix_millis(1_763_202_276_007 + i64::try_from(n).unwrap() * 50)
}

fn end(n: u64, of: u64, start: &Entry) -> Entry {
    let status = if n.is_multiple_of(50) { Status::Denied } else { Status::Ok };
    Entry { duration_us: Some(n % 7000), ..Entry::end(moment(n), of, status, start) }
}

fn open(folder: &Path, durability: Durability) -> AuditLog {
    let options = AuditOptions { durability, queue_bytes: 64 << 20, ..AuditOptions::default() };
    AuditLog::open(folder, options, moment(0)).unwrap().0
}

/// Starts, ends, and an event now and then.
fn fill(folder: &Path, records: u64) {
    let log = open(folder, Durability::Written);
    let mut n = 0;
    while log.head().number < records {
        n += 1;
        let begun = start(n);
        let of = log.append_now(&begun).unwrap().number;
        log.append_now(&end(n, of, &begun)).unwrap();
        if n.is_multiple_of(10) {
            let payload = Some(json!({ "session_id": begun.session_id, "state": "attached" }).into());
            let event = Entry {
                payload,
                session_id: begun.session_id,
                ..Entry::event(moment(n), "session.attached", n)
            };
            log.append_now(&event).unwrap();
        }
    }
}

pub(crate) fn rate_line(name: &str, ours: f64, limit: f64) {
    println!("{name}: ours {ours:.0}/s, limit {limit:.0}/s, ratio {:.2}", ours / limit);
}

pub(crate) fn time_line(name: &str, ours: Duration, limit: Duration) {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let ratio = ours.as_secs_f64() / limit.as_secs_f64();
    println!("{name}: ours {:.1} µs, limit {:.1} µs, ratio {ratio:.2}", micros(ours), micros(limit));
}

#[expect(clippy::cast_precision_loss, reason = "counts here are small")]
pub(crate) fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|left, right| left.partial_cmp(right).unwrap());
    values[values.len() / 2]
}

/// The lines that a log writes for so many entries.
fn lines(dir: &Path, count: usize) -> Vec<Vec<u8>> {
    let folder = dir.join("lines");
    let log = open(&folder, Durability::Written);
    (0..count as u64).for_each(|n| drop(log.append(&start(n)).unwrap()));
    drop(log);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text: Vec<u8> = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    let all = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec);
    all.filter(|line| line.starts_with(b"{\"n\"")).collect()
}

/// One caller, no sync, against a loop that writes the same lines.
fn written_rows(dir: &Path, count: usize) {
    let lines = lines(dir, count);
    let entries: Vec<Entry> = (0..count as u64).map(start).collect();
    let (mut ours, mut bare, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let path = dir.join("bare");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let began = Instant::now();
        lines.iter().for_each(|line| file.write_all(line).unwrap());
        bare.push(rate(count, began.elapsed()));
        std::fs::remove_file(&path).unwrap();

        let folder = dir.join("ours");
        let log = open(&folder, Durability::Written);
        let began = Instant::now();
        append_all(&log, &entries);
        ours.push(rate(count, began.elapsed()));
        drop(log);
        std::fs::remove_dir_all(&folder).unwrap();

        let log = open(&folder, Durability::Written);
        shared.push(threads(&log, &entries, 8));
        drop(log);
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let limit = median(bare);
    rate_line("audit append, 1 caller (limit: a loop that writes the same lines)", median(ours), limit);
    rate_line("audit append, 8 threads (limit: a loop that writes the same lines)", median(shared), limit);
}

/// Group commit with a sync, against a loop that writes the same lines and syncs as often.
fn synced_rows(dir: &Path, rounds: usize) {
    let rounds = (rounds / FLIGHT).max(3);
    let count = rounds * FLIGHT;
    let lines = lines(dir, count);
    let entries: Vec<Entry> = (0..count as u64).map(start).collect();
    let (mut tickets, mut threaded, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let path = dir.join("bare");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let began = Instant::now();
        for lines in lines.chunks(FLIGHT) {
            lines.iter().for_each(|line| file.write_all(line).unwrap());
            file.sync_data().unwrap();
        }
        bare.push(rate(count, began.elapsed()));
        std::fs::remove_file(&path).unwrap();

        let folder = dir.join("ours");
        let log = open(&folder, Durability::Synced);
        let began = Instant::now();
        for entries in entries.chunks(FLIGHT) {
            let under_way: Vec<_> = entries.iter().map(|entry| log.append(entry).unwrap()).collect();
            for ticket in under_way {
                black_box(ticket.wait().unwrap());
            }
        }
        tickets.push(rate(count, began.elapsed()));
        drop(log);
        std::fs::remove_dir_all(&folder).unwrap();

        let log = open(&folder, Durability::Synced);
        threaded.push(threads(&log, &entries, FLIGHT));
        drop(log);
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let limit = median(bare);
    rate_line("audit append, 64 in flight, synced (limit: 64 writes + 1 fdatasync)", median(tickets), limit);
    rate_line("audit append, 64 threads, synced (limit: 64 writes + 1 fdatasync)", median(threaded), limit);
}

fn append_all(log: &AuditLog, entries: &[Entry]) {
    for entry in entries {
        black_box(log.append_now(entry).unwrap());
    }
}

/// Appends per second of several threads together, from when all of them are there.
fn threads(log: &AuditLog, entries: &[Entry], threads: usize) -> f64 {
    let ready = Barrier::new(threads + 1);
    let began = std::thread::scope(|scope| {
        for entries in entries.chunks(entries.len().div_ceil(threads)) {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                append_all(log, entries);
            });
        }
        // As many as there are chunks may be fewer than were asked for.
        (entries.chunks(entries.len().div_ceil(threads)).count()..threads)
            .for_each(|_| drop(scope.spawn(|| ready.wait())));
        ready.wait();
        Instant::now()
    });
    rate(entries.len(), began.elapsed())
}

fn verify_row(folder: &Path) {
    let rates = (0..3)
        .map(|_| {
            let began = Instant::now();
            let report = verify(folder, &[]).unwrap();
            assert_eq!(report.verdict, Verdict::Consistent);
            rate(usize::try_from(report.records).unwrap(), began.elapsed())
        })
        .collect();
    rate_line("audit verify (limit: the target of 500,000/s)", median(rates), 500_000.0);
}

fn time_of(mut run: impl FnMut()) -> Duration {
    run();
    let times = (0..101)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    median(times)
}

fn read_rows(small: &Path, large: &Path) {
    let time = |folder: &Path| {
        let reader = AuditReader::new(folder);
        let last = reader.head().unwrap().unwrap().number;
        let seq = reader.get(last).unwrap().unwrap().seq;
        let by_number = time_of(|| drop(black_box(reader.get(last / 2).unwrap())));
        let by_event = time_of(|| assert!(reader.events_after(seq - 20).unwrap().count() > 0));
        let tail = time_of(|| drop(black_box(reader.last(20).unwrap())));
        [by_number, by_event, tail]
    };
    let (small, large) = (time(small), time(large));
    for (at, name) in
        ["one record by its number", "the last two events by their place", "the last 20 records"]
            .iter()
            .enumerate()
    {
        time_line(&format!("audit read, {name} of 1,000,000 (limit: of 10,000)"), large[at], small[at]);
    }
}
