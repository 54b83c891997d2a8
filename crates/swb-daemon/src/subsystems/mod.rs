//! One file per prefix. A subsystem knows its own methods and nothing of the others; what it needs of them it asks on
//! the bus. What outlives the daemon lies in [`crate::records`].

mod agent;
mod agents;
mod approval;
mod audit;
mod control;
mod events;
mod grant;
mod llm;
mod policy;
pub(crate) mod project;
mod rpc;
mod session;
mod workspace;

pub(crate) use agent::AgentRuns;
pub(crate) use agents::Agents;
pub(crate) use approval::ApprovalDesk;
pub(crate) use audit::Audit;
pub(crate) use control::{Control, Identity};
pub(crate) use events::Events;
pub(crate) use grant::Grants;
pub(crate) use llm::Llm;
pub(crate) use policy::PolicyDesk;
pub(crate) use project::Projects;
pub(crate) use rpc::Rpc;
pub(crate) use session::Sessions;
pub(crate) use workspace::Workspaces;

use serde_json::Value;
use swb_bus::CallContext;
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_METHOD_NOT_FOUND};
use swb_proto::{BusError, BusPayload, Meta, method};

/// Publishes what a request caused, in the request's context with the ids that `place` adds.
fn publish(ctx: &CallContext, topic: &str, place: impl FnOnce(&mut Meta), payload: &Value) {
    let mut meta = ctx.caller().meta().clone();
    place(&mut meta);
    let topics = ctx.spine().topics();
    if let Err(error) = topics.publish(topic, &meta, Some(ctx.caller().actor()), payload) {
        tracing::warn!(%error, topic, "not published");
    }
}

/// The payload does not belong to the method.
fn wrong_payload(method: &str, payload: &BusPayload) -> BusError {
    BusError::new(ERR_INVALID_PARAMS, format!("{} does not take {}", method::dotted(method), payload.kind()))
}

/// The subsystem is there, the method is not.
fn no_method(method: &str) -> BusError {
    BusError::new(ERR_METHOD_NOT_FOUND, format!("there is no method {}", method::dotted(method)))
}
