//! Figures of one run, side by side: `what | ours | limit | ratio | wanted`.
//!
//! Machines are noisy and differ, so only ratios taken within one run mean anything: contenders take turns, round by
//! round and each of them first in its turn, each figure is the median of its rounds, and a ratio is the median of the
//! ratios of the rounds.

#![allow(dead_code, reason = "each bench uses a part of this")]

/// What a ratio shall be. The samples are nanoseconds per operation.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// Our time is at most this many times the limit's.
    TimeAtMost(f64),
    /// Our throughput is at least this part of the limit's.
    RateAtLeast(f64),
    /// Our time over the limit's, for orientation.
    Time,
    /// Our throughput over the limit's, for orientation.
    Rate,
}

/// How a figure is shown.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Time,
    PerSecond,
}

/// Short rounds, for a run that only shows that the bench still works.
pub(crate) fn is_quick() -> bool {
    std::env::args().any(|arg| arg == "--quick")
}

/// The heading, with what else the machine is doing: a busy one makes every figure doubtful.
pub(crate) fn heading(title: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("\n{title} (load {load} on {cores} cores)");
    line("what", "ours", "limit", "ratio", "wanted");
}

/// Lets the contenders take turns. Returns the samples of each, one per round; a first round warms up and is dropped.
pub(crate) fn take_turns<const N: usize>(
    rounds: usize,
    contenders: [&mut dyn FnMut() -> f64; N],
) -> [Vec<f64>; N] {
    let mut samples: [Vec<f64>; N] = [const { Vec::new() }; N];
    for round in 0..=rounds {
        for place in 0..N {
            // Whoever comes after a heavy contender finds its cores where that one left them.
            let at = (place + round) % N;
            let sample = contenders[at]();
            if round > 0 {
                samples[at].push(sample);
            }
        }
    }
    samples
}

/// Prints one comparison.
pub(crate) fn row(what: &str, unit: Unit, ours: &[f64], limit: &[f64], wanted: Wanted) {
    let time = median(ours.iter().zip(limit).map(|(ours, limit)| ours / limit));
    let rate = 1.0 / time;
    let (ratio, wanted) = match wanted {
        Wanted::TimeAtMost(most) => (time, format!("<= {most} {}", verdict(time <= most))),
        Wanted::RateAtLeast(least) => (rate, format!(">= {least} {}", verdict(rate >= least))),
        Wanted::Time => (time, "-".to_owned()),
        Wanted::Rate => (rate, "-".to_owned()),
    };
    let shown = |samples: &[f64]| show(unit, median(samples.iter().copied()));
    line(what, &shown(ours), &shown(limit), &format!("{ratio:.2}"), &wanted);
}

/// Prints a figure that has nothing to be compared with.
pub(crate) fn figure(what: &str, ours: &str, wanted: &str) {
    line(what, ours, "-", "-", wanted);
}

pub(crate) fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

fn verdict(met: bool) -> &'static str {
    if met { "(met)" } else { "(MISSED)" }
}

fn show(unit: Unit, nanos: f64) -> String {
    match unit {
        Unit::Time if nanos < 10_000.0 => format!("{nanos:.0} ns"),
        Unit::Time => format!("{:.1} us", nanos / 1e3),
        Unit::PerSecond if nanos < 1_000.0 => format!("{:.2} M/s", 1e3 / nanos),
        Unit::PerSecond => format!("{:.0} k/s", 1e6 / nanos),
    }
}

fn line(what: &str, ours: &str, limit: &str, ratio: &str, wanted: &str) {
    println!("{what:<58} | {ours:>12} | {limit:>12} | {ratio:>6} | {wanted}");
}
