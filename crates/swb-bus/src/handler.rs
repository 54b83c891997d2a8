//! What a subsystem implements to be on the bus (seed 000).

use swb_proto::{BusPayload, BusResult};
use tokio::sync::oneshot;

use crate::CallContext;
use crate::dispatch::not_found;

/// A subsystem: it owns every method whose first segment is its prefix.
///
/// Neither method may block: the handler runs on its caller's task. Reply at once, or move `reply_tx` into
/// [`CallContext::spawn`], which also ends the work when the caller goes away.
pub trait BusHandler: Send + Sync {
    /// The first segment of the methods served here: letters, digits and `_`. Two handlers with one prefix, or a prefix
    /// that begins with `$`, panic when the bus is built.
    fn prefix(&self) -> &str;

    /// Serves one request; `method` is the full method. Exactly one reply goes into `reply_tx`. A subsystem that serves
    /// its methods with [`BusHandler::handle_call`] leaves it alone.
    fn handle_request(&self, method: &str, _payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        // Whoever asked may be gone.
        let _ = reply_tx.send(Err(not_found(method)));
    }

    /// Takes one notification. Most subsystems have no use for any.
    fn handle_notification(&self, _method: &str, _payload: BusPayload) {}

    /// Serves one request with its context: who asks, as part of what, and when to stop. What the bus really calls;
    /// a subsystem that needs no context leaves it alone.
    fn handle_call(
        &self,
        _ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        self.handle_request(method, payload, reply_tx);
    }
}
