//! One client of the control socket: one task, bounded buffers, replies in any order.
//!
//! The task reads as much as there is, answers every line whose handler replies at once into one output buffer, and
//! writes that buffer with one call; so a burst of requests costs two system calls, not two each. Work that takes time
//! stays in [`PendingCalls`] and is answered when it is done. Events are fetched only while the peer keeps reading; a
//! peer that does not is overtaken by the ring and gets a gap, and nobody else notices.
//!
//! What belongs to the connection is served here: `bus.hello` (the context of its calls), `events.subscribe` and
//! `events.unsubscribe`, `$/cancel` (by the wire id). Everything else goes to the bus.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use swb_proto::control::HelloParams;
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_METHOD_NOT_FOUND, ERR_OVERLOADED};
use swb_proto::events::{self, EventsBody, SubscribeParams, SubscribeResponse};
use swb_proto::id::{CorrelationId, SubscriptionId};
use swb_proto::line::{self, Call, Dialect, LastContext, Rejection};
use swb_proto::{BusError, BusPayload, BusResult, Meta, method, reply};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;
use tokio::sync::watch;

use super::line_buffer::{Line, LineBuffer};
use super::outgoing::Outgoing;
use super::passage::{self, Passage};
use super::peer;
use super::pending::{Answer, PendingCalls, unanswered};
use super::server::ServerLimits;
use crate::cancel::StopReason;
use crate::context::Caller;
use crate::dispatch::{Bus, duplicate_id, not_found};
use crate::gate::{Command, Guest};
use crate::topics::Subscription;

const READ_BYTES: usize = 16 * 1024;
/// How long a closing connection waits for a peer that does not read.
const LAST_WRITE: Duration = Duration::from_secs(1);
/// How often a half-closed peer is looked at.
const HANGUP_CHECK: Duration = Duration::from_millis(250);

pub(super) struct Connection {
    bus: Arc<Bus>,
    limits: ServerLimits,
    /// Who is at the other end; nobody asks where there is no gate.
    guest: Option<Arc<dyn Guest>>,
    /// From `bus.hello`.
    context: Meta,
    /// The caller of every line that brings no context of its own.
    caller: Arc<Caller>,
    last_context: LastContext,
    /// A `bus.hello` whose answer is not there yet, by its wire id. The lines behind it wait, because it is their context.
    greeting: Option<(String, HelloParams, Arc<Caller>)>,
    /// What became of the last context that a line brought along.
    last_caller: Option<(Arc<Meta>, Arc<Caller>)>,
    out: Outgoing,
    pending: PendingCalls,
    subscriptions: Vec<OpenSubscription>,
    subscriptions_made: u64,
    /// When the lines that are being served came in.
    now: SystemTime,
}

struct OpenSubscription {
    id: String,
    dialect: Dialect,
    events: Subscription,
}

/// Why the task woke.
enum Woken {
    Read(io::Result<usize>),
    GoOn,
    Answered(Answer),
    EventsQueued,
    Stop,
    CheckPeer,
}

impl Connection {
    pub(super) fn new(bus: Arc<Bus>, limits: ServerLimits, guest: Option<Arc<dyn Guest>>) -> Self {
        let caller = Arc::new(caller_of(guest.as_deref(), Meta::default()));
        Connection {
            bus,
            limits,
            guest,
            context: Meta::default(),
            caller,
            last_context: LastContext::default(),
            greeting: None,
            last_caller: None,
            out: Outgoing::default(),
            pending: PendingCalls::default(),
            subscriptions: Vec::new(),
            subscriptions_made: 0,
            now: SystemTime::now(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut stream: UnixStream,
        mut stopping: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let mut lines = LineBuffer::new(self.limits.line_bytes);
        let (mut finished, mut stop) = (false, *stopping.borrow());
        loop {
            let all_taken = self.take_lines(&mut lines);
            let (mut reader, mut writer) = stream.split();
            self.out.try_write(&writer);
            let all_sent = finished && all_taken && self.out.is_empty();
            if (stop || all_sent) && self.pending.len() == 0 {
                break;
            }
            // A peer that does not read, or that has enough unanswered requests, is not read either.
            let has_room = self.has_room();
            let may_read = has_room && all_taken && !finished && !stop;
            let (out, pending, subscriptions) = (&mut self.out, &mut self.pending, &mut self.subscriptions);
            let may_fetch = !out.is_full();
            // Not biased: a client that never stops asking must not starve its own slow answers and events.
            let woken = tokio::select! {
                read = read_some(&mut reader, &mut lines), if may_read => Woken::Read(read),
                answer = poll_fn(|cx| pending.poll_answer(cx)) => Woken::Answered(answer),
                () = out.write_some(&mut writer), if !out.is_empty() => Woken::GoOn,
                // Writing has made room for lines that are here already.
                () = tokio::task::yield_now(), if has_room && !all_taken => Woken::GoOn,
                () = poll_fn(|cx| poll_events(subscriptions, cx)), if may_fetch => Woken::EventsQueued,
                _ = stopping.changed(), if !stop => Woken::Stop,
                // Reading would notice a peer that is gone; so it is looked after while it is not read.
                () = tokio::time::sleep(HANGUP_CHECK), if !may_read => Woken::CheckPeer,
            };
            match woken {
                Woken::Read(read) => {
                    if read? == 0 {
                        finished = true;
                        self.subscriptions.clear();
                        if peer::has_hung_up(&stream) {
                            return Ok(());
                        }
                    }
                }
                Woken::GoOn => {}
                Woken::Answered(answer) => self.answer(&answer),
                Woken::EventsQueued => self.fetch_events(),
                Woken::Stop => {
                    stop = true;
                    self.pending.stop_asking(StopReason::ShuttingDown);
                }
                Woken::CheckPeer => {
                    if peer::has_hung_up(&stream) {
                        return Ok(());
                    }
                }
            }
        }
        self.fetch_events();
        let (_, mut writer) = stream.split();
        let last = async {
            while !self.out.is_empty() {
                self.out.write_some(&mut writer).await;
            }
        };
        // A peer that does not read in this time is not waited for.
        let _ = tokio::time::timeout(LAST_WRITE, last).await;
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.out.is_full() && self.pending.len() < self.limits.in_flight && self.greeting.is_none()
    }

    /// Serves the lines that have come in, as long as there is room for their answers. True if it served them all.
    fn take_lines(&mut self, lines: &mut LineBuffer) -> bool {
        // One look at the clock for a whole burst.
        self.now = SystemTime::now();
        while self.has_room() {
            let judged = match lines.next() {
                None => return true,
                Some(Line::Whole(bytes)) => line::read_after(&mut self.last_context, bytes),
                Some(Line::Oversized(head)) => Err(line::oversized(head, self.limits.line_bytes)),
            };
            match judged {
                Ok(call) => self.take_call(call),
                Err(rejection) if rejection.is_of_notification() => {}
                Err(Rejection { dialect, id, correlation, error }) => {
                    self.write_answer(dialect, id.as_deref(), correlation.as_ref(), &Err(error));
                }
            }
        }
        false
    }

    fn take_call(&mut self, call: Call<'_>) {
        let Call { dialect, id, method, params, meta } = call;
        let caller = match meta {
            None => Arc::clone(&self.caller),
            Some(meta) => self.caller_with(meta),
        };
        if let Some(id) = id.filter(|id| self.pending.contains(id)) {
            return self.write_answer(dialect, Some(id), caller.correlation(), &Err(duplicate_id(&id)));
        }
        if method == "$/cancel" {
            let result = self.cancel(params);
            if id.is_some() {
                self.write_answer(dialect, id, caller.correlation(), &result);
            }
            return;
        }
        let payload = match decode(&method, params) {
            Ok(payload) => payload,
            Err(error) => {
                if id.is_none() && error.code == ERR_METHOD_NOT_FOUND {
                    self.bus.unrouted(&method);
                }
                if id.is_some() {
                    self.write_answer(dialect, id, caller.correlation(), &Err(error));
                }
                return;
            }
        };
        // What the bus says about itself is no command.
        let guest = if method.starts_with('$') { None } else { self.guest.clone() };
        let guest = guest.as_deref();
        let command = Command { id, method: &method, params, payload: &payload, can_wait: false };
        let Some(id) = id else {
            // Notifications have no answer, whatever becomes of them; the bus counts and logs the losses.
            let passage = passage::at_once(guest, &caller, &command, || {
                self.bus.notify(&caller, method.clone(), payload.clone()).map_err(unanswered)?;
                Ok(BusPayload::Empty)
            });
            if let Passage::Later { result, .. } = passage {
                // Nobody waits for it, but the record does.
                tokio::spawn(result);
            }
            return;
        };
        let hello = (method == "bus/hello").then(|| HelloParams::try_from(payload.clone()).ok()).flatten();
        let passage = match &payload {
            BusPayload::Events(EventsBody::Subscribe(params)) => {
                passage::at_once(guest, &caller, &command, || self.subscribe(dialect, params))
            }
            BusPayload::Events(EventsBody::Unsubscribe(params)) => {
                passage::at_once(guest, &caller, &command, || self.unsubscribe(&params.subscription))
            }
            _ => passage::request(&self.bus, guest, &caller, (id, params), method, payload),
        };
        match passage {
            Passage::Answered(result) => {
                if let (Ok(_), Some(hello)) = (&result, hello) {
                    self.introduce(hello, &caller);
                }
                self.write_answer(dialect, Some(id), caller.correlation(), &result);
            }
            Passage::Later { signal, asks, result } => {
                self.greeting = hello.map(|hello| (id.to_owned(), hello, Arc::clone(&caller)));
                self.pending.add(dialect, id, caller.correlation().cloned(), (asks, signal), result);
            }
        }
    }

    /// The caller of a line with a context. Shared by a run of lines with the same one.
    fn caller_with(&mut self, meta: Arc<Meta>) -> Arc<Caller> {
        match &self.last_caller {
            Some((known, caller)) if Arc::ptr_eq(known, &meta) => Arc::clone(caller),
            _ => {
                let caller = Arc::new(caller_of(self.guest.as_deref(), Meta::clone(&meta).or(&self.context)));
                self.last_caller = Some((meta, Arc::clone(&caller)));
                caller
            }
        }
    }

    fn introduce(&mut self, hello: HelloParams, caller: &Caller) {
        tracing::debug!(client = ?hello.client, "hello");
        // The correlation of the greeting is not that of everything after it.
        let said = Meta { correlation_id: None, timeout_ms: None, ..caller.meta().clone() };
        self.context = hello.context.or(&said);
        self.caller = Arc::new(caller_of(self.guest.as_deref(), self.context.clone()));
        self.last_caller = None;
    }

    fn subscribe(&mut self, dialect: Dialect, params: &SubscribeParams) -> BusResult {
        if self.subscriptions.len() >= self.limits.subscriptions {
            let message = format!("this connection has {} subscriptions already", self.limits.subscriptions);
            return Err(BusError::new(ERR_OVERLOADED, message).because("TOO_MANY_SUBSCRIPTIONS"));
        }
        if params.topics.len() > events::MAX_GLOBS {
            let message = format!("a subscription has at most {} topics", events::MAX_GLOBS);
            return Err(BusError::new(ERR_INVALID_PARAMS, message));
        }
        let events = self.bus.topics().subscribe(params.topics.clone(), params.after)?;
        self.subscriptions_made += 1;
        let id = format!("sub_{}", self.subscriptions_made);
        let response = SubscribeResponse {
            subscription: SubscriptionId::try_from(id.clone()).expect("made of letters and digits"),
            after: events.cursor(),
            head: self.bus.topics().head(),
        };
        self.subscriptions.push(OpenSubscription { id, dialect, events });
        Ok(response.into())
    }

    fn unsubscribe(&mut self, id: &SubscriptionId) -> BusResult {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|open| open.id != id.as_str());
        if self.subscriptions.len() < before {
            return Ok(BusPayload::Empty);
        }
        let message = format!("this connection has no subscription {id}");
        Err(BusError::new(ERR_INVALID_PARAMS, message).because("UNKNOWN_SUBSCRIPTION"))
    }

    fn cancel(&mut self, params: Option<&serde_json::value::RawValue>) -> BusResult {
        #[derive(serde::Deserialize)]
        struct WireId<'a> {
            #[serde(borrow)]
            id: &'a serde_json::value::RawValue,
        }
        let params = params.map_or("{}", serde_json::value::RawValue::get);
        let Ok(WireId { id }) = serde_json::from_str(params) else {
            return Err(BusError::new(
                ERR_INVALID_PARAMS,
                "$/cancel needs the id of a request of this connection",
            ));
        };
        if self.pending.cancel(id.get()) {
            crate::stats::count(&self.bus.stats().cancelled);
        }
        Ok(BusPayload::Empty)
    }

    /// Moves events into the output buffer until it is full or there are none.
    fn fetch_events(&mut self) {
        let now = self.bus.topics().now();
        for open in &mut self.subscriptions {
            while !self.out.is_full() {
                let Some(delivery) = open.events.take_now() else { break };
                let out = self.out.buffer();
                delivery.with_json(now, |json| reply::write_event(out, open.dialect, &open.id, json));
            }
        }
        if self.out.is_full() && !self.subscriptions.is_empty() {
            // Whoever filled the buffer is not the first again.
            self.subscriptions.rotate_left(1);
        }
    }

    fn answer(&mut self, answer: &Answer) {
        if let Some((_, hello, caller)) = self.greeting.take_if(|(id, ..)| *id == answer.id)
            && answer.result.is_ok()
        {
            self.introduce(hello, &caller);
        }
        let now = SystemTime::now();
        let out = self.out.buffer();
        reply::write(out, answer.dialect, Some(&answer.id), answer.correlation.as_ref(), now, &answer.result);
    }

    fn write_answer(
        &mut self,
        dialect: Dialect,
        id: Option<&str>,
        correlation: Option<&CorrelationId>,
        result: &BusResult,
    ) {
        reply::write(self.out.buffer(), dialect, id, correlation, self.now, result);
    }
}

fn caller_of(guest: Option<&dyn Guest>, context: Meta) -> Caller {
    match guest {
        Some(guest) => guest.caller(context),
        None => Caller::new(context),
    }
}

fn decode(method: &str, params: Option<&serde_json::value::RawValue>) -> BusResult {
    method::lookup(method).ok_or_else(|| not_found(method))?.decode_params(params)
}

async fn read_some(reader: &mut ReadHalf<'_>, lines: &mut LineBuffer) -> io::Result<usize> {
    let space = lines.space();
    space.reserve(READ_BYTES);
    reader.read_buf(space).await
}

/// Ready when any subscription has something to fetch.
fn poll_events(subscriptions: &mut [OpenSubscription], cx: &mut Context<'_>) -> Poll<()> {
    let mut any = Poll::Pending;
    for open in subscriptions {
        if open.events.poll_ready(cx).is_ready() {
            any = Poll::Ready(());
        }
    }
    any
}
