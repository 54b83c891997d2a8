//! What a run waits for, down to what holds it up, with the next step.

use swb_bus::BusHandle;
use swb_proto::run::{Get, RunView, Wait, Waits, WhichRun};

use super::list::sign;
use super::{meant, runs};
use crate::commands::approvals::since;
use crate::commands::run::daemon::short;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, NAME, WARN};
use crate::plain;

/// How many runs that wait for each other are walked.
const LONGEST_WALK: usize = 100;

pub(super) async fn run(handle: &BusHandle, wanted: Option<&str>, io: &Io) -> Result<u8, Failure> {
    let mut next = Some(meant(&runs(handle).await?, wanted)?.run_id);
    for _ in 0..LONGEST_WALK {
        let Some(run_id) = next.take() else { break };
        let view = handle.call::<Get>(WhichRun { run_id: Some(run_id), session_id: None }).await?;
        // What it waits for may be another run, which waits for something itself.
        next = view.waits.iter().find_map(|wait| match &wait.what {
            Waits::Run { run_id } => Some(run_id.clone()),
            _ => None,
        });
        if io.json {
            io.json_line(&view)?;
        } else {
            tell(&view, io)?;
        }
    }
    Ok(exit_code::SUCCESS)
}

fn tell(view: &RunView, io: &Io) -> Result<(), Failure> {
    let run = &view.run;
    let (mark, style, state) = sign(run.state);
    let (id, title) = (short(run.session_id.as_str()), plain::line(&run.title, 60));
    io.line(format!("{style}{mark}{style:#} {NAME}{id}{NAME:#}  {state}  {title}"))?;
    if let Some(error) = &run.error {
        io.line(format!("  {}", plain::line(&error.message, 200)))?;
    }
    if run.state.is_over() {
        io.note(format!("{DIM}it is over and waits for nothing; `swb logs {id}` tells what it did{DIM:#}"));
        return Ok(());
    }
    for (depth, wait) in view.waits.iter().enumerate() {
        io.line(format!("{}{}", "  ".repeat(depth + 1), in_words(wait)))?;
    }
    let said = view.text.lines().rfind(|line| !line.trim().is_empty());
    if let Some(said) = said {
        io.line(format!("  {DIM}it last said: {}{DIM:#}", plain::line(said, 120)))?;
    }
    Ok(())
}

fn in_words(wait: &Wait) -> String {
    let age = format!("{DIM}for {}{DIM:#}", since(&wait.since));
    let what = match &wait.what {
        Waits::Approval { approval_id, about } => {
            let (id, about) = (short(approval_id.as_str()), plain::line(about, 120));
            format!(
                "{WARN}waits for somebody to agree{WARN:#} to {about} {age} \
                 {DIM}· swb approvals approve {id} | deny {id}{DIM:#}"
            )
        }
        Waits::Tool { name, .. } => format!("waits for the tool {} {age}", plain::line(name, 60)),
        Waits::Subagent { name } => format!("waits for the agent {} {age}", plain::line(name, 60)),
        Waits::Model => format!("waits for its model {age}"),
        Waits::Person { messages } => format!(
            "{messages} {} until a person says something {age} {DIM}· swb send · [runs] messages_in_a_row{DIM:#}",
            if *messages == 1 { "message to it waits" } else { "messages to it wait" }
        ),
        Waits::Slot { behind } => {
            format!("waits for a slot of the machine, {behind} before it {age} {DIM}· [runs] slots{DIM:#}")
        }
        Waits::Run { run_id } => format!("waits for the run before it, {} {age}", short(run_id.as_str())),
    };
    format!("└ {what}")
}
