//! `agents`: messages to agents. Until agents run as processes there is one, `echo`, which is also the default.

use serde_json::json;
use swb_bus::{BusHandler, CallContext};
use swb_proto::error::ERR_METHOD_NOT_FOUND;
use swb_proto::{BusError, BusPayload, BusResult};
use tokio::sync::oneshot;

use super::wrong_payload;

const DEFAULT_AGENT: &str = "echo";
const DEFAULT_ACTION: &str = "handle";

/// Routes `agents[/<agent>[/<action>]]`.
#[derive(Debug)]
pub(crate) struct Agents;

impl BusHandler for Agents {
    fn prefix(&self) -> &'static str {
        "agents"
    }

    fn handle_request(&self, method: &str, payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(answer(method, payload));
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let result = answer(method, payload);
        if let Ok(BusPayload::CommsMessage { channel_id, content }) = &result {
            let (agent, _) = route(method);
            let replied = json!({ "agent": agent, "bytes": content.len(), "channel_id": channel_id });
            if let Err(error) = ctx.publish("agents.replied", &replied) {
                tracing::warn!(%error, "agents.replied was not published");
            }
        }
        let _ = reply_tx.send(result);
    }
}

fn answer(method: &str, payload: BusPayload) -> BusResult {
    match (route(method), payload) {
        ((DEFAULT_AGENT, DEFAULT_ACTION), message @ BusPayload::CommsMessage { .. }) => Ok(message),
        ((DEFAULT_AGENT, DEFAULT_ACTION), other) => Err(wrong_payload(method, &other)),
        ((DEFAULT_AGENT, action), _) => {
            let message = format!("the agent {DEFAULT_AGENT} cannot {action:?}; it can {DEFAULT_ACTION:?}");
            Err(BusError::new(ERR_METHOD_NOT_FOUND, message))
        }
        ((agent, _), _) => {
            let message = format!("there is no agent {agent:?}; there is {DEFAULT_AGENT:?}");
            Err(BusError::new(ERR_METHOD_NOT_FOUND, message))
        }
    }
}

/// The agent and the action that a method names. What follows the agent is its action, however many segments that has.
fn route(method: &str) -> (&str, &str) {
    let mut segments = method.splitn(3, '/').skip(1);
    (segments.next().unwrap_or(DEFAULT_AGENT), segments.next().unwrap_or(DEFAULT_ACTION))
}
