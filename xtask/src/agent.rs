//! The agent bench: how long `swb rpc` takes until it is ready, what it weighs when idle, and how long a long history
//! takes to be taken up again.
//!
//! Parents are mostly programs of Node, so what Node itself takes to do nothing is the yardstick.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{self, Workspace, cargo};
use crate::figures::{AtMost, median, resident_kb, row};

const MESSAGES: usize = 100_000;

/// Builds the binary in release and measures it in a home of its own.
pub(crate) fn agent(workspace: &Workspace, quick: bool) -> anyhow::Result<()> {
    cargo::run(&mut cargo(&["build", "--quiet", "--release", "--package", "swb-cli"]))?;
    let home = tempfile::tempdir().context("there is no place for a temporary home")?;
    let agent =
        Agent { binary: workspace.target_directory()?.join("release/swb"), home: home.path().to_owned() };
    let runs: usize = if quick { 3 } else { 30 };
    let (mut ready, mut node, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let started = agent.start(&[])?;
        ready.push(started.millis);
        idle.push(resident_kb(started.process.id().into())? / 1e3);
        started.end()?;
        node.extend(node_millis());
    }
    let session = agent.long_session()?;
    let mut resumed = Vec::new();
    for _ in 0..runs.div_ceil(6) {
        let started = agent.start(&["--continue", session])?;
        resumed.push(started.millis);
        started.end()?;
    }
    let yardstick = (!node.is_empty()).then(|| median(node));
    println!("\nagent (medians of {runs}; the yardstick is `node -e 0`)");
    row("swb rpc, from spawn to ready", median(ready), yardstick, AtMost(30.0, "ms"));
    row("resident memory of the idle agent", median(idle), None, AtMost(20.0, "MB"));
    row("a history of 100,000 messages, from spawn to ready", median(resumed), None, AtMost(1000.0, "ms"));
    Ok(())
}

/// What Node takes to do nothing; `None` without Node.
fn node_millis() -> Option<f64> {
    let started = Instant::now();
    let status = Command::new("node").args(["-e", "0"]).status().ok()?;
    status.success().then(|| started.elapsed().as_secs_f64() * 1e3)
}

struct Agent {
    binary: PathBuf,
    home: PathBuf,
}

/// An agent that has said `ready`.
struct Started {
    process: Child,
    millis: f64,
}

impl Started {
    fn end(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        let status = self.process.wait().context("the agent cannot be waited for")?;
        if !status.success() {
            bail!("swb rpc: {status}");
        }
        Ok(())
    }
}

impl Agent {
    fn start(&self, arguments: &[&str]) -> anyhow::Result<Started> {
        let mut command = Command::new(&self.binary);
        command.arg("rpc").args(arguments).env_clear().env("SWB_HOME", &self.home).env("HOME", &self.home);
        command.current_dir(&self.home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = Instant::now();
        let mut process = command.spawn().context("cannot run swb rpc")?;
        let mut line = String::new();
        let stdout = process.stdout.take().context("standard output is a pipe")?;
        BufReader::new(stdout).read_line(&mut line).context("swb rpc says nothing")?;
        let millis = started.elapsed().as_secs_f64() * 1e3;
        if !line.contains("\"ready\"") {
            bail!("swb rpc does not get ready: {line}");
        }
        Ok(Started { process, millis })
    }

    /// Writes a session as long conversations are: prompts, answers, calls of tools and their results.
    fn long_session(&self) -> anyhow::Result<&'static str> {
        const ID: &str = "sess_long";
        let folder = self.home.join("state/sessions");
        let file = folder.join(format!("{ID}.jsonl"));
        let written = std::fs::create_dir_all(&folder).and_then(|()| write_history(&file, ID));
        written.with_context(|| format!("cannot write {}", file.display()))?;
        Ok(ID)
    }
}

fn write_history(file: &Path, id: &str) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let begun = "2026-01-01T00:00:00.000Z";
    writeln!(
        out,
        r#"{{"type":"session","version":1,"id":"{id}","created_at":"{begun}","model":"demo","cwd":"/"}}"#
    )?;
    let words = "some words of a conversation that has gone on for a long time ".repeat(3);
    let text = format!(r#"{{"type":"text","text":"{words}"}}"#);
    let usage = r#"{"input_tokens":100,"output_tokens":20}"#;
    for number in 1..=MESSAGES / 4 {
        let call = format!(
            r#"{{"type":"tool_use","id":"c{number}","name":"read","input":{{"path":"src/lib.rs"}}}}"#
        );
        let result =
            format!(r#"{{"type":"tool_result","tool_use_id":"c{number}","content":"{words}{words}"}}"#);
        writeln!(out, r#"{{"type":"turn_start","number":{number},"model":"demo","preview":"some words"}}"#)?;
        let mut say = |role: &str, content: &str| {
            writeln!(out, r#"{{"type":"message","message":{{"role":"{role}","content":{content}}}}}"#)
        };
        say("user", &format!(r#""{words}""#))?;
        say("assistant", &format!("[{text},{call}]"))?;
        say("user", &format!("[{result}]"))?;
        say("assistant", &format!("[{text}]"))?;
        writeln!(out, r#"{{"type":"usage","usage":{usage}}}"#)?;
        writeln!(out, r#"{{"type":"turn_end","number":{number},"model":"demo","outcome":"done"}}"#)?;
    }
    out.flush()
}
