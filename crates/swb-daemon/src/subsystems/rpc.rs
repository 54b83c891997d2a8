//! `rpc`: the interface about itself.

use std::sync::OnceLock;

use swb_bus::BusHandler;
use swb_proto::rpc::DiscoverResponse;
use swb_proto::{BusPayload, BusResult, openrpc};
use tokio::sync::oneshot;

use super::no_method;

/// Serves `rpc/discover`.
#[derive(Debug, Default)]
pub(crate) struct Rpc {
    document: OnceLock<DiscoverResponse>,
}

impl BusHandler for Rpc {
    fn prefix(&self) -> &'static str {
        "rpc"
    }

    fn handle_request(&self, method: &str, _payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(match method {
            "rpc/discover" => Ok(self.document.get_or_init(openrpc::document).clone().into()),
            _ => Err(no_method(method)),
        });
    }
}
