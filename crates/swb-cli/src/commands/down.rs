//! `swb down`: stop the daemon and wait until it is gone.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use swb_proto::control::{Shutdown, ShutdownParams};
use swb_proto::run::{List, ListRunsParams};

use crate::connect::connect_if_running;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io};

/// How long a daemon may take: its own patience with requests in flight, and a margin.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Leave agents at work; the next daemon finds them.
    #[arg(long)]
    keep: bool,
    /// End agents that are at work without asking.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: DownArgs, io: &Io) -> Result<u8, Failure> {
    if !args.keep && !args.yes && !may_end_runs(io).await? {
        return Err(Failure::new("nothing was stopped")
            .hint("`swb down --keep` leaves agents at work, `swb down --yes` ends them"));
    }
    let stopped = stop("swb down", !args.keep, io).await?;
    if io.json {
        io.object(
            &json!({ "status": if stopped.is_some() { "stopped" } else { "not_running" }, "pid": stopped }),
        )?;
    } else if let Some(pid) = stopped {
        io.line(format!("{DIM}●{DIM:#} Switchboard has stopped (pid {pid})"))?;
    } else {
        io.line(format!("{DIM}●{DIM:#} Switchboard is not running"))?;
    }
    Ok(exit_code::SUCCESS)
}

/// Whether runs that are under way may be ended: there are none, or somebody agrees.
async fn may_end_runs(io: &Io) -> Result<bool, Failure> {
    let Some(handle) = connect_if_running().await? else { return Ok(true) };
    let runs = handle.call::<List>(ListRunsParams::default()).await?.runs;
    if runs.is_empty() {
        return Ok(true);
    }
    for run in &runs {
        io.note(format!("{} works: {}", run.session_id, run.title));
    }
    if io.json || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    io.note(format!("end {} of them? [y/N] ", runs.len()));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Failure::new("no answer").because(error))?;
    Ok(answer.trim().eq_ignore_ascii_case("y"))
}

/// Stops the daemon, if there is one; returns once its process has ended, with its pid.
pub(crate) async fn stop(reason: &str, end_agents: bool, io: &Io) -> Result<Option<u32>, Failure> {
    let Some(handle) = connect_if_running().await? else { return Ok(None) };
    let stopping =
        handle.call::<Shutdown>(ShutdownParams { reason: Some(reason.to_owned()), end_agents }).await?;
    drop(handle);
    if stopping.in_flight > 0 && !io.json {
        io.note(format!("waiting for {} requests in flight …", stopping.in_flight));
    }
    let pid = stopping.pid;
    match tokio::task::spawn_blocking(move || has_ended(pid, PATIENCE)).await {
        Ok(true) => Ok(Some(pid)),
        _ => {
            Err(Failure::new(format!("the daemon (pid {pid}) did not stop within {} s", PATIENCE.as_secs()))
                .hint(format!(
                    "look at its log, or end it with `kill -9 {pid}`: nothing that matters is lost"
                )))
        }
    }
}

/// Waits for the end of a process. One that cannot be found has ended.
fn has_ended(pid: u32, patience: Duration) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let patience = Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap_or(60), tv_nsec: 0 };
    poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0)
}
