//! `swb status`: is it running, where, and what is it doing.

use serde_json::{Value, json};
use swb_proto::comms::Empty;
use swb_proto::control::{AuditStatus, PolicyStatus, Status, StatusResponse, TracesStatus};

use crate::connect::connect_if_running;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, BOLD, DIM, GOOD, Io};

pub(crate) async fn run(io: &Io) -> Result<u8, Failure> {
    let Some(handle) = connect_if_running().await? else {
        if io.json {
            io.object(&json!({ "running": false }))?;
        } else {
            io.line(format!("{DIM}○ Switchboard is not running{DIM:#}; start it with `swb up`"))?;
        }
        return Ok(exit_code::NOT_RUNNING);
    };
    let status = handle.call::<Status>(Empty {}).await?;
    if io.json {
        let mut object = serde_json::to_value(&status).unwrap_or_default();
        object["running"] = Value::Bool(true);
        io.object(&object)?;
    } else {
        print(&status, io)?;
    }
    Ok(exit_code::SUCCESS)
}

fn print(status: &StatusResponse, io: &Io) -> Result<(), Failure> {
    let StatusResponse { pid, version, socket, counters, head, oldest, .. } = status;
    let row = |name: &str, value: String| io.line(format!("  {DIM}{name:<11}{DIM:#} {value}"));
    io.line(format!(
        "{GOOD}●{GOOD:#} {BOLD}Switchboard {version}{BOLD:#} is running · pid {pid} · up {}",
        duration(status.uptime_ms)
    ))?;
    row("socket", socket.clone())?;
    match (&status.http, &status.http_error) {
        (Some(url), _) => row("http", url.clone())?,
        (None, Some(why)) => row("http", format!("none: {why}"))?,
        (None, None) => row("http", "off".to_owned())?,
    }
    if let Some(traces) = &status.traces {
        let TracesStatus { endpoint, exported, dropped, failure } = traces;
        row("traces", format!("{endpoint} · {exported} spans sent, {dropped} dropped"))?;
        if let Some(why) = failure {
            row("", format!("{BAD}{}{BAD:#}", crate::plain::line(why, 300)))?;
        }
    }
    row(
        "watch",
        status.watch_pid.map_or("none: a crash is not repaired".to_owned(), |pid| format!("pid {pid}")),
    )?;
    if let Some(policy) = &status.policy {
        row("rules", rules(policy))?;
        for problem in &policy.problems {
            row("", format!("{BAD}{}{BAD:#}", crate::plain::line(problem, 300)))?;
        }
    }
    if let Some(audit) = &status.audit {
        row("record", record(audit))?;
        for problem in audit.unavailable.iter().chain(&audit.anchor_failure) {
            row("", format!("{BAD}{}{BAD:#}", crate::plain::line(problem, 300)))?;
        }
    }
    row("subsystems", status.subsystems.join(" "))?;
    let kept = (head + 1).saturating_sub(*oldest);
    row(
        "events",
        if kept > 0 {
            format!("{kept} kept ({oldest}–{head})")
        } else {
            format!("none kept, the last was {head}")
        },
    )?;
    row("calls", format!("{} served · {} in flight", counters.requests, counters.in_flight))?;
    row("clients", format!("{} connected · {} subscriptions", counters.connections, counters.subscriptions))?;
    if counters.panics + counters.notifications_dropped + counters.refused + counters.reservation_failures > 0
    {
        row(
            "trouble",
            format!(
                "{} panics · {} notifications dropped · {} connections refused · {} failed reservations",
                counters.panics,
                counters.notifications_dropped,
                counters.refused,
                counters.reservation_failures
            ),
        )?;
    }
    Ok(())
}

fn rules(policy: &PolicyStatus) -> String {
    match (policy.denies_everything, policy.problems.len()) {
        (true, _) => "none that can be used: nothing is permitted".to_owned(),
        (false, 0) => format!("{} in force", policy.rules),
        (false, _) => format!("{} in force, from before these files became unusable", policy.rules),
    }
}

fn record(audit: &AuditStatus) -> String {
    let AuditStatus { number, segments, bytes, retention_days, anchored, .. } = audit;
    let anchored = anchored.map_or(String::new(), |number| format!(" · anchored up to {number}"));
    let mib = bytes.div_ceil(1024 * 1024);
    format!("{number} records · {segments} segments · {mib} MiB · kept {retention_days} days{anchored}")
}

/// A duration as people say it: the two largest units.
fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{ms} ms"),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        let shown: Vec<_> = [40, 5000, 65_000, 3_700_000, 90_000_000].map(duration).to_vec();
        assert_eq!(shown, ["40 ms", "5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
    }
}
