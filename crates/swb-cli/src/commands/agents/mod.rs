//! `swb agents`, `logs`, `send`, `cancel`, `why`: runs of the daemon, seen and spoken to from anywhere.
//!
//! A session is named by so much of one end of its id that only one is meant; with nothing said, by being the only one at
//! work.

mod list;
pub(crate) mod logs;
mod told;
mod why;

use clap::Args;
use swb_bus::BusHandle;
use swb_proto::Meta;
use swb_proto::run::{List, ListRunsParams, Run};

use super::approvals::find;
use crate::connect::connect;
use crate::failure::Failure;
use crate::io::Io;

pub(crate) use logs::run as logs;

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Those that are over, too.
    #[arg(long, short)]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The session, or one end of its id; not needed if only one is at work.
    session: Option<String>,
    /// Go on until the run is over. Ctrl-C leaves it at work.
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The session, or one end of its id.
    session: String,
    /// What to say.
    text: String,
    /// It hears it before its next step, and not when it is done.
    #[arg(long)]
    steer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The session, or one end of its id; not needed if only one is at work.
    session: Option<String>,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The session, or one end of its id; not needed if only one is at work.
    session: Option<String>,
}

pub(crate) async fn agents(args: &AgentsArgs, io: &Io) -> Result<u8, Failure> {
    list::run(&connect(Meta::default()).await?, args.all, io).await
}

pub(crate) async fn send(args: SendArgs, io: &Io) -> Result<u8, Failure> {
    told::send(&connect(Meta::default()).await?, args, io).await
}

pub(crate) async fn cancel(args: CancelArgs, io: &Io) -> Result<u8, Failure> {
    told::cancel(&connect(Meta::default()).await?, args, io).await
}

pub(crate) async fn why(args: &WhyArgs, io: &Io) -> Result<u8, Failure> {
    why::run(&connect(Meta::default()).await?, args.session.as_deref(), io).await
}

/// All runs, the oldest first.
async fn runs(handle: &BusHandle) -> Result<Vec<Run>, Failure> {
    let params = ListRunsParams { ended: true, ..ListRunsParams::default() };
    Ok(handle.call::<List>(params).await?.runs)
}

/// The last run of the session that is meant.
fn meant(runs: &[Run], wanted: Option<&str>) -> Result<Run, Failure> {
    let mut sessions: Vec<&str> = runs
        .iter()
        .filter(|run| wanted.is_some() || !run.state.is_over())
        .map(|run| run.session_id.as_str())
        .collect();
    sessions.sort_unstable();
    sessions.dedup();
    let session = match (wanted, sessions.as_slice()) {
        (Some(wanted), _) => {
            find::one(sessions.into_iter(), wanted, "session", "`swb agents --all` lists them")?
        }
        (None, [only]) => only,
        (None, []) => {
            return Err(Failure::new("nothing is at work").hint("`swb agents --all` lists what was"));
        }
        (None, many) => {
            return Err(Failure::new(format!("which one? {} are at work", many.len()))
                .hint("`swb agents` lists them; type one end of an id"));
        }
    };
    let of_session = |run: &&Run| run.session_id.as_str() == session;
    let live = runs.iter().filter(of_session).find(|run| !run.state.is_over());
    live.or_else(|| runs.iter().rfind(of_session))
        .cloned()
        .ok_or_else(|| Failure::new("there is no such session"))
}

#[cfg(test)]
mod tests;
