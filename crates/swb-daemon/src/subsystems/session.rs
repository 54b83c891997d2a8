//! `session`: work in a project, by a person or an agent.

use std::sync::Arc;

use serde_json::{Value, json};
use swb_bus::{BusHandler, CallContext};
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_INVALID_REQUEST};
use swb_proto::id::SessionId;
use swb_proto::project::ProjectStatus;
use swb_proto::session::{
    AttachParams, CreateSessionParams, ListSessionsParams, Session, SessionAttached, SessionBody,
    SessionCreated, SessionList, SessionState, SessionTerminated, TerminateParams,
};
use swb_proto::{BusError, BusPayload, BusResult};
use swb_rules::lifecycle;
use tokio::sync::oneshot;

use super::{publish, wrong_payload};
use crate::approvals::Approvals;
use crate::policy::{Policy, RestrictError};
use crate::records::{Estate, Records, not_kept, now};

/// Serves `session/*`.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) records: Arc<Records>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) policy: Policy,
}

impl BusHandler for Sessions {
    fn prefix(&self) -> &'static str {
        "session"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let records = Arc::clone(&self.records);
        let BusPayload::Session(body) = payload else {
            let _ = reply_tx.send(Err(wrong_payload(method, &payload)));
            return;
        };
        match (method, body) {
            ("session/list", SessionBody::WhichOnes(which)) => {
                let _ = reply_tx.send(Ok(list(&ctx, &records, *which).into()));
            }
            ("session/get", SessionBody::Which(which)) => {
                let one =
                    which_one(&ctx, which.session_id).and_then(|id| records.look().session(&id).cloned());
                let _ = reply_tx.send(one.map(Into::into));
            }
            ("session/create", SessionBody::Create(params)) => {
                ctx.clone().spawn(reply_tx, create(ctx, records, self.policy.clone(), *params));
            }
            ("session/attach", SessionBody::Attach(params)) => {
                ctx.clone().spawn(reply_tx, attach(ctx, records, *params));
            }
            ("session/terminate", SessionBody::Terminate(params)) => {
                let (approvals, policy) = (Arc::clone(&self.approvals), self.policy.clone());
                ctx.clone().spawn(reply_tx, terminate(ctx, records, approvals, policy, *params));
            }
            (_, other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &BusPayload::Session(other))));
            }
        }
    }
}

fn list(ctx: &CallContext, records: &Records, which: ListSessionsParams) -> SessionList {
    let workspace = which.workspace_id.or_else(|| ctx.caller().meta().workspace_id.clone());
    let estate = records.look();
    let wanted = estate
        .sessions
        .iter()
        .filter(|session| workspace.as_ref().is_none_or(|workspace| session.workspace_id == *workspace))
        .filter(|session| which.ended || lifecycle::session_lives(session.state));
    SessionList { sessions: wanted.cloned().collect() }
}

async fn create(
    ctx: CallContext,
    records: Arc<Records>,
    policy: Policy,
    params: CreateSessionParams,
) -> BusResult {
    let session_id = SessionId::from_ulid(records.unique());
    records
        .change(move |estate| {
            let project = estate.project(&params.project_id)?;
            let workspace_id = estate.active_workspace(&project.workspace_id)?.workspace_id.clone();
            if ctx.caller().meta().workspace_id.as_ref().is_some_and(|meant| *meant != workspace_id) {
                let message = format!("{} does not lie in this workspace", params.project_id);
                return Err(BusError::new(ERR_INVALID_PARAMS, message).because("PROJECT_NOT_FOUND"));
            }
            if project.status != ProjectStatus::Active {
                let message = format!("{} is not ready: its folder cannot be read", params.project_id);
                return Err(BusError::new(ERR_INVALID_REQUEST, message).because("PROJECT_NOT_READY"));
            }
            let maker = ctx.caller().actor();
            let maker =
                (maker.kind.as_str() == "agent").then(|| estate.sessions.get(maker.id.as_str())).flatten();
            let parent_session_id = maker.map(|maker| maker.session_id.clone());
            let session = Session {
                session_id,
                parent_session_id,
                workspace_id,
                project_id: params.project_id,
                profile_id: params.profile_id,
                mode: params.mode,
                state: SessionState::Detached,
                created_at: now(),
                updated_at: now(),
                reason: None,
            };
            // First the rules: a session that was to have some never is without.
            if let Some(rules) = &params.rules {
                policy.restrict_session(session.session_id.as_str(), rules).map_err(not_restricted)?;
            }
            estate.sessions.put(session.clone()).map_err(|error| {
                policy.forget_session(session.session_id.as_str());
                not_kept(error)
            })?;
            let Session { session_id, project_id, profile_id, mode, .. } = &session;
            let created = json!({
                "session_id": session_id, "project_id": project_id, "profile_id": profile_id, "mode": mode,
            });
            announce(&ctx, "session.created", &session, created);
            Ok(SessionCreated { session_id: session.session_id }.into())
        })
        .await
}

async fn attach(ctx: CallContext, records: Arc<Records>, params: AttachParams) -> BusResult {
    let id = which_one(&ctx, params.session_id)?;
    records
        .change(move |estate| {
            let session = estate.session(&id)?.clone();
            estate.active_workspace(&session.workspace_id)?;
            let only_id = || json!({ "session_id": id });
            let session = step(estate, session, SessionState::Attaching)?;
            announce(&ctx, "session.attach.started", &session, only_id());
            let attached = step(estate, session.clone(), SessionState::Attached).inspect_err(|error| {
                announce(&ctx, "session.attach.failed", &session, failure(&session.session_id, error));
            })?;
            announce(&ctx, "session.attached", &attached, only_id());
            let SessionAttached { session_id, state } =
                if params.restore { restore(&ctx, estate, attached)? } else { at(&attached) };
            Ok(SessionAttached { session_id, state }.into())
        })
        .await
}

/// What was there before is shown again. Sessions have no terminals yet, so there is nothing to wait for.
fn restore(ctx: &CallContext, estate: &mut Estate, session: Session) -> Result<SessionAttached, BusError> {
    let id = session.session_id.clone();
    let session = step(estate, session, SessionState::Restoring)?;
    announce(ctx, "session.restore.started", &session, json!({ "session_id": id }));
    let restored = step(estate, session.clone(), SessionState::Attached)
        .inspect_err(|error| announce(ctx, "session.restore.failed", &session, failure(&id, error)))?;
    announce(ctx, "session.restore.completed", &restored, json!({ "session_id": id, "terminals": [] }));
    Ok(at(&restored))
}

async fn terminate(
    ctx: CallContext,
    records: Arc<Records>,
    approvals: Arc<Approvals>,
    policy: Policy,
    params: TerminateParams,
) -> BusResult {
    let id = which_one(&ctx, params.session_id)?;
    records
        .change(move |estate| {
            let session = estate.session(&id)?.clone();
            if lifecycle::session_lives(session.state) {
                let reason = params.reason;
                let ended = step(estate, Session { reason, ..session }, SessionState::Terminated)?;
                let payload = json!({ "session_id": id, "reason": ended.reason });
                announce(&ctx, "session.terminated", &ended, payload);
            }
            // Also if it had ended before: then this is what a failing disk may have left undone.
            approvals.session_ended(id.as_str()).map_err(not_kept)?;
            policy.forget_session(id.as_str());
            Ok(SessionTerminated { session_id: id, status: SessionState::Terminated }.into())
        })
        .await
}

/// The rules of a session cannot be used, so there is no such session.
fn not_restricted(error: RestrictError) -> BusError {
    match error {
        RestrictError::Kept(error) => not_kept(error),
        error @ (RestrictError::Rules(_) | RestrictError::Id) => {
            BusError::new(ERR_INVALID_PARAMS, error.to_string()).because("RULES_REJECTED")
        }
    }
}

/// One step along the table of the rules, kept before anybody hears of it.
fn step(estate: &mut Estate, session: Session, to: SessionState) -> Result<Session, BusError> {
    if !lifecycle::session_may(session.state, to) {
        let message = format!("{} is {}", session.session_id, word(session.state));
        return Err(BusError::new(ERR_INVALID_REQUEST, message).because("INVALID_STATE_TRANSITION"));
    }
    let session = Session { state: to, updated_at: now(), ..session };
    estate.sessions.put(session.clone()).map_err(not_kept)?;
    Ok(session)
}

fn at(session: &Session) -> SessionAttached {
    SessionAttached { session_id: session.session_id.clone(), state: session.state }
}

fn word(state: SessionState) -> String {
    serde_json::to_value(state).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn failure(id: &SessionId, error: &BusError) -> Value {
    json!({ "session_id": id, "error": error.message })
}

fn which_one(ctx: &CallContext, named: Option<SessionId>) -> Result<SessionId, BusError> {
    named
        .or_else(|| ctx.caller().meta().session_id.clone())
        .ok_or_else(|| BusError::new(ERR_INVALID_PARAMS, "which session? session_id names it"))
}

fn announce(ctx: &CallContext, topic: &str, session: &Session, payload: Value) {
    let place = |meta: &mut swb_proto::Meta| {
        meta.workspace_id = Some(session.workspace_id.clone());
        meta.session_id = Some(session.session_id.clone());
    };
    publish(ctx, topic, place, &payload);
}
