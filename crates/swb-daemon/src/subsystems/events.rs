//! `events`: pages of what is kept. Streams belong to a connection, or to [`swb_bus::BusHandle::subscribe`].

use swb_bus::{BusHandler, CallContext};
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_INVALID_REQUEST};
use swb_proto::events::{EventsBody, MAX_GLOBS, MAX_PAGE, ReadParams};
use swb_proto::{BusError, BusPayload, BusResult};
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};

const DEFAULT_PAGE: u64 = 100;

/// Serves `events/read`.
#[derive(Debug)]
pub(crate) struct Events;

impl BusHandler for Events {
    fn prefix(&self) -> &'static str {
        "events"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let _ = reply_tx.send(match (method, payload) {
            ("events/read", BusPayload::Events(EventsBody::Read(params))) => page(&ctx, *params),
            ("events/subscribe" | "events/unsubscribe", _) => {
                let message = "a subscription belongs to a connection: use it there, or BusHandle::subscribe in process";
                Err(BusError::new(ERR_INVALID_REQUEST, message))
            }
            ("events/read", other) => Err(wrong_payload(method, &other)),
            _ => Err(no_method(method)),
        });
    }
}

fn page(ctx: &CallContext, params: ReadParams) -> BusResult {
    let limit = params.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) || params.topics.len() > MAX_GLOBS {
        let message = format!("a page holds 1 to {MAX_PAGE} events, chosen by at most {MAX_GLOBS} topics");
        return Err(BusError::new(ERR_INVALID_PARAMS, message));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(ctx.spine().topics().read(params.topics, params.after, limit)?.into())
}
