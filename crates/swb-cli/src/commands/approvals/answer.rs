//! Yes and no.

use clap::Args;
use swb_bus::{BusHandle, CallError};
use swb_proto::BusError;
use swb_proto::approval::{
    ApprovalDecision, ApprovalOutcome, ApprovalResolved, ApprovalStatus, Resolve, ResolveParams,
};

use super::list::ended;
use super::show::meant;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME};

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// Its id, or the beginning or end of it; several are answered alike.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why, for whoever asked and for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Calls like it need not ask again in this session, for 12 hours at most.
    #[arg(long)]
    for_session: bool,
}

#[derive(Debug, Args)]
pub(super) struct DenyArgs {
    /// Its id, or the beginning or end of it; several are answered alike.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why, for whoever asked and for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn approve(handle: &BusHandle, args: ApproveArgs, io: &Io) -> Result<u8, Failure> {
    let ApproveArgs { ids, reason, for_session } = args;
    all(handle, &ids, ApprovalDecision::Approve, reason.as_deref(), for_session, io).await
}

pub(super) async fn deny(handle: &BusHandle, args: DenyArgs, io: &Io) -> Result<u8, Failure> {
    all(handle, &args.ids, ApprovalDecision::Deny, args.reason.as_deref(), false, io).await
}

async fn all(
    handle: &BusHandle,
    ids: &[String],
    decision: ApprovalDecision,
    reason: Option<&str>,
    allow_for_session: bool,
    io: &Io,
) -> Result<u8, Failure> {
    // All are found before any is answered: a slip of the fingers shall not answer half of them.
    let mut meant_ones = Vec::new();
    for id in ids {
        // What waits is meant first; what was answered is named so that it can be told.
        let found = match meant(handle, id, Some(ApprovalStatus::Pending)).await {
            Err(failure) if failure.code == exit_code::FAILURE => meant(handle, id, None).await?,
            found => found?,
        };
        meant_ones.push(found.approval_id);
    }
    for approval_id in meant_ones {
        let params = ResolveParams {
            approval_id,
            decision,
            reason: reason.map(str::to_owned),
            allow_for_session,
            edited_args: None,
        };
        match handle.call::<Resolve>(params).await {
            Ok(resolved) => said(&resolved, io)?,
            Err(CallError::Bus(error)) => too_late(error, decision, allow_for_session, io)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit_code::SUCCESS)
}

fn said(resolved: &ApprovalResolved, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.json_line(resolved);
    }
    let id = &resolved.approval_id;
    match resolved.status {
        ApprovalStatus::Approved => io.line(format!("{GOOD}approved{GOOD:#} {id}"))?,
        _ => io.line(format!("{BAD}denied{BAD:#} {id}"))?,
    }
    if let Some(grant) = &resolved.grant_id {
        io.line(format!(
            "  calls like it go on unasked; {DIM}swb approvals revoke {grant}{DIM:#} takes it back"
        ))?;
    }
    if let Some(token) = &resolved.approval_token {
        io.line(format!("  {NAME}{token}{NAME:#}"))?;
        io.note(format!("{DIM}  good once, for five minutes; it is not shown again{DIM:#}"));
    }
    Ok(())
}

/// Somebody was first. If they have said the same, that is what was wanted.
fn too_late(error: BusError, decision: ApprovalDecision, for_session: bool, io: &Io) -> Result<(), Failure> {
    let told = error.data.as_ref().and_then(|data| data.get("outcome")).cloned();
    let outcome = told.and_then(|told| serde_json::from_value::<ApprovalOutcome>(told).ok());
    let Some(outcome) = outcome.filter(|_| error.reason() == "ALREADY_RESOLVED") else {
        return Err(error.into());
    };
    let same = match decision {
        ApprovalDecision::Approve => outcome.status == ApprovalStatus::Approved && !for_session,
        ApprovalDecision::Deny => outcome.status != ApprovalStatus::Approved,
    };
    let told = format!("somebody was first: {}", ended(&outcome));
    if !same {
        let message = anstream::adapter::strip_str(&told).to_string();
        return Err(Failure { message, hint: None, ..Failure::from(error) });
    }
    if io.json { io.json_line(&outcome) } else { io.line(told) }
}
