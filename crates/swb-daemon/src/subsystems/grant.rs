//! `grant`: what was allowed for a session, listed and taken back.

use std::sync::Arc;

use swb_bus::{BusHandler, CallContext};
use swb_proto::grant::{GrantBody, GrantList, GrantRevoked, ListGrantsParams, RevokeParams};
use swb_proto::{BusPayload, BusResult};
use swb_rules::policy::Grant;
use tokio::sync::oneshot;

use super::approval::person;
use super::{no_method, wrong_payload};
use crate::approvals::{Approvals, grant_to_wire};

/// Serves `grant/*`.
#[derive(Debug)]
pub(crate) struct Grants {
    pub(crate) approvals: Arc<Approvals>,
}

impl BusHandler for Grants {
    fn prefix(&self) -> &'static str {
        "grant"
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
            ("grant/list", BusPayload::Grant(GrantBody::WhichOnes(which))) => {
                let _ = reply_tx.send(Ok(list(&ctx, &approvals, &which).into()));
            }
            ("grant/revoke", BusPayload::Grant(GrantBody::Revoke(params))) => {
                ctx.clone().spawn(reply_tx, revoke(ctx, approvals, *params));
            }
            ("grant/list" | "grant/revoke", other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
            }
            _ => {
                let _ = reply_tx.send(Err(no_method(method)));
            }
        }
    }
}

/// An agent sees its own.
fn list(ctx: &CallContext, approvals: &Approvals, which: &ListGrantsParams) -> GrantList {
    let actor = ctx.caller().actor();
    let own = (actor.kind.as_str() == "agent").then(|| actor.id.as_str());
    let wanted = |grant: &&Grant| {
        own.is_none_or(|own| grant.agent == own)
            && which.agent.as_ref().is_none_or(|agent| grant.agent == *agent)
    };
    GrantList { grants: approvals.grants().iter().filter(wanted).filter_map(grant_to_wire).collect() }
}

async fn revoke(ctx: CallContext, approvals: Arc<Approvals>, params: RevokeParams) -> BusResult {
    let by = person(&ctx)?;
    approvals.revoke(params.grant_id.as_str().to_owned(), by).await?;
    Ok(GrantRevoked { grant_id: params.grant_id }.into())
}
