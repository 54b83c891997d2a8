//! What is said to a run: words, or that it is to end.

use swb_bus::BusHandle;
use swb_proto::run::{Cancel, CancelRunParams, FollowUp, RunState, Steer, TellParams, ToldStatus};

use super::{CancelArgs, SendArgs, meant, runs};
use crate::commands::run::daemon::short;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io, NAME, WARN};

pub(super) async fn send(handle: &BusHandle, args: SendArgs, io: &Io) -> Result<u8, Failure> {
    let run = meant(&runs(handle).await?, Some(&args.session))?;
    let id = short(run.session_id.as_str()).to_owned();
    let params = TellParams { run_id: None, session_id: Some(run.session_id), text: args.text };
    let told = if args.steer {
        handle.call::<Steer>(params).await.map_err(|error| {
            Failure::from(error).hint("without --steer a session at rest begins anew with what is said")
        })?
    } else {
        handle.call::<FollowUp>(params).await?
    };
    if io.json {
        io.object(&told)?;
        return Ok(exit_code::SUCCESS);
    }
    let how = match told.status {
        ToldStatus::Delivered if args.steer => "it hears it before its next step",
        ToldStatus::Delivered => "it hears it when it is done",
        ToldStatus::Started => "it was at rest, and begins anew",
        ToldStatus::Queued => "it waits for the run before it",
    };
    io.line(format!("{GOOD}sent{GOOD:#} to {NAME}{id}{NAME:#}: {how}"))?;
    if io.is_terminal() {
        io.note(format!("{DIM}`swb logs {id} --follow` shows what comes of it{DIM:#}"));
    }
    Ok(exit_code::SUCCESS)
}

pub(super) async fn cancel(handle: &BusHandle, args: CancelArgs, io: &Io) -> Result<u8, Failure> {
    let run = meant(&runs(handle).await?, args.session.as_deref())?;
    let was_over = run.state.is_over();
    let id = short(run.session_id.as_str()).to_owned();
    let params = CancelRunParams { run_id: Some(run.run_id), session_id: None, reason: args.reason };
    let cancelled = handle.call::<Cancel>(params).await?;
    if io.json {
        io.object(&cancelled)?;
    } else if was_over || cancelled.status != RunState::Cancelled {
        io.line(format!("{WARN}{id} was over already{WARN:#}"))?;
    } else {
        io.line(format!("{GOOD}cancelled{GOOD:#} {NAME}{id}{NAME:#}, with everything it had started"))?;
    }
    Ok(exit_code::SUCCESS)
}
