//! One file per prefix. A subsystem knows its own methods and nothing of the others; what it needs of them it asks on
//! the bus.

mod agents;
mod control;
mod events;
mod llm;
mod rpc;

pub(crate) use agents::Agents;
pub(crate) use control::{Control, Identity};
pub(crate) use events::Events;
pub(crate) use llm::Llm;
pub(crate) use rpc::Rpc;

use swb_proto::error::{ERR_INVALID_PARAMS, ERR_METHOD_NOT_FOUND};
use swb_proto::{BusError, BusPayload, method};

/// The payload does not belong to the method.
fn wrong_payload(method: &str, payload: &BusPayload) -> BusError {
    BusError::new(ERR_INVALID_PARAMS, format!("{} does not take {}", method::dotted(method), payload.kind()))
}

/// The subsystem is there, the method is not.
fn no_method(method: &str) -> BusError {
    BusError::new(ERR_METHOD_NOT_FOUND, format!("there is no method {}", method::dotted(method)))
}
