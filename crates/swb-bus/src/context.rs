//! Who calls, as part of what, and when to stop: what a handler knows beyond the payload.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Serialize;
use swb_proto::id::CorrelationId;
use swb_proto::{Actor, BusError, BusResult, Meta};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::cancel::CancelSignal;
use crate::dispatch::Bus;
use crate::handle::BusHandle;
use crate::stats::panic_error;
use crate::topics::PublishError;

/// The context that a handle speaks in. Shared: one per connection or task, not one per call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    actor: Actor,
    meta: Meta,
    depth: u8,
    /// Whom the line named, where the gate knows better.
    claimed: Option<Actor>,
    contained: bool,
}

impl Caller {
    /// A caller with this context; without an actor in it, the local user.
    pub fn new(meta: Meta) -> Self {
        let actor = meta.actor.clone().unwrap_or_else(Actor::local_user);
        Caller { actor, meta, depth: 0, claimed: None, contained: false }
    }

    /// A caller whose identity is known, whatever the context claims.
    pub fn known(mut meta: Meta, actor: Actor) -> Self {
        let claimed = meta.actor.replace(actor.clone()).filter(|claimed| *claimed != actor);
        Caller { actor, meta, depth: 0, claimed, contained: false }
    }

    /// The same, known to be held back by more than rules.
    #[must_use]
    pub fn contained(self, contained: bool) -> Self {
        Caller { contained, ..self }
    }

    /// Whether what it starts stays in its place.
    pub fn is_contained(&self) -> bool {
        self.contained
    }

    /// The daemon itself.
    pub fn system() -> Self {
        Caller::new(Meta { actor: Some(Actor::system()), ..Meta::default() })
    }

    /// Who acts.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Whom it claimed to be, if it is somebody else.
    pub fn claimed(&self) -> Option<&Actor> {
        self.claimed.as_ref()
    }

    /// Where, and as part of what.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// As part of what.
    pub fn correlation(&self) -> Option<&CorrelationId> {
        self.meta.correlation_id.as_ref()
    }

    /// How many calls lie between this one and the outside.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// The caller that somebody with `context` is on a handle of this one: as deep in the chain, and within a request
    /// whatever the context leaves out is still that of the request.
    pub(crate) fn speaking_as(&self, context: Meta) -> Self {
        let context = if self.depth == 0 { context } else { context.or(&self.meta) };
        Caller { depth: self.depth, ..Caller::new(context) }
    }

    pub(crate) fn nested(&self) -> Self {
        Caller { depth: self.depth.saturating_add(1), ..self.clone() }
    }
}

/// One request as its handler sees it.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub(crate) id: Uuid,
    pub(crate) caller: Arc<Caller>,
    pub(crate) cancel: CancelSignal,
    pub(crate) deadline: Option<Instant>,
    pub(crate) bus: Arc<Bus>,
}

impl CallContext {
    /// The request's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Who asks, and where.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Tells when nobody wants the answer any more.
    pub fn cancel_signal(&self) -> &CancelSignal {
        &self.cancel
    }

    /// When the caller stops waiting.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// A handle that calls on behalf of this request: same actor, same correlation, one level deeper. It ends with it,
    /// because a call is cancelled when its future is dropped.
    pub fn bus(&self) -> BusHandle {
        BusHandle::local(Arc::clone(&self.bus), Arc::new(self.caller.nested()))
    }

    /// The bus itself: its topics and counters.
    pub fn spine(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// Publishes an event that this request caused; it carries the request's actor, ids and correlation.
    pub fn publish(&self, topic: &str, payload: &impl Serialize) -> Result<u64, PublishError> {
        self.bus.topics().publish(topic, self.caller.meta(), Some(self.caller.actor()), payload)
    }

    /// Runs the work of this request on a task of its own. It is dropped as soon as the caller no longer wants the
    /// answer, and a panic in it is answered as an error.
    pub fn spawn<F>(self, reply_tx: oneshot::Sender<BusResult>, work: F)
    where
        F: Future<Output = BusResult> + Send + 'static,
    {
        tokio::spawn(async move {
            let work = AssertUnwindSafe(work).catch_unwind();
            let result = tokio::select! {
                biased;
                stopped = self.cancel.cancelled() => Err(stopped.to_error()),
                done = work => done.unwrap_or_else(|panic| Err(self.panicked(&*panic))),
            };
            // The caller may be gone; then there is nobody to tell.
            let _ = reply_tx.send(result);
        });
    }

    fn panicked(&self, panic: &(dyn std::any::Any + Send)) -> BusError {
        panic_error(self.bus.stats(), "a task of a handler", panic)
    }
}
