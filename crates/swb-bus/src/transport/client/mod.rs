//! The calling end: one connection to a daemon, shared by every clone of a handle.
//!
//! Callers append lines to one buffer; a single task (`pump`) writes it and resolves replies by id, so requests of many
//! tasks travel together and replies may come in any order. When the connection breaks, every pending call fails at
//! once; the task connects again with a growing pause, says hello and resumes subscriptions from their cursors.
//!
//! Bounds: the buffer holds `MAX_QUEUED` bytes (requests wait, notifications are dropped with `Full`); a subscription
//! queues `subscription::QUEUE` events and then asks the daemon again from where its consumer really is.

mod calls;
mod pump;
mod subscription;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use swb_proto::control::{HelloParams, Program};
use swb_proto::events::{SubscribeParams, SubscribeResponse, UnsubscribeParams};
use swb_proto::id::SubscriptionId;
use swb_proto::{BusError, BusPayload, BusResult, LOCALBUS_NAMESPACE, Meta, TopicGlob, method};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

pub use subscription::RemoteSubscription;

use crate::cancel::StopReason;
use crate::context::Caller;
use crate::handle::CallError;
use crate::message::BusCallError;
use crate::request_id;
use crate::transport::pending;
use calls::{Calls, Registered};
use subscription::Subscriptions;

/// Bytes that may wait to be written.
const MAX_QUEUED: usize = 1024 * 1024;
/// How long a call waits for a connection that is being made again.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {}", socket.display())]
pub struct ConnectError {
    /// The socket.
    pub socket: PathBuf,
    /// What happened.
    #[source]
    pub kind: ConnectErrorKind,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectErrorKind {
    /// Nobody listens, or the socket cannot be reached.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The socket belongs to somebody else.
    #[error("the socket is served by another user")]
    AnotherUser,
    /// The daemon did not answer the greeting.
    #[error("the daemon did not answer the greeting: {0}")]
    Hello(#[from] CallError),
}

/// The far bus, as its callers hold it. When the last one lets go, the connection is written empty and closed.
#[derive(Debug)]
pub struct RemoteBus(Arc<Link>);

impl Drop for RemoteBus {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Release);
        self.0.outgoing.notify_one();
    }
}

/// What callers and the pump share.
#[derive(Debug)]
struct Link {
    socket: PathBuf,
    context: Meta,
    shared: Mutex<Shared>,
    /// There is something to write, or nobody left to write for.
    outgoing: Notify,
    /// The buffer has room again.
    room: Notify,
    /// Follows [`Shared::up`], for those who wait.
    connected: watch::Sender<bool>,
    /// Nobody holds a handle any more.
    abandoned: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    /// False while the connection is being made again. Lines are queued only while it is true: the first line of every
    /// connection is the greeting, and a call that is not failed by the end of one must not wait for the next.
    up: bool,
    out: Vec<u8>,
    calls: Calls,
    subscriptions: Subscriptions,
}

impl RemoteBus {
    /// Connects, says hello, and starts the task that keeps the connection.
    pub(crate) async fn connect(socket: PathBuf, context: Meta) -> Result<Arc<Self>, ConnectError> {
        let failed = |kind| ConnectError { socket: socket.clone(), kind };
        let stream = pump::open(&socket).await.map_err(failed)?;
        let link = Arc::new(Link {
            socket: socket.clone(),
            context,
            shared: Mutex::new(Shared { up: true, ..Shared::default() }),
            outgoing: Notify::new(),
            room: Notify::new(),
            connected: watch::Sender::new(true),
            abandoned: AtomicBool::new(false),
        });
        let hello = link.hello();
        tokio::spawn(pump::run(Arc::clone(&link), stream));
        let bus = Arc::new(RemoteBus(link));
        let patience = tokio::time::timeout(RECONNECT_PATIENCE, bus.request(None, None, "bus/hello", &hello));
        match patience.await.unwrap_or(Err(BusCallError::Recv)) {
            Ok(Ok(_)) => Ok(bus),
            Ok(Err(refused)) => Err(failed(CallError::Bus(refused).into())),
            Err(error) => Err(failed(CallError::Call(error).into())),
        }
    }

    pub(crate) async fn request(
        &self,
        caller: Option<&Caller>,
        id: Option<Uuid>,
        method: &str,
        payload: &BusPayload,
    ) -> Result<BusResult, BusCallError> {
        // Without words for its answer there is no point in asking.
        let Some(spec) = method::lookup(method) else { return Ok(Err(crate::dispatch::not_found(method))) };
        let result = self.request_raw(caller, id, method, |out| payload.write_bare(out)).await?;
        match result {
            Ok(result) => Ok(spec.decode_result(&result)),
            // Where the bus is must make no difference to how a call fails.
            Err(error) => match pending::call_error(&error) {
                Some(unanswered) => Err(unanswered),
                None => Ok(Err(error)),
            },
        }
    }

    /// A request whose parameters and result stay JSON.
    pub async fn request_raw(
        &self,
        caller: Option<&Caller>,
        id: Option<Uuid>,
        method: &str,
        write_params: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Result<Box<RawValue>, BusError>, BusCallError> {
        self.request_then(caller, id, method, write_params, |_, _| {}).await
    }

    /// The same; `queued` is called together with the queueing of the line, before any answer can come.
    async fn request_then(
        &self,
        caller: Option<&Caller>,
        id: Option<Uuid>,
        method: &str,
        write_params: impl FnOnce(&mut Vec<u8>),
        queued: impl FnOnce(&mut Shared, Uuid),
    ) -> Result<Result<Box<RawValue>, BusError>, BusCallError> {
        let link = &self.0;
        let id = id.unwrap_or_else(request_id::next);
        let timeout_ms = caller.and_then(|caller| caller.meta().timeout_ms);
        let (reply, waking) = loop {
            match timeout_ms.map(Duration::from_millis) {
                None => link.wait_for_room().await?,
                Some(patience) => match tokio::time::timeout(patience, link.wait_for_room()).await {
                    Ok(room) => room?,
                    Err(_) => return Ok(Err(StopReason::TimedOut.to_error())),
                },
            }
            let mut shared = link.lock();
            if !shared.up {
                continue;
            }
            let Some(reply) = shared.calls.add(id) else {
                return Ok(Err(crate::dispatch::duplicate_id(&id)));
            };
            let waking = shared.out.is_empty();
            write_request(&mut shared.out, Some(id), method, caller, write_params);
            queued(&mut shared, id);
            break (reply, waking);
        };
        if waking {
            link.outgoing.notify_one();
        }
        let registered = Registered { link, id, answered: false };
        registered.answer(reply, timeout_ms).await
    }

    pub(crate) fn notify(
        &self,
        caller: Option<&Caller>,
        method: &str,
        payload: &BusPayload,
    ) -> Result<(), BusCallError> {
        self.0.notify(caller, method, payload)
    }

    pub(crate) async fn subscribe(
        this: &Arc<Self>,
        topics: Vec<TopicGlob>,
        after: Option<u64>,
    ) -> Result<RemoteSubscription, CallError> {
        let params = BusPayload::from(SubscribeParams { topics: topics.clone(), after });
        let key = this.0.lock().subscriptions.add(topics);
        let subscription = RemoteSubscription::new(Arc::clone(this), key);
        // The reply is turned into a subscription by the task that reads it, before it reads the first event.
        let expect = |shared: &mut Shared, id| shared.subscriptions.expect(key, id);
        let write = |out: &mut Vec<u8>| params.write_bare(out);
        let result = this.request_then(None, None, "events/subscribe", write, expect).await??;
        let opened: SubscribeResponse =
            serde_json::from_str(result.get()).map_err(|_| CallError::Type("result"))?;
        Ok(subscription.starting_at(opened.after))
    }
}

impl Link {
    fn notify(
        &self,
        caller: Option<&Caller>,
        method: &str,
        payload: &BusPayload,
    ) -> Result<(), BusCallError> {
        let mut shared = self.lock();
        if !shared.up {
            return Err(BusCallError::Send);
        }
        if shared.out.len() > MAX_QUEUED {
            return Err(BusCallError::Full);
        }
        write_request(&mut shared.out, None, method, caller, |out| payload.write_bare(out));
        drop(shared);
        self.outgoing.notify_one();
        Ok(())
    }

    /// Queues a line whose reply nobody waits for, whatever the buffer holds: the connection's own housekeeping. On a
    /// connection that is gone there is nothing to keep.
    fn send(&self, id: Option<Uuid>, method: &str, payload: &BusPayload) {
        let mut shared = self.lock();
        if shared.up {
            write_request(&mut shared.out, id, method, None, |out| payload.write_bare(out));
            drop(shared);
            self.outgoing.notify_one();
        }
    }

    fn unsubscribe(&self, id: SubscriptionId) {
        let payload = UnsubscribeParams { subscription: id }.into();
        self.send(Some(request_id::next()), "events/unsubscribe", &payload);
    }

    /// Waits until lines can be queued: connected, and the buffer not too full.
    async fn wait_for_room(&self) -> Result<(), BusCallError> {
        if !*self.connected.borrow() {
            let mut connected = self.connected.subscribe();
            let up = connected.wait_for(|connected| *connected);
            match tokio::time::timeout(RECONNECT_PATIENCE, up).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return Err(BusCallError::Send),
            }
        }
        loop {
            let room = self.room.notified();
            if self.lock().out.len() <= MAX_QUEUED {
                return Ok(());
            }
            room.await;
        }
    }

    fn hello(&self) -> BusPayload {
        let client = Program { name: "swb".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let namespace = Some(LOCALBUS_NAMESPACE.to_owned());
        HelloParams { namespace, client: Some(client), context: self.context.clone() }.into()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a JSON-RPC line. The caller's context goes into `params._meta`.
fn write_request(
    out: &mut Vec<u8>,
    id: Option<Uuid>,
    method: &str,
    caller: Option<&Caller>,
    write_params: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":""#);
        let mut text = Uuid::encode_buffer();
        out.extend_from_slice(id.hyphenated().encode_lower(&mut text).as_bytes());
        out.extend_from_slice(br#"","#);
    }
    out.extend_from_slice(br#""method":"#);
    let method = serde_json::to_string(method).unwrap_or_default();
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(br#","params":"#);
    let params_at = out.len();
    write_params(out);
    if let Some(caller) = caller {
        // Without an actor the one of the greeting stands.
        let meta = serde_json::to_string(caller.meta());
        // Parameters are an object; its closing brace makes room for one more field.
        let empty = out[params_at..].iter().filter(|byte| !byte.is_ascii_whitespace()).count() == 2;
        while out.pop() != Some(b'}') && out.len() > params_at {}
        out.extend_from_slice(if empty { br#""_meta":"# } else { br#","_meta":"# });
        out.extend_from_slice(meta.unwrap_or_default().as_bytes());
        out.push(b'}');
    }
    out.extend_from_slice(b"}\n");
}
