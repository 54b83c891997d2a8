//! Searches of many sorts over a full ledger.

use std::path::Path;
use std::time::{Duration, Instant};

use swb_journal::audit::{AuditReader, Status};
use swb_journal::ledger::{Ledger, Query};

use crate::{METHODS, WORDS, moment, rate, rate_line, time_line};

/// A sort of search: its name, and one for any number.
type Sort = (&'static str, fn(u64) -> Query);

pub(crate) fn rows(folder: &Path, file: &Path) {
    let reader = AuditReader::new(folder);
    let last = reader.head().unwrap().unwrap().number;
    let mut ledger = Ledger::open(file, reader).unwrap();
    let began = Instant::now();
    let added = ledger.catch_up().unwrap().added;
    rate_line(
        "ledger, building it anew (limit: a hundredth of the target of verify)",
        rate(usize::try_from(added).unwrap(), began.elapsed()),
        5_000.0,
    );
    let bytes = std::fs::metadata(file).unwrap().len();
    println!("ledger: {added} records, {} bytes of index each", bytes / added);
    let commands = last * 10 / 21;
    let sorts: [Sort; 8] = [
        ("a common word", |n| words(&[WORDS[pick(n, WORDS.len())]])),
        ("three words", |n| words(&["tests", WORDS[pick(n, WORDS.len())], &format!("room_{}", n % 12)])),
        ("a rare word", |n| words(&[&format!("file_{}", n % 2000)])),
        ("a session", |n| Query {
            session_id: Some(format!("sess_01JCQ8ZJ5T7R2M4N6P8Q{:05}", n / 500)),
            ..Query::default()
        }),
        ("an actor's failures", |n| Query {
            actor: Some(format!("agent_{}", n % 40)),
            status: Some(Status::Denied),
            ..Query::default()
        }),
        ("a method with a word", |n| Query {
            method: Some(METHODS[pick(n, METHODS.len())].to_owned()),
            ..words(&[WORDS[pick(n / 7, WORDS.len())]])
        }),
        ("a minute with a word", |n| Query {
            from: Some(moment(n)),
            to: Some(moment(n + 1200)),
            ..words(&["green"])
        }),
        ("the beginning of a word", |n| words(&[&format!("file_{}*", n % 20)])),
    ];
    let mut all = Vec::new();
    for (name, query) in sorts {
        let mut times: Vec<Duration> = (0..40)
            .map(|round| {
                let query = query((round * 104_729 + 17) % commands);
                let began = Instant::now();
                std::hint::black_box(ledger.search(&query).unwrap());
                began.elapsed()
            })
            .collect();
        times.sort();
        time_line(
            &format!("ledger search p95, {name} (limit: the target of 50 ms)"),
            times[37],
            Duration::from_millis(50),
        );
        all.extend(times);
    }
    all.sort();
    time_line(
        "ledger search p95, all sorts (limit: the target of 50 ms)",
        all[all.len() * 95 / 100],
        Duration::from_millis(50),
    );
}

fn words(words: &[&str]) -> Query {
    Query { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Query::default() }
}

fn pick(n: u64, of: usize) -> usize {
    usize::try_from(n).unwrap() % of
}
