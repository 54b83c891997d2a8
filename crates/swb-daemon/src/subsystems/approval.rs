//! `approval`: questions that people answer. Agents see those that they or agents below them have asked, and answer none.

use std::sync::Arc;
use std::time::Duration;

use swb_bus::{BusHandler, CallContext, StopReason};
use swb_proto::approval::{
    ApprovalBody, ApprovalDecision, ApprovalList, ApprovalResolved, ApprovalStatus, ListApprovalsParams,
    ResolveParams, WaitParams,
};
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_INVALID_REQUEST};
use swb_proto::id::{ApprovalId, GrantId};
use swb_proto::{Actor, BusError, BusPayload, BusResult};
use swb_rules::approval::{Approval, Choice, Status};
use swb_rules::policy;
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};
use crate::approvals::{
    Answer, AnswerError, Approvals, LONGEST_REASON, approval_to_wire, timestamp, workspace_of,
};

/// Serves `approval/*`.
#[derive(Debug)]
pub(crate) struct ApprovalDesk {
    pub(crate) approvals: Arc<Approvals>,
}

impl BusHandler for ApprovalDesk {
    fn prefix(&self) -> &'static str {
        "approval"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let approvals = Arc::clone(&self.approvals);
        match (method, payload) {
            ("approval/request/resolve", BusPayload::Approval(ApprovalBody::Resolve(params))) => {
                ctx.clone().spawn(reply_tx, resolve(ctx, approvals, *params));
            }
            ("approval/list", BusPayload::Approval(ApprovalBody::WhichOnes(which))) => {
                let _ = reply_tx.send(Ok(list(&ctx, &approvals, &which).into()));
            }
            ("approval/get", BusPayload::Approval(ApprovalBody::Which(which))) => {
                let _ = reply_tx.send(
                    find(&ctx, &approvals, &which.approval_id).and_then(|approval| to_reply(&approval)),
                );
            }
            ("approval/wait", BusPayload::Approval(ApprovalBody::Wait(params))) => {
                let waiting = wait(&ctx, approvals, *params);
                ctx.spawn(reply_tx, waiting);
            }
            ("approval/request/resolve" | "approval/list" | "approval/get" | "approval/wait", other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
            }
            _ => {
                let _ = reply_tx.send(Err(no_method(method)));
            }
        }
    }
}

async fn resolve(ctx: CallContext, approvals: Arc<Approvals>, params: ResolveParams) -> BusResult {
    let by = person(&ctx)?;
    if params.edited_args.is_some() {
        let message =
            "an answer cannot change what was asked: deny it, and say in the reason what to ask instead";
        return Err(BusError::new(ERR_INVALID_REQUEST, message).because("EDITED_ARGS_UNSUPPORTED"));
    }
    if params.reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
        let message = format!("a reason has at most {LONGEST_REASON} bytes");
        return Err(BusError::new(ERR_INVALID_PARAMS, message));
    }
    let choice = match (params.decision, params.allow_for_session) {
        (ApprovalDecision::Approve, false) => Choice::Allow,
        (ApprovalDecision::Approve, true) => Choice::AllowForSession,
        (ApprovalDecision::Deny, false) => Choice::Deny,
        (ApprovalDecision::Deny, true) => {
            return Err(BusError::new(ERR_INVALID_PARAMS, "allow_for_session goes with approve"));
        }
    };
    let approval = params.approval_id.as_str().to_owned();
    let answered = approvals.resolve(Answer { approval, choice, by, reason: params.reason }).await?;
    let outcome = answered.outcome;
    Ok(ApprovalResolved {
        approval_id: params.approval_id,
        status: if outcome.status == Status::Approved {
            ApprovalStatus::Approved
        } else {
            ApprovalStatus::Denied
        },
        resolved_at: timestamp(outcome.resolved_at),
        grant_id: outcome.grant_id.and_then(|id| GrantId::try_from(id).ok()),
        approval_token: answered.token,
    }
    .into())
}

fn list(ctx: &CallContext, approvals: &Approvals, which: &ListApprovalsParams) -> ApprovalList {
    let workspace = which.workspace_id.as_ref().or(ctx.caller().meta().workspace_id.as_ref());
    let wanted = |approval: &Approval| {
        may_see(ctx.caller().actor(), approval)
            && which.session_id.as_ref().is_none_or(|session| approval.concerns(session.as_str()))
            && workspace.is_none_or(|workspace| workspace_of(approval).as_ref() == Some(workspace))
            && which.status.is_none_or(|status| status == status_of(approval))
    };
    ApprovalList { approvals: approvals.list(wanted).iter().filter_map(approval_to_wire).collect() }
}

fn wait(
    ctx: &CallContext,
    approvals: Arc<Approvals>,
    params: WaitParams,
) -> impl Future<Output = BusResult> + Send + use<> {
    let found = find(ctx, &approvals, &params.approval_id);
    // Now and not when the wait is first looked at: one that is cancelled before that is cancelled all the same.
    let waits =
        found.as_ref().is_ok_and(|approval| asked_by(ctx.caller().actor(), approval)).then(|| Waits {
            ctx: ctx.clone(),
            approvals: Arc::clone(&approvals),
            id: params.approval_id.as_str().to_owned(),
        });
    async move {
        let _waits = waits;
        outcome(&approvals, found?, &params).await
    }
}

async fn outcome(approvals: &Approvals, approval: Approval, params: &WaitParams) -> BusResult {
    let id = params.approval_id.as_str();
    let Some(waiting) = approvals.wait_for(id) else { return to_reply(&approval) };
    let patience = async {
        match params.timeout_ms {
            Some(limit) => tokio::time::sleep(Duration::from_millis(limit)).await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = waiting.outcome() => Some(outcome?),
        () = patience => None,
    };
    // As it is now; or, if that is forgotten already, as it was with what has come out.
    to_reply(&approvals.get(id).unwrap_or(Approval { outcome, ..approval }))
}

/// The one who asked, while it waits. If it cancels that, it does not want to know any more, and the question is taken back;
/// a connection that breaks says nothing of the sort.
struct Waits {
    ctx: CallContext,
    approvals: Arc<Approvals>,
    id: String,
}

impl Drop for Waits {
    fn drop(&mut self) {
        if self.ctx.cancel_signal().reason() != Some(StopReason::Cancelled) {
            return;
        }
        let (approvals, id) = (Arc::clone(&self.approvals), std::mem::take(&mut self.id));
        // The disk is not waited for here. Where there is no runtime any more, the deadline ends it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || {
                if let Err(error) = approvals.withdraw(&id) {
                    tracing::warn!(%error, "a question was not taken back; its deadline ends it");
                }
            });
        }
    }
}

fn asked_by(actor: &Actor, approval: &Approval) -> bool {
    let asker = &approval.request.input.actor;
    actor.kind.as_str() == "agent" && asker.is_agent() && asker.root() == actor.id.as_str()
}

/// A question that the caller may see. One that it may not see is not there.
fn find(ctx: &CallContext, approvals: &Approvals, id: &ApprovalId) -> Result<Approval, BusError> {
    approvals
        .get(id.as_str())
        .filter(|approval| may_see(ctx.caller().actor(), approval))
        .ok_or_else(|| AnswerError::Unknown { id: id.to_string() }.into())
}

fn may_see(actor: &Actor, approval: &Approval) -> bool {
    actor.kind.as_str() != "agent" || approval.concerns(actor.id.as_str())
}

/// Who answers, if that is a person.
pub(super) fn person(ctx: &CallContext) -> Result<policy::Actor, BusError> {
    let actor = ctx.caller().actor();
    if actor.kind.as_str() == "user" {
        Ok(policy::Actor::User { id: actor.id.as_str().to_owned() })
    } else {
        Err(AnswerError::NotAPerson.into())
    }
}

fn status_of(approval: &Approval) -> ApprovalStatus {
    match approval.outcome.as_ref().map(|outcome| outcome.status) {
        None => ApprovalStatus::Pending,
        Some(Status::Approved) => ApprovalStatus::Approved,
        Some(Status::Denied) => ApprovalStatus::Denied,
        Some(Status::TimedOut) => ApprovalStatus::TimedOut,
    }
}

fn to_reply(approval: &Approval) -> BusResult {
    let unknown = || AnswerError::Unknown { id: approval.request.id.clone() };
    Ok(approval_to_wire(approval).ok_or_else(unknown)?.into())
}
