//! `swb audit hold`, `holds`, `release`: records that no purge removes.

use clap::Args;
use serde_json::json;
use swb_journal::audit::{Hold, HoldScope};
use swb_proto::Meta;
use swb_proto::audit::{self, HoldParams, ReleaseParams};
use swb_proto::id::{SessionId, WorkspaceId};

use super::place::PlaceArgs;
use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io, NAME};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    what: What,
    /// Why; it is recorded.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Everything about a session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Everything about a workspace.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// Everything.
    #[arg(long)]
    everything: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HoldsArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The hold, as `swb audit holds` names it.
    hold: String,
    /// Why; it is recorded.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn run(args: HoldArgs, io: &Io) -> Result<u8, Failure> {
    let unfit = |error| Failure::new("this is no id").because(error).code(exit_code::USAGE);
    let What { session, workspace, everything } = args.what;
    let params = HoldParams {
        workspace_id: workspace.map(WorkspaceId::try_from).transpose().map_err(unfit)?,
        session_id: session.map(SessionId::try_from).transpose().map_err(unfit)?,
        everything,
        reason: args.reason,
    };
    let held = connect(Meta::default()).await?.call::<audit::Hold>(params).await?;
    if io.json {
        io.object(&held)?;
    } else {
        io.line(format!("{GOOD}held{GOOD:#} {}", held.hold_id))?;
        io.note(format!("{DIM}`swb audit release {} --reason …` ends it{DIM:#}", held.hold_id));
    }
    Ok(exit_code::SUCCESS)
}

pub(crate) fn list(args: &HoldsArgs, io: &Io) -> Result<u8, Failure> {
    let holds = args
        .place
        .reader()?
        .holds()
        .map_err(|error| Failure::new("cannot read the record").because(error))?;
    if io.json {
        io.object(&json!({ "holds": holds }))?;
        return Ok(exit_code::SUCCESS);
    }
    for Hold { id, scope, reason } in &holds {
        let scope = match scope {
            HoldScope::Everything => "everything".to_owned(),
            HoldScope::Workspace { workspace_id } => plain::line(workspace_id, 80),
            HoldScope::Session { session_id } => plain::line(session_id, 80),
        };
        io.line(format!(
            "{NAME}{}{NAME:#} {scope} {DIM}{}{DIM:#}",
            plain::line(id, 80),
            plain::line(reason, 200)
        ))?;
    }
    if holds.is_empty() {
        io.note(format!("{DIM}nothing is held{DIM:#}"));
    }
    Ok(exit_code::SUCCESS)
}

pub(crate) async fn release(args: ReleaseArgs, io: &Io) -> Result<u8, Failure> {
    let params = ReleaseParams { hold_id: args.hold, reason: args.reason };
    let released = connect(Meta::default()).await?.call::<audit::Release>(params).await?;
    if io.json {
        io.object(&released)?;
    } else {
        io.line(format!("{GOOD}released{GOOD:#} {}", released.hold_id))?;
    }
    Ok(exit_code::SUCCESS)
}
