//! Calls that wait for their reply.

use std::collections::hash_map;
use std::time::Duration;

use serde_json::value::RawValue;
use swb_proto::{BusError, BusPayload};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Link;
use crate::cancel::StopReason;
use crate::message::BusCallError;
use crate::request_id::ById;

/// What came back: a result as JSON text, or an error.
pub(super) type Reply = Result<Box<RawValue>, BusError>;

#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: ById<oneshot::Sender<Reply>>,
}

impl Calls {
    /// Where the reply will come; `None` if one under this id is awaited already.
    pub(super) fn add(&mut self, id: Uuid) -> Option<oneshot::Receiver<Reply>> {
        match self.waiting.entry(id.as_u128()) {
            hash_map::Entry::Occupied(_) => None,
            hash_map::Entry::Vacant(free) => {
                let (sender, receiver) = oneshot::channel();
                free.insert(sender);
                Some(receiver)
            }
        }
    }

    pub(super) fn take(&mut self, id: Uuid) -> Option<oneshot::Sender<Reply>> {
        self.waiting.remove(&id.as_u128())
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The connection is gone: whoever waits learns it now.
    pub(super) fn fail_all(&mut self) {
        self.waiting.clear();
    }
}

/// A call that was sent. Dropped without an answer, it tells the daemon to stop the work.
pub(super) struct Registered<'a> {
    pub(super) link: &'a Link,
    pub(super) id: Uuid,
    pub(super) answered: bool,
}

impl Registered<'_> {
    pub(super) async fn answer(
        mut self,
        reply: oneshot::Receiver<Reply>,
        timeout_ms: Option<u64>,
    ) -> Result<Reply, BusCallError> {
        let reply = match timeout_ms.map(Duration::from_millis) {
            None => reply.await,
            // The daemon keeps the deadline; this one is for a daemon that does not answer at all.
            Some(timeout) => match tokio::time::timeout(timeout + Duration::from_secs(1), reply).await {
                Ok(reply) => reply,
                Err(_) => return Ok(Err(StopReason::TimedOut.to_error())),
            },
        };
        self.answered = true;
        reply.map_err(|_| BusCallError::Recv)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if !self.answered && self.link.lock().calls.take(self.id).is_some() {
            self.link.send(None, "$/cancel", &BusPayload::CancelRequest { id: self.id });
        }
    }
}
