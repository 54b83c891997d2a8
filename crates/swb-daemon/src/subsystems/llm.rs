//! `llm`: completions. Until a model is configured the answer is an echo that says so.

use swb_bus::BusHandler;
use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};

/// Serves `llm/complete`.
#[derive(Debug)]
pub(crate) struct Llm;

impl BusHandler for Llm {
    fn prefix(&self) -> &'static str {
        "llm"
    }

    fn handle_request(&self, method: &str, payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(match (method, payload) {
            ("llm/complete", BusPayload::LlmRequest { channel_id, content }) => {
                Ok(BusPayload::CommsMessage {
                    channel_id,
                    content: format!("[echo: no model is configured] {content}"),
                })
            }
            ("llm/complete", other) => Err(wrong_payload(method, &other)),
            _ => Err(no_method(method)),
        });
    }
}
