//! What everyone holds: the same calls, inside the daemon and outside it.

use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use swb_proto::method::{self, Method};
use swb_proto::{BusError, BusPayload, BusResult, Meta, TopicGlob};

use crate::call::Started;
use crate::context::Caller;
use crate::dispatch::{Bus, not_found};
use crate::message::BusCallError;
use crate::topics::{Delivery, Subscription};
use crate::transport::client::{ConnectError, RemoteBus, RemoteSubscription};

/// The only thing subsystems, commands and foreign programs need to talk to the bus. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BusHandle(Place);

#[derive(Debug, Clone)]
enum Place {
    Local { bus: Arc<Bus>, caller: Arc<Caller> },
    Remote { bus: Arc<RemoteBus>, caller: Option<Arc<Caller>> },
}

/// Why a typed call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There was no answer.
    #[error(transparent)]
    Call(#[from] BusCallError),
    /// The answer was "no".
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The answer was of another type than the method's.
    #[error("the answer is a {0}, which is not of the method's type")]
    Type(&'static str),
}

impl BusHandle {
    pub(crate) fn local(bus: Arc<Bus>, caller: Arc<Caller>) -> Self {
        BusHandle(Place::Local { bus, caller })
    }

    /// Connects to the daemon that listens on `socket`. The handle reconnects by itself: calls that were pending fail
    /// with [`BusCallError::Recv`], later ones wait a moment for the new connection, subscriptions go on from their
    /// cursor.
    pub async fn connect(socket: impl AsRef<Path>) -> Result<Self, ConnectError> {
        Self::connect_as(socket, Meta::default()).await
    }

    /// The same, introducing the caller: its actor and ids hold for every call of the connection.
    pub async fn connect_as(socket: impl AsRef<Path>, context: Meta) -> Result<Self, ConnectError> {
        let bus = RemoteBus::connect(socket.as_ref().to_owned(), context).await?;
        Ok(BusHandle(Place::Remote { bus, caller: None }))
    }

    /// The same bus, spoken to as another caller: its actor, ids, correlation and patience go along with every call.
    #[must_use]
    pub fn with(&self, context: Meta) -> Self {
        BusHandle(match &self.0 {
            Place::Local { bus, caller } => {
                Place::Local { bus: Arc::clone(bus), caller: Arc::new(caller.speaking_as(context)) }
            }
            Place::Remote { bus, .. } => {
                Place::Remote { bus: Arc::clone(bus), caller: Some(Arc::new(Caller::new(context))) }
            }
        })
    }

    /// Sends a request and waits for exactly one reply. Dropping the future cancels the request.
    pub async fn request(
        &self,
        method: impl Into<String>,
        payload: BusPayload,
    ) -> Result<BusResult, BusCallError> {
        self.request_with_id(None, method.into(), payload).await
    }

    /// The same under an id of the caller's choice, so that somebody else can cancel it. Ids must not repeat.
    pub async fn request_with_id(
        &self,
        id: Option<uuid::Uuid>,
        method: String,
        payload: BusPayload,
    ) -> Result<BusResult, BusCallError> {
        match &self.0 {
            Place::Local { bus, caller } => match bus.start(caller, id, method, payload)? {
                Started::Done(result) => Ok(result),
                Started::Pending(pending) => pending.answer().await,
            },
            Place::Remote { bus, caller } => bus.request(caller.as_deref(), id, &method, &payload).await,
        }
    }

    /// Sends a notification: never blocks, is dropped with [`BusCallError::Full`] when there is no room.
    pub fn notify(&self, method: impl Into<String>, payload: BusPayload) -> Result<(), BusCallError> {
        match &self.0 {
            Place::Local { bus, caller } => bus.notify(caller, method.into(), payload),
            Place::Remote { bus, caller } => bus.notify(caller.as_deref(), &method.into(), &payload),
        }
    }

    /// A request whose types are known from its method.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Response, CallError> {
        let payload = self.request(M::NAME, params.into()).await??;
        let kind = payload.kind();
        M::Response::try_from(payload).map_err(|_| CallError::Type(kind))
    }

    /// A request whose parameters and result stay JSON: for tools that do not know the method's types.
    pub async fn call_json(
        &self,
        method: &str,
        params: &RawValue,
    ) -> Result<Result<Box<RawValue>, BusError>, BusCallError> {
        match &self.0 {
            Place::Local { .. } => {
                let spec = method::lookup(method).ok_or_else(|| not_found(method));
                let payload = match spec.and_then(|spec| spec.decode_params(Some(params))) {
                    Ok(payload) => payload,
                    Err(error) => return Ok(Err(error)),
                };
                Ok(self.request(method, payload).await?.and_then(|payload| bare(&payload)))
            }
            Place::Remote { bus, caller } => {
                let write = |out: &mut Vec<u8>| out.extend_from_slice(params.get().as_bytes());
                bus.request_raw(caller.as_deref(), None, method, write).await
            }
        }
    }

    /// Events that match any of `topics` (all, if there are none): from after the cursor, or from now on.
    pub async fn subscribe(
        &self,
        topics: Vec<TopicGlob>,
        after: Option<u64>,
    ) -> Result<EventStream, CallError> {
        match &self.0 {
            Place::Local { bus, .. } => {
                let subscription = bus.topics().subscribe(topics, after).map_err(BusError::from)?;
                Ok(EventStream(Source::Local(subscription)))
            }
            Place::Remote { bus, .. } => {
                Ok(EventStream(Source::Remote(RemoteBus::subscribe(bus, topics, after).await?)))
            }
        }
    }
}

fn bare(payload: &BusPayload) -> Result<Box<RawValue>, BusError> {
    let mut out = Vec::new();
    payload.write_bare(&mut out);
    let text = String::from_utf8(out).map_err(|error| error.to_string());
    let raw = text.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
    raw.map_err(|error| BusError::new(swb_proto::error::ERR_INTERNAL, error))
}

/// A stream of events, wherever the bus is.
#[derive(Debug)]
pub struct EventStream(Source);

#[derive(Debug)]
enum Source {
    Local(Subscription),
    Remote(RemoteSubscription),
}

impl EventStream {
    /// The next delivery; `None` once the bus is closed for good.
    pub async fn next(&mut self) -> Option<Delivery> {
        match &mut self.0 {
            Source::Local(subscription) => subscription.next().await,
            Source::Remote(subscription) => subscription.next().await,
        }
    }

    /// Where to resume.
    pub fn cursor(&self) -> u64 {
        match &self.0 {
            Source::Local(subscription) => subscription.cursor(),
            Source::Remote(subscription) => subscription.cursor(),
        }
    }
}
