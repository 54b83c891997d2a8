//! The start bench: how long a cold `swb up` takes until the daemon serves, and what it weighs when idle.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{self, Workspace, cargo};

const WANTED_MS: f64 = 150.0;
const WANTED_MB: f64 = 20.0;

/// Builds the binary in release and measures it in a home of its own.
pub(crate) fn start(workspace: &Workspace, quick: bool) -> anyhow::Result<()> {
    cargo::run(&mut cargo(&["build", "--quiet", "--release", "--package", "swb-cli"]))?;
    let home = tempfile::tempdir().context("there is no place for a temporary home")?;
    let swb = Swb { binary: workspace.target_directory()?.join("release/swb"), home: home.path().to_owned() };
    let (mut millis, mut megabytes) = (Vec::new(), Vec::new());
    let runs = if quick { 2 } else { 10 };
    for _ in 0..runs {
        let started = Instant::now();
        swb.run(&["up"])?;
        millis.push(started.elapsed().as_secs_f64() * 1e3);
        let status = swb.run(&["status", "--json"])?;
        let status: serde_json::Value =
            serde_json::from_slice(&status).context("swb status --json is not JSON")?;
        let pid = status["pid"].as_u64().context("swb status --json has no pid")?;
        megabytes.push(resident_kb(pid)? / 1e3);
        swb.run(&["down"])?;
    }
    println!("\nstart (medians of {runs})");
    row("swb up, until it serves", median(millis), "ms", WANTED_MS);
    row("resident memory of the idle daemon", median(megabytes), "MB", WANTED_MB);
    Ok(())
}

fn row(what: &str, figure: f64, unit: &str, wanted: f64) {
    let verdict = if figure <= wanted { "(met)" } else { "(MISSED)" };
    let figure = format!("{figure:.1} {unit}");
    println!("{what:<58} | {figure:>12} | {:>12} | {:>6} | <= {wanted} {unit} {verdict}", "-", "-");
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

fn resident_kb(pid: u64) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kb| kb.trim().parse().ok());
    figure.with_context(|| format!("{path} has no VmRSS"))
}

/// The binary in its own home. A daemon that a failed bench leaves behind is stopped.
struct Swb {
    binary: PathBuf,
    home: PathBuf,
}

impl Swb {
    fn run(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = command(&self.binary, &self.home, args).output().context("cannot run swb")?;
        if !output.status.success() {
            bail!("swb {}: {}\n{}", args.join(" "), output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    }
}

impl Drop for Swb {
    fn drop(&mut self) {
        let _ = command(&self.binary, &self.home, &["down"]).output();
    }
}

fn command(binary: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).env("SWB_HOME", home).current_dir(home).stdin(Stdio::null());
    command
}
