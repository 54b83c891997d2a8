//! Rows of figures that are measured from outside, and what they are made of.

use anyhow::Context;

/// What a figure may be at most, and its unit.
pub(crate) struct AtMost(pub(crate) f64, pub(crate) &'static str);

/// Prints a figure beside a yardstick of the same run, if there is one.
pub(crate) fn row(what: &str, figure: f64, yardstick: Option<f64>, AtMost(most, unit): AtMost) {
    let verdict = if figure <= most { "(met)" } else { "(MISSED)" };
    let (beside, ratio) = match yardstick {
        Some(yardstick) => (format!("{yardstick:.1} {unit}"), format!("{:.2}", figure / yardstick)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let figure = format!("{figure:.1} {unit}");
    println!("{what:<58} | {figure:>12} | {beside:>12} | {ratio:>6} | <= {most} {unit} {verdict}");
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The resident memory of a process.
pub(crate) fn resident_kb(pid: u64) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kb| kb.trim().parse().ok());
    figure.with_context(|| format!("{path} has no VmRSS"))
}
