//! Through the daemon: a run that goes on without us, and that others see, too.
//!
//! * `place` – the workspace and the project of this folder, found or made.
//! * `line` – the line to a run; `frames` – its events, as the frames that are shown; `story` – those of the past.
//!
//! What nobody looks at is asked about by nobody: without a keyboard the run is told so, and ends with this command.

mod frames;
mod line;
mod place;
pub(crate) mod story;

use std::path::Path;

use swb_bus::{BusHandle, CallError};
use swb_daemon::Paths;
use swb_proto::Meta;
use swb_proto::id::{ProfileId, SessionId};
use swb_proto::run::{Attended, List, ListRunsParams, Run, RunParams, RunTaken, Start};

use super::drive::{Bond, Drive};
use super::prompt::{self, Said, Wanted};
use super::{RunArgs, Seat};
use crate::commands::approvals::find;
use crate::commands::up;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, NAME};
use place::Place;

pub(super) async fn run(args: RunArgs, said: Said, set: &[String], io: &Io) -> Result<u8, Failure> {
    let prompt = prompt::read(said.prompt)?;
    crate::io::layers(&Paths::from_env()?, set)?.finish()?;
    let handle = daemon(set).await?;
    let place = Place::of_this_folder(&handle).await?;
    let session_id = match said.session {
        Some(wanted) => Some(session(&handle, &place, wanted).await?),
        None => None,
    };
    let mut params = RunParams {
        project_id: session_id.is_none().then(|| place.project.clone()),
        session_id,
        prompt,
        profile_id: args.profile.map(ProfileId::try_from).transpose().map_err(|error| {
            Failure::new("--profile names no profile").because(error).code(exit_code::USAGE)
        })?,
        agent: args.agent,
        model: args.model,
        ..RunParams::default()
    };
    let inside = handle.with(Meta { workspace_id: Some(place.workspace.clone()), ..Meta::default() });
    if args.detach {
        params.attended = Attended::Later;
        return detached(&begin(&inside, params).await?, io);
    }
    let seat = Seat::take(io)?;
    params.attended = if seat.keyboard.is_some() { Attended::Here } else { Attended::Nobody };
    let attended = params.attended;
    let taken = begin(&inside, params).await?;
    follow(&inside, taken, attended, seat, io).await
}

/// The daemon. Settings of the command line reach one that is started for it, and no other.
async fn daemon(set: &[String]) -> Result<BusHandle, Failure> {
    if set.is_empty() {
        return up::ensure(set).await;
    }
    if crate::connect::connect_if_running().await?.is_some() {
        return Err(Failure::new("--set does not reach a daemon that is running already")
            .code(exit_code::USAGE)
            .hint("`swb restart` takes it as well; or run the agent with --no-daemon"));
    }
    up::ensure(set).await
}

async fn begin(handle: &BusHandle, params: RunParams) -> Result<RunTaken, Failure> {
    handle.call::<Start>(params).await.map_err(|error| {
        let hint = match &error {
            CallError::Bus(error) => match error.reason() {
                "AGENT_NOT_FOUND" => {
                    Some("agents are named in the configuration: [agents.NAME] command = […]")
                }
                "SESSION_ENDED" => Some("without --continue a new one begins"),
                "QUEUE_FULL" => Some("`swb cancel` ends what waits there"),
                _ => None,
            },
            _ => None,
        };
        let failure = Failure::from(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

fn detached(taken: &RunTaken, io: &Io) -> Result<u8, Failure> {
    if io.json {
        io.object(taken)?;
    } else {
        io.line(&taken.session_id)?;
        if io.is_terminal() {
            io.note(format!("{DIM}`swb logs --follow` shows it, `swb agents` lists what is at work{DIM:#}"));
        }
    }
    Ok(exit_code::SUCCESS)
}

/// Shows a run until it is over, or somebody leaves.
async fn follow(
    handle: &BusHandle,
    taken: RunTaken,
    attended: Attended,
    seat: Seat,
    io: &Io,
) -> Result<u8, Failure> {
    let session = taken.session_id.clone();
    let link = line::to(handle.clone(), taken, attended).await?;
    let outlives = attended != Attended::Nobody;
    let bond = if outlives { Bond::Run } else { Bond::Child };
    let finish = Drive::new(link, seat.view, seat.keyboard, seat.signals, bond).run(None).await?;
    if finish.left && outlives && !io.json {
        let id = short(session.as_str());
        io.note(format!(
            "{DIM}the run goes on:{DIM:#} {NAME}swb logs {id} --follow{NAME:#} {DIM}shows it,{DIM:#} \
             {NAME}swb cancel {id}{NAME:#} {DIM}ends it{DIM:#}"
        ));
    }
    Ok(finish.code)
}

/// So much of an id as people have to type.
pub(crate) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(6)..).unwrap_or(id)
}

/// The session of the daemon that goes on.
async fn session(handle: &BusHandle, place: &Place, wanted: Wanted) -> Result<SessionId, Failure> {
    let params = ListRunsParams { ended: true, ..ListRunsParams::default() };
    let runs = handle.call::<List>(params).await?.runs;
    match wanted {
        Wanted::Latest => {
            let of_project = |run: &&Run| run.project_id == place.project && run.parent_run_id.is_none();
            let last = runs.iter().rfind(of_project).map(|run| run.session_id.clone());
            last.ok_or_else(|| {
                let failure = Failure::new("there is no session of this project to go on with");
                let alone =
                    Paths::from_env().is_ok_and(|paths| prompt::latest(&paths.sessions(None)).is_ok());
                failure.hint(if alone {
                    "there is one that was made without the daemon: add --no-daemon"
                } else {
                    "`swb sessions` lists all; name one with --continue=ID"
                })
            })
        }
        Wanted::Id(id) => {
            let mut ids: Vec<&str> = runs.iter().map(|run| run.session_id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            let hint = if is_known_alone(&id) {
                "it was made without the daemon: add --no-daemon"
            } else {
                "`swb agents --all` lists them"
            };
            let id = find::one(ids.into_iter(), &id, "session of the daemon", hint)?;
            SessionId::try_from(id.to_owned()).map_err(|error| Failure::new("no session").because(error))
        }
    }
}

/// Whether agents without a daemon have a session of this name.
fn is_known_alone(id: &str) -> bool {
    let folder = Paths::from_env().map(|paths| paths.sessions(None));
    let listed = folder.ok().and_then(|folder| swb_agent::sessions::newest_first(Path::new(&folder)).ok());
    listed.is_some_and(|listed| listed.iter().any(|listed| listed.id.contains(id)))
}
