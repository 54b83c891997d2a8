//! The host bench: what it weighs to own one quiet child. There may be a host for every agent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo::{self, Workspace, cargo};
use crate::figures::{AtMost, median, resident_kb, row};

/// Builds the binary in release and measures hosts, each on its own.
pub(crate) fn host(workspace: &Workspace, quick: bool) -> anyhow::Result<()> {
    cargo::run(&mut cargo(&["build", "--quiet", "--release", "--package", "swb-cli"]))?;
    let binary = workspace.target_directory()?.join("release/swb");
    let runs = if quick { 2 } else { 10 };
    let mut megabytes = Vec::new();
    for _ in 0..runs {
        let home = tempfile::tempdir().context("there is no place for a socket")?;
        let host = Host::start(&binary, home.path())?;
        megabytes.push(resident_kb(host.0.id().into())? / 1e3);
    }
    println!("\nhost (medians of {runs})");
    row("resident memory of a host with a quiet child", median(megabytes), None, AtMost(5.0, "MB"));
    Ok(())
}

/// A host that is ready. Its child goes with it.
struct Host(Child);

impl Host {
    fn start(binary: &Path, home: &Path) -> anyhow::Result<Self> {
        let told = serde_json::json!({
            "socket": home.join("host.sock"), "ring": 256 << 10, "cap": 64 << 20, "walls": null,
        });
        let mut command = Command::new(binary);
        command.args(["host", &told.to_string(), "--", "sleep", "600"]).stdin(Stdio::null());
        let mut host = Host(command.stdout(Stdio::piped()).spawn().context("cannot run swb host")?);
        let mut line = String::new();
        let stdout = host.0.stdout.take().context("standard output is a pipe")?;
        BufReader::new(stdout).read_line(&mut line).context("swb host says nothing")?;
        if line != "ready\n" {
            bail!("swb host does not get ready: {line}");
        }
        Ok(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
