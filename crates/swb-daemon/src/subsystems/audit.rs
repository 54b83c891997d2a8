//! `audit`: what changes the record. Reading it needs no daemon.

use std::sync::Arc;

use swb_bus::{BusHandler, CallContext};
use swb_journal::audit::{HoldScope, PurgeError};
use swb_proto::audit::{AuditBody, Held, HoldParams, PurgeParams, Purged, ReleaseParams, Released};
use swb_proto::error::{ERR_HANDLER, ERR_INVALID_PARAMS};
use swb_proto::{BusError, BusPayload, BusResult};
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};
use crate::record::{Recorder, recorded, tell_of};

/// The longest reason that is recorded.
const REASON: usize = 1000;

/// Serves `audit/*`.
#[derive(Debug)]
pub(crate) struct Audit {
    pub(crate) recorder: Arc<Recorder>,
}

impl BusHandler for Audit {
    fn prefix(&self) -> &'static str {
        "audit"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let recorder = Arc::clone(&self.recorder);
        // Each of them reads or writes files: on a thread that may wait.
        let work: Box<dyn FnOnce(&CallContext) -> BusResult + Send> = match (method, payload) {
            ("audit/hold", BusPayload::Audit(AuditBody::Hold(params))) => {
                Box::new(move |ctx| hold(ctx, &recorder, *params))
            }
            ("audit/release", BusPayload::Audit(AuditBody::Release(params))) => {
                Box::new(move |ctx| release(ctx, &recorder, *params))
            }
            ("audit/purge", BusPayload::Audit(AuditBody::Purge(params))) => {
                Box::new(move |ctx| purge(ctx, &recorder, *params))
            }
            ("audit/hold" | "audit/release" | "audit/purge", other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
                return;
            }
            _ => {
                let _ = reply_tx.send(Err(no_method(method)));
                return;
            }
        };
        let within = ctx.clone();
        ctx.spawn(reply_tx, async move {
            let done = tokio::task::spawn_blocking(move || work(&within)).await;
            done.unwrap_or_else(|_| Err(BusError::new(ERR_HANDLER, "this was not done; the log says why")))
        });
    }
}

fn hold(ctx: &CallContext, recorder: &Recorder, params: HoldParams) -> BusResult {
    let reason = reason(params.reason)?;
    let scope = match (params.workspace_id, params.session_id, params.everything) {
        (Some(id), None, false) => HoldScope::Workspace { workspace_id: id.as_str().to_owned() },
        (None, Some(id), false) => HoldScope::Session { session_id: id.as_str().to_owned() },
        (None, None, true) => HoldScope::Everything,
        _ => {
            let message = "say what to hold: one of workspace_id, session_id and everything";
            return Err(BusError::new(ERR_INVALID_PARAMS, message));
        }
    };
    let (hold_id, receipt) = recorder.hold(recorded(ctx.caller().actor()), scope, reason)?;
    Ok(Held { hold_id, audit_id: receipt.number.to_string() }.into())
}

fn release(ctx: &CallContext, recorder: &Recorder, params: ReleaseParams) -> BusResult {
    let reason = reason(params.reason)?;
    match recorder.release(recorded(ctx.caller().actor()), &params.hold_id, reason)? {
        Some(receipt) => {
            Ok(Released { hold_id: params.hold_id, audit_id: receipt.number.to_string() }.into())
        }
        None => {
            let message = "there is no such hold; `swb audit holds` names them";
            Err(BusError::new(ERR_INVALID_PARAMS, message).because("HOLD_NOT_FOUND"))
        }
    }
}

fn purge(ctx: &CallContext, recorder: &Recorder, params: PurgeParams) -> BusResult {
    let reason = reason(params.reason)?;
    let days = params.retention_days.unwrap_or_else(|| recorder.retention_days());
    let purged = recorder.purge(recorded(ctx.caller().actor()), reason, days).map_err(not_purged)?;
    tell_of(&purged, ctx.spine().topics());
    Ok(Purged {
        records: purged.records,
        segments: purged.segments as u64,
        kept_segments: purged.kept as u64,
        audit_id: purged.proof.map(|number| number.to_string()),
    }
    .into())
}

fn not_purged(error: PurgeError) -> BusError {
    match error {
        PurgeError::TooShort { .. } => {
            BusError::new(ERR_INVALID_PARAMS, error.to_string()).because("RETENTION_TOO_SHORT")
        }
        PurgeError::Damaged => BusError::new(ERR_HANDLER, error.to_string()).because("AUDIT_DAMAGED"),
        PurgeError::Append(error) => crate::record::RecordError::from(error).into(),
        error => {
            tracing::error!(%error, "a purge failed");
            BusError::new(ERR_HANDLER, "the purge did not finish; the log says why, and the next one goes on")
        }
    }
}

fn reason(text: String) -> Result<String, BusError> {
    let text = swb_rules::redact::redact(text.trim()).text;
    if text.is_empty() || text.len() > REASON {
        return Err(BusError::new(ERR_INVALID_PARAMS, format!("a reason has 1 to {REASON} bytes")));
    }
    Ok(text)
}
