//! Runs, one line each.

use swb_bus::BusHandle;
use swb_proto::run::{Run, RunState};

use super::runs;
use crate::commands::approvals::since;
use crate::commands::run::daemon::short;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

pub(super) async fn run(handle: &BusHandle, all: bool, io: &Io) -> Result<u8, Failure> {
    let runs = runs(handle).await?;
    let mut shown = 0;
    for run in runs.iter().filter(|run| all || !run.state.is_over()) {
        shown += 1;
        if io.json {
            io.json_line(run)?;
        } else {
            io.line(line(run))?;
        }
    }
    if shown == 0 && !io.json {
        let more = if runs.is_empty() { "`swb run` begins one" } else { "`swb agents --all` lists what was" };
        io.note(format!("{DIM}nothing is at work: {more}{DIM:#}"));
    }
    Ok(exit_code::SUCCESS)
}

fn line(run: &Run) -> String {
    let (sign, style, state) = sign(run.state);
    let mut figures = vec![format!("{} ago", since(&run.created_at)), run.agent.clone()];
    figures.extend(run.model.clone());
    let tokens = run.usage.input_tokens + run.usage.output_tokens;
    figures.push(format!("{tokens} tokens"));
    if let Some(cost) = run.usage.cost_usd.filter(|cost| *cost > 0.0) {
        figures.push(format!("${cost:.4}"));
    }
    figures.extend(run.containment.clone());
    let figures = plain::line(&figures.join(" · "), 160);
    let (id, title) = (short(run.session_id.as_str()), plain::line(&run.title, 60));
    format!("{style}{sign}{style:#} {NAME}{id}{NAME:#}  {state:<9}  {title}  {DIM}{figures}{DIM:#}")
}

/// How a state is shown.
pub(super) fn sign(state: RunState) -> (&'static str, anstyle::Style, &'static str) {
    match state {
        RunState::Queued => ("◌", WARN, "queued"),
        RunState::Running => ("●", GOOD, "running"),
        RunState::Completed => ("✓", DIM, "done"),
        RunState::Failed => ("✗", BAD, "failed"),
        RunState::Cancelled => ("■", WARN, "cancelled"),
    }
}
