//! The two kinds of message, and why a call could not be made (seed 000).

use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;
use uuid::Uuid;

/// A message on its way to the subsystem that its method names.
#[derive(Debug)]
pub enum BusMessage {
    /// Expects exactly one reply. The sender of the reply cannot be cloned, so there cannot be two.
    Request {
        /// Made by the handle; the wire id when the request crosses a process boundary.
        id: Uuid,
        /// The full method, e.g. `agents/echo/handle`.
        method: String,
        /// The body.
        payload: BusPayload,
        /// Where the reply goes. Dropped without a reply, the caller gets [`BusCallError::Recv`].
        reply_tx: oneshot::Sender<BusResult>,
    },
    /// Fire and forget.
    Notification {
        /// The full method.
        method: String,
        /// The body.
        payload: BusPayload,
    },
}

/// Why there was no answer at all. An answer that says "no" is a [`swb_proto::BusError`] instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BusCallError {
    /// The bus is gone: the daemon has stopped, or cannot be reached.
    #[error("the bus is gone: nothing was sent")]
    Send,
    /// The reply will never come: the handler dropped it, or the connection broke while waiting.
    #[error("the reply was dropped before it came")]
    Recv,
    /// The notification was dropped because the queue is full. Log it and do not retry; use a request if it must arrive.
    #[error("the queue is full: the notification was dropped")]
    Full,
}
