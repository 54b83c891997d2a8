//! Taking a run: where it works, whether it may, and the place it gets.

use std::sync::Arc;

use swb_bus::{CallContext, CallError};
use swb_proto::BusError;
use swb_proto::error::{ERR_INTERNAL, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_UNAUTHORIZED};
use swb_proto::id::{RunId, SessionId};
use swb_proto::project::Project;
use swb_proto::run::{Budget, Run, RunParams, RunState, RunTaken, RunUsage, TakenStatus};
use swb_proto::session::{CreateSessionParams, Session, SessionMode};
use swb_rules::lifecycle;

use super::agent::{self, BUILTIN};
use super::kept::{self, KeptRun};
use super::{Runs, telling};
use crate::records::{Estate, now};

/// Runs that may wait in one session.
const MOST_WAITING: usize = 100;
/// The longest prompt, in bytes: it goes to the agent as one frame.
pub(super) const LONGEST_PROMPT: usize = 768 * 1024;
/// How much of a prompt is its title.
const TITLE: usize = 120;

impl Runs {
    /// `agent.run`.
    pub(crate) async fn start(&self, ctx: CallContext, params: RunParams) -> Result<RunTaken, BusError> {
        check_prompt(&params.prompt)?;
        let agent = params.agent.clone().unwrap_or_else(|| BUILTIN.to_owned());
        if !self.0.agents.knows(&agent) {
            let message = agent::BirthError::Unknown(agent).to_string();
            return Err(BusError::new(ERR_INVALID_PARAMS, message).because("AGENT_NOT_FOUND"));
        }
        let session = self.session_for(&ctx, &params).await?;
        self.may_drive(&ctx, &session)?;
        let house = Arc::clone(&self.0);
        // Whatever is posted from here on is for it.
        house.take_mail(&session).await;
        house.heard_from(ctx.caller().actor(), &session).await;
        let run_id = RunId::from_ulid(house.records.unique());
        let caller = ctx.caller();
        let (actor, correlation_id) = (caller.actor().clone(), caller.correlation().cloned());
        let after = house.topics.head();
        let wall_ms = params.budget.as_ref().and_then(|budget| budget.wall_ms).or(params.timeout_ms);
        let kept = house
            .records
            .change(move |estate| {
                let (session, project) = place_of(estate, &session)?;
                let run = Run {
                    run_id,
                    session_id: session.session_id.clone(),
                    workspace_id: session.workspace_id.clone(),
                    project_id: project.project_id.clone(),
                    parent_run_id: params.parent_run_id,
                    agent,
                    model: None,
                    state: RunState::Queued,
                    title: title(&params.prompt),
                    attended: params.attended,
                    budget: Budget { wall_ms, ..params.budget.unwrap_or_default() },
                    usage: RunUsage::default(),
                    containment: None,
                    created_at: now(),
                    started_at: None,
                    ended_at: None,
                    error: None,
                };
                let waiting = estate.runs_of(&session.session_id).filter(|kept| kept::is_live(kept)).count();
                if waiting >= MOST_WAITING {
                    let message = format!("{waiting} runs wait in this session already");
                    return Err(BusError::new(ERR_INVALID_REQUEST, message).because("QUEUE_FULL"));
                }
                let kept = KeptRun {
                    profile_id: params.profile_id.or_else(|| session.profile_id.clone()),
                    run,
                    prompt: params.prompt,
                    actor,
                    correlation_id,
                    wanted_model: params.model,
                    after,
                    host: 0,
                    from: 0,
                    write: 0,
                    restarts: 0,
                    end_is_told: false,
                    session_total: None,
                };
                estate.runs.put(kept.clone()).map_err(crate::records::not_kept)?;
                Ok((kept, waiting))
            })
            .await;
        let (kept, waiting) = kept?;
        let waits = waiting > 0 || house.slots.available_permits() == 0;
        let taken = RunTaken {
            run_id: kept.id().clone(),
            session_id: kept.run.session_id.clone(),
            status: if waits { TakenStatus::Queued } else { TakenStatus::Started },
            after,
        };
        if waits {
            telling::queued(&house.topics, &kept);
        }
        house.take(kept).await?;
        Ok(taken)
    }

    /// An agent has only those at its command that it has started: others may be allowed more than it is.
    pub(crate) fn may_drive(&self, ctx: &CallContext, session: &SessionId) -> Result<(), BusError> {
        let actor = ctx.caller().actor();
        let estate = self.0.records.look();
        let is_below = || {
            estate.above(session.as_str()).iter().any(|above| above.session_id.as_str() == actor.id.as_str())
        };
        if actor.kind.as_str() != "agent" || is_below() {
            return Ok(());
        }
        let message = format!("{session} was not started by this agent");
        Err(BusError::new(ERR_UNAUTHORIZED, message).because("NOT_BELOW"))
    }

    /// The session a run is to work in; a new one if none is named.
    async fn session_for(&self, ctx: &CallContext, params: &RunParams) -> Result<SessionId, BusError> {
        if let Some(named) = &params.session_id {
            return Ok(named.clone());
        }
        let Some(project_id) = params.project_id.clone() else {
            // An agent's own session is the context of whatever it does; its runs are others.
            return ctx.caller().meta().session_id.clone().ok_or_else(|| {
                let message = "where? session_id names a session, project_id a project for a new one";
                BusError::new(ERR_INVALID_PARAMS, message)
            });
        };
        let wish = CreateSessionParams {
            project_id,
            profile_id: params.profile_id.clone(),
            mode: SessionMode::Agent,
            rules: None,
        };
        let created = ctx.bus().call::<swb_proto::session::Create>(wish).await.map_err(call_error)?;
        Ok(created.session_id)
    }
}

pub(super) fn place_of<'a>(
    estate: &'a Estate,
    session: &SessionId,
) -> Result<(&'a Session, &'a Project), BusError> {
    let session = estate.session(session)?;
    if !lifecycle::session_lives(session.state) {
        let message = format!("{} has ended", session.session_id);
        return Err(BusError::new(ERR_INVALID_REQUEST, message).because("SESSION_ENDED"));
    }
    estate.active_workspace(&session.workspace_id)?;
    Ok((session, estate.project(&session.project_id)?))
}

pub(super) fn check_prompt(prompt: &str) -> Result<(), BusError> {
    let problem = if prompt.trim().is_empty() {
        "there is nothing to do: the prompt is empty".to_owned()
    } else if prompt.len() > LONGEST_PROMPT {
        format!("the prompt has {} bytes; {LONGEST_PROMPT} are the most", prompt.len())
    } else {
        return Ok(());
    };
    Err(BusError::new(ERR_INVALID_PARAMS, problem))
}

/// The beginning of a prompt, without secrets.
fn title(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = swb_rules::redact::redact(line).text;
    let end = line.floor_char_boundary(TITLE);
    if end < line.len() { format!("{}…", &line[..end]) } else { line }
}

fn call_error(error: CallError) -> BusError {
    match error {
        CallError::Bus(error) => error,
        other => BusError::new(ERR_INTERNAL, other.to_string()),
    }
}
