//! `swb down`: stop the daemon and wait until it is gone.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use swb_proto::control::{Shutdown, ShutdownParams};

use crate::connect::connect_if_running;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io};

/// How long a daemon may take: its own patience with requests in flight, and a margin.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn run(io: &Io) -> Result<u8, Failure> {
    let stopped = stop("swb down", io).await?;
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

/// Stops the daemon, if there is one; returns once its process has ended, with its pid.
pub(crate) async fn stop(reason: &str, io: &Io) -> Result<Option<u32>, Failure> {
    let Some(handle) = connect_if_running().await? else { return Ok(None) };
    let stopping = handle.call::<Shutdown>(ShutdownParams { reason: Some(reason.to_owned()) }).await?;
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
