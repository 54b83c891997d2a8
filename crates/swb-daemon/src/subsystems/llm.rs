//! `llm`: completions by the configured model; `demo` answers where none is.

use std::sync::Arc;

use swb_bus::{BusHandler, CallContext};
use swb_proto::error::ERR_INVALID_PARAMS;
use swb_proto::{BusError, BusPayload, BusResult};
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};
use crate::completion::Completions;

/// Serves `llm/complete`.
#[derive(Debug)]
pub(crate) struct Llm {
    pub(crate) completions: Arc<Completions>,
}

impl BusHandler for Llm {
    fn prefix(&self) -> &'static str {
        "llm"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let refused = match (method, payload) {
            ("llm/complete", BusPayload::LlmRequest { content, .. }) if content.trim().is_empty() => {
                BusError::new(ERR_INVALID_PARAMS, "there is nothing to complete: content is empty")
            }
            ("llm/complete", BusPayload::LlmRequest { channel_id, content }) => {
                let completions = Arc::clone(&self.completions);
                return ctx.spawn(reply_tx, async move {
                    let content = completions.answer(content).await?;
                    Ok(BusPayload::CommsMessage { channel_id, content })
                });
            }
            ("llm/complete", other) => wrong_payload(method, &other),
            _ => no_method(method),
        };
        // Whoever asked may be gone.
        let _ = reply_tx.send(Err(refused));
    }
}
