//! The bus: which subsystem serves a method, and the life of everything that is under way.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use swb_proto::control::PingResponse;
use swb_proto::error::{ERR_DEPTH, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_METHOD_NOT_FOUND};
use swb_proto::{BusError, BusPayload, BusResult, Timestamp, method};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::call::{PendingCall, Started};
use crate::cancel::StopReason;
use crate::context::{CallContext, Caller};
use crate::handle::BusHandle;
use crate::handler::BusHandler;
use crate::in_flight::InFlight;
use crate::message::{BusCallError, BusMessage};
use crate::notice::NoticeQueue;
use crate::request_id;
use crate::stats::{Stats, Throttle, count, panic_error};
use crate::topics::Topics;

/// How deep calls may be nested before a loop is assumed.
const MAX_DEPTH: u8 = 10;
const NOTICE_CAPACITY: usize = 1024;

const OPEN: u8 = 0;
/// New requests from outside are refused; those in flight, and what they call, may finish.
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;

/// The bus of one process.
pub struct Bus {
    routes: HashMap<Box<str>, Route>,
    in_flight: Arc<InFlight>,
    topics: Arc<Topics>,
    stats: Arc<Stats>,
    unrouted: Throttle,
    state: AtomicU8,
    default_timeout: Option<Duration>,
}

struct Route {
    handler: Arc<dyn BusHandler>,
    notices: NoticeQueue,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("prefixes", &self.prefixes()).finish_non_exhaustive()
    }
}

/// Collects the subsystems of a bus.
pub struct BusBuilder {
    handlers: Vec<Arc<dyn BusHandler>>,
    topics: Arc<Topics>,
    notice_capacity: usize,
    default_timeout: Option<Duration>,
}

impl std::fmt::Debug for BusBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusBuilder").field("handlers", &self.handlers.len()).finish_non_exhaustive()
    }
}

impl BusBuilder {
    /// Adds a subsystem.
    ///
    /// # Panics
    /// If its prefix is taken, reserved (`$…`) or not a single segment: a programming error that must not survive start-up.
    #[must_use]
    pub fn register(mut self, handler: impl BusHandler + 'static) -> Self {
        let prefix = handler.prefix();
        assert!(!prefix.starts_with('$'), "the prefix {prefix:?} is reserved for the bus itself");
        let one_segment =
            !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        assert!(one_segment, "{prefix:?} is not a single segment of letters, digits and '_'");
        let taken = self.handlers.iter().any(|known| known.prefix() == prefix);
        assert!(!taken, "two handlers share the prefix {prefix:?}");
        self.handlers.push(Arc::new(handler));
        self
    }

    /// How many notifications may wait for one subsystem.
    #[must_use]
    pub fn notice_capacity(mut self, capacity: usize) -> Self {
        self.notice_capacity = capacity;
        self
    }

    /// How long a request may take when its caller does not say.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.default_timeout = Some(timeout);
        self
    }

    /// The finished bus. Must be called on a tokio runtime: each subsystem gets a task for its notifications.
    pub fn build(self) -> Arc<Bus> {
        let stats = Arc::new(Stats::default());
        let routes = self.handlers.into_iter().map(|handler| {
            let notices = NoticeQueue::start(Arc::clone(&handler), self.notice_capacity, Arc::clone(&stats));
            (handler.prefix().into(), Route { handler, notices })
        });
        Arc::new(Bus {
            routes: routes.collect(),
            in_flight: Arc::default(),
            topics: self.topics,
            stats: Arc::clone(&stats),
            unrouted: Throttle::default(),
            state: AtomicU8::new(OPEN),
            default_timeout: self.default_timeout,
        })
    }
}

impl Bus {
    /// Begins a bus whose events go into `topics`.
    pub fn builder(topics: Arc<Topics>) -> BusBuilder {
        BusBuilder { handlers: Vec::new(), topics, notice_capacity: NOTICE_CAPACITY, default_timeout: None }
    }

    /// A handle that speaks as the daemon itself. [`BusHandle::with`] makes it speak as somebody else.
    pub fn handle(self: &Arc<Self>) -> BusHandle {
        BusHandle::local(Arc::clone(self), Arc::new(Caller::system()))
    }

    /// The events.
    pub fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Requests without an answer.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The subsystems, by name.
    pub fn prefixes(&self) -> Vec<String> {
        let mut prefixes: Vec<String> = self.routes.keys().map(ToString::to_string).collect();
        prefixes.sort();
        prefixes
    }

    /// Hands a request to its handler on the task of the caller, and returns without waiting.
    pub fn start(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        id: Option<Uuid>,
        method: String,
        payload: BusPayload,
    ) -> Result<Started, BusCallError> {
        self.admit(caller)?;
        count(&self.stats.requests);
        if caller.depth() > MAX_DEPTH {
            let message = format!("{method} was called {MAX_DEPTH} calls deep: is there a loop?");
            return Ok(Started::Done(Err(BusError::new(ERR_DEPTH, message))));
        }
        let id = id.unwrap_or_else(request_id::next);
        let Some(entry) = self.in_flight.register(id) else {
            return Ok(Started::Done(Err(duplicate_id(&id))));
        };
        // Seen again after registering: a shutdown that missed the entry has closed the bus by now.
        if self.state.load(Ordering::SeqCst) == CLOSED {
            return Err(BusCallError::Send);
        }
        let timeout = caller.meta().timeout_ms.map(Duration::from_millis).or(self.default_timeout);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (reply_tx, reply_rx) = oneshot::channel();
        let ctx = CallContext {
            id,
            caller: Arc::clone(caller),
            cancel: entry.signal.clone(),
            deadline,
            bus: Arc::clone(self),
        };
        let pending = PendingCall::new(reply_rx, entry, deadline);
        match self.dispatch(ctx, BusMessage::Request { id, method, payload, reply_tx }) {
            Some(error) => Ok(Started::Done(Err(error))),
            None => pending.try_answer(),
        }
    }

    /// Sends a notification. Never blocks, may be dropped.
    pub fn notify(&self, caller: &Caller, method: String, payload: BusPayload) -> Result<(), BusCallError> {
        self.admit(caller)?;
        if method.starts_with('$') {
            if self.system(&method, &payload).is_err() {
                self.unrouted(&method);
            }
            return Ok(());
        }
        let Some(route) = self.routes.get(method::prefix(&method)) else {
            self.unrouted(&method);
            return Ok(());
        };
        route.notices.push(method, payload, &self.stats)
    }

    /// Counts a notification that nobody takes.
    pub(crate) fn unrouted(&self, method: &str) {
        count(&self.stats.notifications_unrouted);
        if let Some(lost) = self.unrouted.pass() {
            tracing::warn!(method, lost, "no subsystem takes this notification");
        }
    }

    /// Asks a request in flight to stop. False if there is none with this id.
    pub fn cancel(&self, id: Uuid) -> bool {
        let stopped = self.in_flight.cancel(id);
        if stopped {
            count(&self.stats.cancelled);
        }
        stopped
    }

    /// Closes the bus: requests from outside are refused from now on, those in flight get `patience` to finish and are
    /// then answered with an error. Subscriptions end after the last event.
    pub async fn shutdown(&self, patience: Duration) {
        self.state.store(DRAINING, Ordering::SeqCst);
        if tokio::time::timeout(patience, self.in_flight.emptied()).await.is_err() {
            tracing::warn!(
                in_flight = self.in_flight(),
                "requests did not finish in time; they are answered with an error"
            );
        }
        self.state.store(CLOSED, Ordering::SeqCst);
        self.in_flight.stop_all(StopReason::ShuttingDown);
        self.topics.close();
    }

    fn admit(&self, caller: &Caller) -> Result<(), BusCallError> {
        match self.state.load(Ordering::SeqCst) {
            OPEN => Ok(()),
            DRAINING if caller.depth() > 0 => Ok(()),
            _ => Err(BusCallError::Send),
        }
    }

    /// Calls the handler. Returns the error that the bus itself has to answer with, if any.
    fn dispatch(&self, ctx: CallContext, message: BusMessage) -> Option<BusError> {
        let BusMessage::Request { method, payload, reply_tx, .. } = message else {
            unreachable!("notifications go through their queue")
        };
        if method.starts_with('$') {
            let _ = reply_tx.send(self.system(&method, &payload));
            return None;
        }
        let Some(route) = self.routes.get(method::prefix(&method)) else {
            return Some(not_found(&method));
        };
        let call = AssertUnwindSafe(|| route.handler.handle_call(ctx, &method, payload, reply_tx));
        catch_unwind(call).err().map(|panic| panic_error(&self.stats, &method, &*panic))
    }

    /// The methods that belong to the bus itself.
    fn system(&self, method: &str, payload: &BusPayload) -> BusResult {
        match (method, payload) {
            ("$/ping", _) => Ok(PingResponse {
                ts: Timestamp::from_system_time(self.topics.now()),
                head: self.topics.head(),
            }
            .into()),
            ("$/cancel", BusPayload::CancelRequest { id }) => {
                self.cancel(*id);
                Ok(BusPayload::Empty)
            }
            ("$/cancel", other) => Err(wrong_payload(method, other)),
            _ => Err(not_found(method)),
        }
    }
}

/// Nobody serves `method`.
pub(crate) fn not_found(method: &str) -> BusError {
    BusError::new(ERR_METHOD_NOT_FOUND, format!("no handler for {}", method::dotted(method)))
}

/// The id is taken: a second request under it could neither be cancelled nor told apart.
pub(crate) fn duplicate_id(id: &dyn std::fmt::Display) -> BusError {
    BusError::new(ERR_INVALID_REQUEST, format!("a request with the id {id} is still in flight"))
        .because("DUPLICATE_ID")
}

fn wrong_payload(method: &str, payload: &BusPayload) -> BusError {
    let message = format!("{} does not take {}", method::dotted(method), payload.kind());
    BusError::new(ERR_INVALID_PARAMS, message)
}
