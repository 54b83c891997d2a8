//! One run on its way to one client: events in, frames out, a word now and then when there are none.
//!
//! It ends with the run, with questions, or with the daemon. A client that goes away before that has the run cancelled:
//! in AG-UI that is what an abort is. A daemon that stops cancels nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use swb_bus::topics::{Delivery, Subscription};
use swb_proto::approval::{self, ApprovalStatus, ListApprovalsParams};
use swb_proto::run::{self, CancelRunParams, RunState, WhichRun};
use tokio::time::{Instant, Sleep, sleep_until};

use super::threads::{Thread, Waiting};
use super::translator::{Standing, Translator};
use crate::routes::App;
use crate::sse::{KEEP_ALIVE, Seat};
use crate::visit::Visit;

/// What is ready is sent together up to this.
const CHUNK: usize = 64 * 1024;
/// How long a question waits for others that are put beside it: one interrupt names them all.
const GATHER: Duration = Duration::from_millis(50);
/// How long the end of a run that is over is waited for: it is kept before it is told.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long it waits for the call that it is about: a question may be heard before the last of the arguments.
const LONGEST_GATHER: Duration = Duration::from_secs(2);

/// A stream as it is being read.
#[derive(Debug)]
pub(super) struct Relay {
    translator: Translator,
    events: Subscription,
    run: Watched,
    thread: Thread,
    heartbeat: Pin<Box<Sleep>>,
    /// Set while questions gather: when that ends, and when it ends whatever is missing.
    interrupt_at: Option<Instant>,
    interrupt_by: Option<Instant>,
    /// Set while it is not known what a gap has swallowed.
    gap_at: Option<Instant>,
    /// The run is over, and its end was not among the events so far.
    is_over: bool,
    _seat: Seat,
}

/// What ended a wait.
enum Happened {
    Event(Delivery),
    /// What is asked together has been put.
    Gathered,
    /// There is nothing more to read behind a gap.
    CaughtUp,
    Stopped,
    Nothing,
}

/// The run, and whoever watches it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) app: Arc<App>,
    pub(super) visit: Visit,
    pub(super) which: WhichRun,
    /// Whether it is to be cancelled when nobody watches any more.
    pub(super) armed: bool,
}

impl Relay {
    pub(super) fn new(
        translator: Translator,
        events: Subscription,
        run: Watched,
        thread: Thread,
        seat: Seat,
    ) -> Self {
        let heartbeat = Box::pin(sleep_until(Instant::now() + run.app.keep_alive()));
        Relay {
            translator,
            events,
            run,
            thread,
            heartbeat,
            interrupt_at: None,
            interrupt_by: None,
            gap_at: None,
            is_over: false,
            _seat: seat,
        }
    }

    /// What to send next; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            // What is there already goes together.
            while self.translator.waiting() < CHUNK
                && !self.translator.is_over()
                && let Some(Some(delivery)) = self.events.next().now_or_never()
            {
                self.take(&delivery);
            }
            if self.translator.waiting() > 0 {
                let next = Instant::now() + self.run.app.keep_alive();
                self.heartbeat.as_mut().reset(next);
                return Some(self.translator.take());
            }
            if self.translator.is_over() {
                self.run.armed = false;
                return None;
            }
            match self.wait().await {
                Happened::Event(delivery) => self.take(&delivery),
                Happened::CaughtUp => self.look().await,
                Happened::Gathered => self.interrupt().await,
                Happened::Stopped => self.stopped(),
                Happened::Nothing => {
                    let next = Instant::now() + self.run.app.keep_alive();
                    self.heartbeat.as_mut().reset(next);
                    return Some(KEEP_ALIVE);
                }
            }
        }
    }

    async fn wait(&mut self) -> Happened {
        let mut stopping = self.run.app.stopping.clone();
        let stopped = async { drop(stopping.wait_for(|stopping| *stopping).await) };
        let gathered = at(self.interrupt_at);
        let caught_up = at(self.gap_at);
        tokio::select! {
            // Events before what looks after them.
            biased;
            () = stopped => Happened::Stopped,
            delivery = self.events.next() => delivery.map_or(Happened::Stopped, Happened::Event),
            () = gathered => Happened::Gathered,
            () = caught_up => Happened::CaughtUp,
            () = self.heartbeat.as_mut() => Happened::Nothing,
        }
    }

    fn take(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Event(event) => {
                self.translator.translate(event.envelope());
                self.gather();
            }
            // Numbers that are not there, or not kept: it may mean nothing. Once there is nothing more to read, it is
            // looked after.
            Delivery::Gap(_) if self.is_over => {}
            Delivery::Gap(_) => self.gap_at = Some(Instant::now() + GATHER),
        }
    }

    /// A question waits a moment for others.
    fn gather(&mut self) {
        self.interrupt_at = match self.translator.standing() {
            Standing::Asking => self.interrupt_at.or_else(|| Some(Instant::now() + GATHER)),
            Standing::Going | Standing::Over => None,
        };
        let longest = self.interrupt_by.or_else(|| Some(Instant::now() + LONGEST_GATHER));
        self.interrupt_by = self.interrupt_at.and(longest);
    }

    /// Events are missing: a question or the end may have been among them.
    async fn look(&mut self) {
        self.gap_at = None;
        let handle = self.run.visit.handle(&self.run.app.bus);
        match handle.call::<run::Get>(self.run.which.clone()).await {
            Ok(view) if !view.run.state.is_over() => {}
            Ok(_) if !std::mem::replace(&mut self.is_over, true) => {
                self.gap_at = Some(Instant::now() + LAST_WORDS);
            }
            // Its end is kept longer than the rest; this is for when it was not.
            Ok(view) if view.run.state == RunState::Completed => {
                self.translator
                    .fail("EVENTS_LOST", "the run is complete, but what it said is no longer kept");
            }
            Ok(view) => {
                let why =
                    view.run.error.map_or_else(|| "the run was cancelled".to_owned(), |error| error.message);
                self.translator.fail("EVENTS_LOST", &why);
            }
            Err(error) => self.translator.fail("EVENTS_LOST", &error.to_string()),
        }
        let pending = ListApprovalsParams {
            status: Some(ApprovalStatus::Pending),
            session_id: Some(self.thread.session_id.clone()),
            ..ListApprovalsParams::default()
        };
        if let Ok(list) = handle.call::<approval::List>(pending).await {
            list.approvals.into_iter().for_each(|approval| self.translator.asks(approval));
        }
        self.gather();
    }

    /// Ends this stream with what is asked. First it is kept, so that the answer finds what it belongs to.
    async fn interrupt(&mut self) {
        let now = Instant::now();
        if self.translator.is_writing_a_call() && self.interrupt_by.is_some_and(|by| now < by) {
            self.interrupt_at = Some(now + GATHER);
            return;
        }
        self.interrupt_at = None;
        let Some(run_id) = self.run.which.run_id.clone() else { return };
        let interrupts = self.translator.asked().iter().map(|asked| asked.approval_id.clone()).collect();
        let calls = self.translator.unanswered().to_vec();
        let waiting = Some(Waiting { run_id, after: self.events.cursor(), interrupts, calls });
        self.thread.waiting = waiting;
        match self.run.app.threads.put(self.thread.clone()).await {
            Ok(()) => self.translator.interrupt(),
            Err(failure) => {
                // The questions stand all the same; they can be answered at any other door.
                self.run.armed = false;
                self.translator.fail("INTERNAL_ERROR", failure.message());
            }
        }
    }

    fn stopped(&mut self) {
        self.run.armed = false;
        self.translator.of_itself();
        self.translator.fail("SHUTTING_DOWN", "the daemon is stopping; the run goes on without this stream");
    }
}

/// A moment, if it is to come at all.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.armed || *self.app.stopping.borrow() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let WhichRun { run_id, session_id } = std::mem::take(&mut self.which);
        let reason = Some("whoever watched it went away".to_owned());
        let (app, visit) = (Arc::clone(&self.app), self.visit.clone());
        runtime.spawn(async move {
            let cancelled =
                visit.call::<run::Cancel>(&app.bus, CancelRunParams { run_id, session_id, reason });
            if let Err(error) = cancelled.await {
                tracing::warn!(%error, "a run that nobody watches any more was not cancelled");
            }
        });
    }
}

/// The word for a client that came too late with its answer.
pub(super) const EXPIRED: &str = "INTERRUPT_EXPIRED";
