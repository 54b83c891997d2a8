//! `agent`: runs of agents.

use swb_bus::{BusHandler, CallContext};
use swb_proto::id::SessionId;
use swb_proto::run::{
    AnswerParams, CancelRunParams, ListRunsParams, RunBody, RunCancelled, RunList, TellParams, Told,
    ToldStatus, WhichRun,
};
use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;

use super::wrong_payload;
use crate::runs::{How, Runs};

/// Serves `agent/*`.
#[derive(Debug)]
pub(crate) struct AgentRuns {
    pub(crate) runs: Runs,
}

impl BusHandler for AgentRuns {
    fn prefix(&self) -> &'static str {
        "agent"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let BusPayload::Run(body) = payload else {
            let _ = reply_tx.send(Err(wrong_payload(method, &payload)));
            return;
        };
        let runs = self.runs.clone();
        match (method, body) {
            ("agent/list", RunBody::WhichOnes(which)) => {
                let _ = reply_tx.send(Ok(list(&ctx, &runs, &which).into()));
            }
            ("agent/get", RunBody::Which(which)) => {
                ctx.clone().spawn(reply_tx, get(ctx, runs, *which));
            }
            ("agent/run", RunBody::Run(params)) => {
                let work = async move { runs.start(ctx, *params).await.map(Into::into) };
                spawn(reply_tx, work);
            }
            ("agent/cancel", RunBody::Cancel(params)) => {
                ctx.clone().spawn(reply_tx, cancel(ctx, runs, *params));
            }
            ("agent/steer", RunBody::Tell(params)) => {
                ctx.clone().spawn(reply_tx, tell(ctx, runs, How::Steer, *params));
            }
            ("agent/follow_up", RunBody::Tell(params)) => {
                ctx.clone().spawn(reply_tx, tell(ctx, runs, How::FollowUp, *params));
            }
            ("agent/answer", RunBody::Answer(params)) => {
                ctx.clone().spawn(reply_tx, answer(ctx, runs, *params));
            }
            (_, other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &BusPayload::Run(other))));
            }
        }
    }
}

/// Work that is done whole, also when nobody waits for its answer: a run that was taken is begun.
fn spawn(reply_tx: oneshot::Sender<BusResult>, work: impl Future<Output = BusResult> + Send + 'static) {
    tokio::spawn(async move {
        let _ = reply_tx.send(work.await);
    });
}

fn named(ctx: &CallContext, session: Option<SessionId>) -> Option<SessionId> {
    session.or_else(|| ctx.caller().meta().session_id.clone())
}

fn list(ctx: &CallContext, runs: &Runs, which: &ListRunsParams) -> RunList {
    let workspace = which.workspace_id.clone().or_else(|| ctx.caller().meta().workspace_id.clone());
    let runs = runs.list(|run| {
        workspace.as_ref().is_none_or(|workspace| run.workspace_id == *workspace)
            && which.session_id.as_ref().is_none_or(|session| run.session_id == *session)
            && (which.ended || !run.state.is_over())
    });
    RunList { runs }
}

async fn get(ctx: CallContext, runs: Runs, which: WhichRun) -> BusResult {
    let kept = runs.which(which.run_id.as_ref(), named(&ctx, which.session_id).as_ref())?;
    Ok(runs.view(kept).await.into())
}

async fn cancel(ctx: CallContext, runs: Runs, params: CancelRunParams) -> BusResult {
    let kept = runs.which(params.run_id.as_ref(), named(&ctx, params.session_id).as_ref())?;
    runs.may_drive(&ctx, &kept.run.session_id)?;
    let run_id = kept.id().clone();
    let status = runs.cancel(&run_id, params.reason).await?;
    Ok(RunCancelled { run_id, status }.into())
}

async fn tell(ctx: CallContext, runs: Runs, how: How, params: TellParams) -> BusResult {
    let session = match (&params.run_id, named(&ctx, params.session_id.clone())) {
        (Some(run), _) => runs.which(Some(run), None)?.run.session_id,
        (None, Some(session)) => session,
        (None, None) => runs.which(None, None)?.run.session_id,
    };
    runs.may_drive(&ctx, &session)?;
    let (run_id, status) = runs.tell(ctx, &session, how, params.text).await?;
    Ok(Told { run_id, session_id: session, status }.into())
}

async fn answer(ctx: CallContext, runs: Runs, params: AnswerParams) -> BusResult {
    let kept = runs.which(params.run_id.as_ref(), named(&ctx, params.session_id.clone()).as_ref())?;
    let session_id = kept.run.session_id;
    runs.may_drive(&ctx, &session_id)?;
    let run_id = runs.answer(&ctx, &session_id, params).await?;
    Ok(Told { run_id, session_id, status: ToldStatus::Delivered }.into())
}
