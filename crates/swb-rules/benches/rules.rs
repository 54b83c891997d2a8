//! The judge and redaction, beside what the machine could do at best, in one run.
//!
//! Redaction stands beside a bare scan of the same bytes for a byte that is not there (`memchr`); the judge beside a
//! read of the same line character by character. The ratio is ours to that limit.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use swb_rules::redact::{RedactedStream, redact};
use swb_rules::shell::{Mode, Scope, judge, parse};

const MEGABYTE: f64 = 1_000_000.0;
const ORDINARY: &str = "ordinary output";
const WANTED_MEGABYTES: f64 = 200.0;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let time = Duration::from_millis(if quick { 20 } else { 500 });
    judge_rows(time);
    redaction_rows(time, if quick { 100_000 } else { 4_000_000 });
}

/// Seconds per call: the best of several rounds, since everything that disturbs a round makes it slower.
fn best(time: Duration, mut call: impl FnMut()) -> f64 {
    call();
    let (started, mut best) = (Instant::now(), f64::INFINITY);
    while started.elapsed() < time {
        let round = Instant::now();
        let mut calls = 0_u32;
        while calls == 0 || round.elapsed() < time / 20 {
            call();
            calls += 1;
        }
        best = best.min(round.elapsed().as_secs_f64() / f64::from(calls));
    }
    best
}

fn judge_rows(time: Duration) {
    let scope = Scope {
        mode: Mode::Workspace,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    };
    let lines = [
        ("a plain command", "cargo test -p swb-rules -- --nocapture"),
        (
            "a typical line",
            "cd crates/swb-rules && cargo test 2>&1 | grep -v '^warning' | tail -n 40 > /tmp/out.txt",
        ),
        (
            "a nested line",
            "find . -name '*.rs' -exec sh -c 'grep -l \"$(echo x)\" . && sudo env A=1 rm -rf /' \\; | xargs wc -l",
        ),
    ];
    for (name, line) in lines {
        let ours = best(time, || {
            black_box(judge(&parse(black_box(line)), &scope));
        });
        let limit = best(time, || {
            black_box(black_box(line).chars().filter(|c| c.is_whitespace()).count());
        });
        println!(
            "judge, {name}: ours {:.2} µs, reading it {:.3} µs, ratio {:.0}",
            ours * 1e6,
            limit * 1e6,
            ours / limit
        );
    }
}

fn redaction_rows(time: Duration, size: usize) {
    let ordinary = concat!(
        "   Compiling swb-rules v0.1.0 (/home/ann/project/crates/swb-rules)\n",
        "warning: unused variable: `place` at src/shell/judge.rs:120:13\n",
        "test shell::judge::tests::reading_is_allowed ... ok\n",
        "2024-05-01T12:00:00.123Z INFO http request_id=550e8400-e29b-41d4-a716-446655440000 status=200 bytes=5120\n",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b\nAuthor: Ann <ann@example.org>\n",
        "    let answer = map.get(&key).unwrap_or_default(); // tokens are counted elsewhere\n",
    );
    let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let texts = [
        (ORDINARY, ordinary.to_owned()),
        (
            "a secret in every tenth line",
            format!("{}token {key} password=hunter2hunter\n", ordinary.repeat(2)),
        ),
        ("anchors all over", "sk-sk-password eyJ.eyJ://token=secret=-----BEGIN Bearer ".to_owned()),
        ("one token without end", "sk-proj-a1".repeat(400)),
    ];
    for (name, piece) in texts {
        let text = piece.repeat(size / piece.len() + 1);
        let megabytes = text.len() as f64 / MEGABYTE;
        let ours = best(time, || {
            black_box(redact(black_box(&text)));
        });
        let chunked = best(time, || {
            let mut stream = RedactedStream::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (chunk, behind) = rest.split_at(rest.floor_char_boundary(8192.min(rest.len())));
                black_box(stream.push(chunk));
                rest = behind;
            }
            black_box(stream.finish());
        });
        let limit = best(time, || {
            black_box(memchr::memchr(0, black_box(text.as_bytes())));
        });
        // What is wanted is wanted of what is usual; the others show that the unusual is not a way to stall it.
        let wanted = match name {
            ORDINARY if megabytes / ours >= WANTED_MEGABYTES => {
                format!(", wanted >= {WANTED_MEGABYTES} MB/s (met)")
            }
            ORDINARY => format!(", wanted >= {WANTED_MEGABYTES} MB/s (MISSED)"),
            _ => String::new(),
        };
        println!(
            "redact, {name}: ours {:.0} MB/s, in chunks {:.0} MB/s, memchr {:.0} MB/s, ratio {:.3}{wanted}",
            megabytes / ours,
            megabytes / chunked,
            megabytes / limit,
            limit / ours
        );
    }
}
