//! The message bus against what the machine could do at best, in one run.
//!
//! Each line is `name: ours X, limit Y, ratio Z`; the ratio is ours to the limit, of rates where a rate is given and
//! of times where a time is given. The binary runs itself again as a child for the rows with several processes.
//! Rows against other programs appear if those are installed; see [`peers`].

#![expect(clippy::print_stdout, reason = "printing is what a benchmark does")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

mod peers;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

use swb_journal::message_bus::{BusOptions, BusPath, Draft, FollowEvent, FollowFrom, MessageBus};

const ROUNDS: usize = 5;

fn main() {
    if let Ok(role) = std::env::var("SWB_BENCH_CHILD") {
        return child(&role);
    }
    // Names of groups may be given to run only those.
    let groups: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|wanted| wanted == group);
    let dir = tempfile::tempdir().unwrap();
    if wanted("append") {
        append_rows(dir.path());
    }
    if wanted("threads") {
        threads_row(&dir.path().join("threads.md"));
    }
    if wanted("commit") {
        group_commit_rows(dir.path());
    }
    if wanted("follow") {
        follow_row(dir.path());
    }
    if !wanted("parse") && !wanted("lookup") {
        return;
    }
    let small = fill(&dir.path().join("small.md"), 10_000);
    let large = fill(&dir.path().join("large.md"), 1_000_000);
    if wanted("parse") {
        parse_rows(&large);
    }
    if wanted("lookup") {
        lookup_rows(&small, &large);
    }
}

fn bus(path: &Path, fsync: bool) -> MessageBus {
    MessageBus::new(BusPath::new(path).unwrap(), BusOptions { fsync, ..BusOptions::default() })
}

fn kibibyte() -> Draft {
    Draft { task_id: "task".into(), ..Draft::new("INFO", "project", "x".repeat(860)) }
}

fn rate_line(name: &str, ours: f64, limit: f64) {
    println!("{name}: ours {ours:.0}/s, limit {limit:.0}/s, ratio {:.2}", ours / limit);
}

fn time_line(name: &str, ours: Duration, limit: Duration) {
    let ratio = ours.as_secs_f64() / limit.as_secs_f64();
    println!("{name}: ours {:.1} µs, limit {:.1} µs, ratio {ratio:.2}", micros(ours), micros(limit));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|left, right| left.partial_cmp(right).unwrap());
    values[values.len() / 2]
}

fn bare_append(path: &Path, record: &[u8]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.lock().unwrap();
    file.write_all(record).unwrap();
}

fn append_loop(role: &str, path: &Path, count: usize) {
    if role == "bare" {
        let record = vec![b'x'; 1024];
        (0..count).for_each(|_| bare_append(path, &record));
    } else {
        let bus = bus(path, false);
        let draft = kibibyte();
        (0..count).for_each(|_| drop(bus.append(&draft).unwrap()));
    }
}

/// A child says that it is ready, waits for the word, and appends.
fn child(role: &str) {
    let path = PathBuf::from(std::env::var("SWB_BENCH_FILE").unwrap());
    let count = std::env::var("SWB_BENCH_COUNT").unwrap().parse().unwrap();
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    append_loop(role, &path, count);
}

/// Appends per second of several processes together.
fn processes(role: &str, path: &Path, processes: usize, each: usize) -> f64 {
    let mut children: Vec<_> = (0..processes)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .env("SWB_BENCH_CHILD", role)
                .env("SWB_BENCH_FILE", path)
                .env("SWB_BENCH_COUNT", each.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    }
    let start = Instant::now();
    children.iter_mut().for_each(|child| child.stdin.as_mut().unwrap().write_all(b"g").unwrap());
    children.iter_mut().for_each(|child| assert!(child.wait().unwrap().success()));
    let rate = rate(processes * each, start.elapsed());
    std::fs::remove_file(path).unwrap();
    rate
}

#[expect(clippy::cast_precision_loss, reason = "counts here are small")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn append_rows(dir: &Path) {
    let path = dir.join("append.md");
    let mut alone = 0.0;
    for count in [1, 4] {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(processes("bare", &path, count, 100_000 / count));
            ours.push(processes("ours", &path, count, 100_000 / count));
        }
        let name = format!(
            "append 1 KiB, {count} process{} (limit: open+flock+write+close)",
            if count == 1 { "" } else { "es" }
        );
        let ours = median(ours);
        rate_line(&name, ours, median(bare));
        if count == 1 {
            alone = ours;
        }
    }
    threads_row(&path);
    for (name, peer) in peers::ROWS {
        let dir = tempfile::tempdir_in(dir).unwrap();
        let name = format!("append 1 KiB, 1 process (limit: {name})");
        match peer(dir.path()) {
            Some(peer) => rate_line(&name, alone, peer),
            None => println!("{name}: not installed: row skipped"),
        }
    }
}

/// Appends per second of several threads together, from when all of them are there.
fn threads(bus: &MessageBus, threads: usize, each: usize) -> f64 {
    let draft = kibibyte();
    crowd(threads, each, || drop(bus.append(&draft).unwrap()))
}

/// The same of threads that do nothing but meet: the last to come writes once for each of them, syncs, and wakes the others.
fn bare_threads(path: &Path, threads: usize, each: usize, record: &[u8]) -> f64 {
    let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    let (meeting, over) = (Mutex::new((0, 0_usize)), Condvar::new());
    crowd(threads, each, || {
        let mut here = meeting.lock().unwrap();
        here.0 += 1;
        if here.0 < threads {
            let round = here.1;
            drop(over.wait_while(here, |here| here.1 == round).unwrap());
            return;
        }
        drop(here);
        (0..threads).for_each(|_| (&file).write_all(record).unwrap());
        file.sync_data().unwrap();
        let mut here = meeting.lock().unwrap();
        *here = (0, here.1 + 1);
        drop(here);
        over.notify_all();
    })
}

/// How often several threads together do something in a second.
fn crowd(threads: usize, each: usize, act: impl Fn() + Sync) -> f64 {
    let ready = Barrier::new(threads);
    // From when the first of them begins until the last has its last answer: a thread that only watches may be woken when
    // much is done already, and taking threads down is nobody's posting.
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let work = || {
            ready.wait();
            let begun = Instant::now();
            (0..each).for_each(|_| act());
            (begun, Instant::now())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let begun = spans.iter().map(|(begun, _)| *begun).min().unwrap();
    let ended = spans.iter().map(|(_, ended)| *ended).max().unwrap();
    rate(threads * each, ended - begun)
}

/// Threads that share one opened bus, against one thread that has it for itself.
fn threads_row(path: &Path) {
    let (mut shared, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (count, rates) in [(1, &mut alone), (8, &mut shared)] {
            rates.push(threads(&bus(path, false), count, 40_000 / count));
            std::fs::remove_file(path).unwrap();
        }
    }
    rate_line("append 1 KiB, 8 threads of one process (limit: one thread)", median(shared), median(alone));
}

fn group_commit_rows(dir: &Path) {
    let path = dir.join("commit.md");
    let (mut batched, mut threaded) = (Vec::new(), Vec::new());
    let (mut bare, mut bare_threaded) = (Vec::new(), Vec::new());
    let record = vec![b'x'; 1024];
    // Many rounds in turn: what else happens on the disk then happens to all of them alike.
    let rounds = 100;
    for _ in 0..2 * ROUNDS {
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let start = Instant::now();
        for _ in 0..rounds {
            (0..64).for_each(|_| file.write_all(&record).unwrap());
            file.sync_data().unwrap();
        }
        bare.push(rate(64 * rounds, start.elapsed()));
        std::fs::remove_file(&path).unwrap();

        let bus = bus(&path, true);
        let drafts = vec![kibibyte(); 64];
        let start = Instant::now();
        (0..rounds).for_each(|_| drop(bus.append_batch(&drafts).unwrap()));
        batched.push(rate(64 * rounds, start.elapsed()));
        std::fs::remove_file(&path).unwrap();

        threaded.push(threads(&self::bus(&path, true), 64, rounds));
        std::fs::remove_file(&path).unwrap();

        bare_threaded.push(bare_threads(&path, 64, rounds, &record));
        std::fs::remove_file(&path).unwrap();
    }
    let (limit, threaded, bare_threaded) = (median(bare), median(threaded), median(bare_threaded));
    rate_line("group commit, batches of 64 (limit: 64 writes + 1 fdatasync)", median(batched), limit);
    rate_line("group commit, 64 threads (limit: 64 bare threads that meet for it)", threaded, bare_threaded);
    rate_line("group commit, 64 threads (limit: 64 writes + 1 fdatasync)", threaded, limit);
    rate_line("64 bare threads that meet for it (limit: 64 writes + 1 fdatasync)", bare_threaded, limit);
}

fn fill(path: &Path, count: usize) -> PathBuf {
    let bus = bus(path, false);
    let drafts: Vec<_> = (0..1000)
        .map(|n| Draft {
            task_id: "task-20261115-102436-bench".into(),
            run_id: "20261115-1024360000-13147-1".into(),
            ..Draft::new(
                "PROGRESS",
                "conductor-loop",
                format!("step {n} of the work is done, the next one is under way"),
            )
        })
        .collect();
    (0..count / drafts.len()).for_each(|_| drop(bus.append_batch(&drafts).unwrap()));
    path.to_owned()
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "decoded to be measured, not to be read")]
struct YamlHeader {
    msg_id: String,
    ts: String,
    #[serde(rename = "type")]
    kind: String,
    project_id: String,
    task_id: String,
    run_id: String,
}

fn parse_rows(large: &Path) {
    let bus = bus(large, false);
    let (mut borrowed, mut owned) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut count = 0;
        let start = Instant::now();
        bus.visit(None, |record| {
            count += usize::from(!black_box(&record).id.is_empty());
            ControlFlow::Continue(())
        })
        .unwrap();
        borrowed.push(rate(count, start.elapsed()));
        assert_eq!(count, 1_000_000);
        let start = Instant::now();
        bus.visit(None, |record| {
            black_box(record.into_message());
            ControlFlow::Continue(())
        })
        .unwrap();
        owned.push(rate(count, start.elapsed()));
    }
    let mut bytes = vec![0; 60 << 20];
    File::open(large).unwrap().read_exact(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let headers: Vec<&str> = text.split("---\n").skip(1).step_by(2).take(100_000).collect();
    let start = Instant::now();
    headers.iter().for_each(|header| drop(black_box(serde_saphyr::from_str::<YamlHeader>(header).unwrap())));
    let saphyr = rate(headers.len(), start.elapsed());
    let start = Instant::now();
    headers.iter().for_each(|header| drop(black_box(serde_yaml_ng::from_str::<YamlHeader>(header).unwrap())));
    let yaml_ng = rate(headers.len(), start.elapsed());
    rate_line(
        "parse 1,000,000 messages, borrowed (limit: serde_yaml_ng, headers only)",
        median(borrowed),
        yaml_ng,
    );
    rate_line(
        "parse 1,000,000 messages, owned (limit: serde_yaml_ng, headers only)",
        median(owned.clone()),
        yaml_ng,
    );
    rate_line("parse 1,000,000 messages, owned (limit: serde-saphyr, headers only)", median(owned), saphyr);
}

/// The last 20 records by nothing but reading backwards for their openers.
fn bare_last(path: &Path, window: usize) -> usize {
    let file = File::open(path).unwrap();
    let len = file.metadata().unwrap().len();
    let mut bytes = vec![0; window];
    file.read_exact_at(&mut bytes, len - window as u64).unwrap();
    let mut openers = memchr::memmem::rfind_iter(&bytes, b"\n---\nmsg_id: ");
    openers.nth(19).unwrap()
}

fn time_of(mut run: impl FnMut()) -> Duration {
    run();
    let times = (0..301)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    median(times)
}

fn lookup_rows(small: &Path, large: &Path) {
    let (small_bus, large_bus) = (bus(small, false), bus(large, false));
    let near_end = |bus: &MessageBus| bus.read_last(20).unwrap()[0].id.to_string();
    let (small_id, large_id) = (near_end(&small_bus), near_end(&large_bus));
    let bare = time_of(|| {
        black_box(bare_last(large, 8 << 10));
    });
    let small_last = time_of(|| drop(black_box(small_bus.read_last(20).unwrap())));
    let large_last = time_of(|| drop(black_box(large_bus.read_last(20).unwrap())));
    let small_since = time_of(|| drop(black_box(small_bus.read_since(&small_id).unwrap())));
    let large_since = time_of(|| drop(black_box(large_bus.read_since(&large_id).unwrap())));
    time_line("last 20 of 1,000,000 (limit: of 10,000)", large_last, small_last);
    time_line("last 20 of 1,000,000 (limit: bare backwards read)", large_last, bare);
    time_line("since id near the end of 1,000,000 (limit: of 10,000)", large_since, small_since);
    time_line("since id near the end of 1,000,000 (limit: bare backwards read)", large_since, bare);
}

fn follow_row(dir: &Path) {
    let bus = bus(&dir.join("follow.md"), false);
    bus.append(&kibibyte()).unwrap();
    let mut follower = bus.follow(&FollowFrom::End).unwrap();
    let stop = follower.stopper();
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for event in &mut follower {
                if let FollowEvent::Message(_) = event.unwrap() {
                    said.send(Instant::now()).unwrap();
                }
            }
        });
        // The first post only makes sure that the follower is at its post.
        bus.append(&kibibyte()).unwrap();
        heard.recv().unwrap();
        let delays = (0..500)
            .map(|_| {
                let posted = Instant::now();
                bus.append(&kibibyte()).unwrap();
                heard.recv().unwrap() - posted
            })
            .collect();
        time_line(
            "follow, post to event p50 (limit: the target of 5 ms)",
            median(delays),
            Duration::from_millis(5),
        );
        stop.stop();
    });
}
