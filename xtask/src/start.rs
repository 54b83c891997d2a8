//! The start bench: how long a cold `swb up` takes until the daemon serves, and what it weighs when idle.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{self, Workspace, cargo};
use crate::figures::{AtMost, median, resident_kb, row};

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
    row("swb up, until it serves", median(millis), None, AtMost(150.0, "ms"));
    row("resident memory of the idle daemon", median(megabytes), None, AtMost(20.0, "MB"));
    Ok(())
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
