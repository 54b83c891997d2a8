//! What all sessions at work share, and which of them are at work.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swb_bus::topics::Topics;
use swb_host::mark;
use swb_journal::transcript::Transcripts;
use swb_proto::error::ERR_SHUTTING_DOWN;
use swb_proto::id::{RunId, SessionId};
use swb_proto::run::{Attended, RunState};
use swb_proto::{BusError, TopicGlob};
use tokio::sync::{Notify, Semaphore, mpsc};

use super::agent::{Agents, Place};
use super::inbox::Office;
use super::kept::{self, KeptRun};
use super::order::Order;
use super::session::SessionTask;
use super::taking::place_of;
use super::{MOST_ORDERS, bus_notes, gone, telling};
use crate::approvals::Approvals;
use crate::gate::HouseGate;
use crate::paths::Paths;
use crate::record::Recorder;
use crate::records::{Records, now};
use crate::telemetry::RunCounts;

/// What all sessions at work share.
#[derive(Debug)]
pub(super) struct House {
    pub(super) records: Arc<Records>,
    pub(super) topics: Arc<Topics>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) transcripts: Arc<Transcripts>,
    pub(super) gate: Arc<HouseGate>,
    pub(super) office: Arc<Office>,
    /// Messages that may reach an agent in a row without a person.
    pub(super) in_a_row: u32,
    pub(super) agents: Agents,
    pub(super) paths: Paths,
    pub(super) message_root: PathBuf,
    pub(super) slots: Arc<Semaphore>,
    pub(super) counts: RunCounts,
    pub(super) idle: Duration,
    /// How long questions wait: while somebody looks on, and for somebody who comes later.
    pub(super) answer_here: Duration,
    pub(super) answer_later: Duration,
    pub(super) at_work: Mutex<AtWork>,
    /// A session is not at work any more.
    pub(super) left: Notify,
}

/// Which sessions are at work. One is until its agent is gone: it takes no orders then, and nobody else begins in its place.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    pub(super) sessions: HashMap<String, mpsc::Sender<Order>>,
    pub(super) stopping: Option<Stopping>,
}

impl AtWork {
    /// A session begins to work. It is at work until its task is over, however that ends.
    pub(super) fn begin(&mut self, task: SessionTask) -> mpsc::Sender<Order> {
        let (orders, receiver) = mpsc::channel(MOST_ORDERS);
        self.sessions.insert(task.place.session.clone(), orders.clone());
        tokio::spawn(async move {
            // Made in here: a task that never runs is dropped at once, and by whoever holds the lock.
            let leaving = Leaving { house: Arc::clone(&task.house), session: task.place.session.clone() };
            SessionTask { orders: receiver, ..task }.run().await;
            drop(leaving);
        });
        orders
    }
}

/// Dropped, its session is not at work any more.
struct Leaving {
    house: Arc<House>,
    session: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.house.at_work().sessions.remove(&self.session);
        self.house.left.notify_waiters();
    }
}

/// What becomes of agents when the daemon stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// They work on.
    LettingGo,
    /// They end first.
    Ending,
}

impl House {
    pub(super) fn at_work(&self) -> MutexGuard<'_, AtWork> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a run to its session, which begins to work if it did not.
    pub(super) async fn take(self: &Arc<Self>, kept: KeptRun) -> Result<(), BusError> {
        let session = kept.run.session_id.clone();
        let mut order = Order::Run(Box::new(kept));
        // A session that retires between the look and the order is begun anew.
        for _ in 0..3 {
            let orders = self.session(&session).await?;
            match orders.send(order).await {
                Ok(()) => return Ok(()),
                Err(mpsc::error::SendError(back)) => order = back,
            }
        }
        Err(gone())
    }

    /// The line to a session at work; it begins to work if it does not. One that is ending is waited for.
    async fn session(self: &Arc<Self>, session: &SessionId) -> Result<mpsc::Sender<Order>, BusError> {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            // From now on it is heard.
            left.as_mut().enable();
            if let Some(orders) = self.begin_work(session)? {
                return Ok(orders);
            }
            left.await;
        }
    }

    /// The same; none while it is ending.
    fn begin_work(self: &Arc<Self>, session: &SessionId) -> Result<Option<mpsc::Sender<Order>>, BusError> {
        let mut at_work = self.at_work();
        if at_work.stopping.is_some() {
            return Err(BusError::new(ERR_SHUTTING_DOWN, "the daemon is stopping"));
        }
        if let Some(orders) = at_work.sessions.get(session.as_str()) {
            return Ok((!orders.is_closed()).then(|| orders.clone()));
        }
        let task = self.new_task(session)?;
        Ok(Some(at_work.begin(task)))
    }

    /// A session that has nothing to do yet.
    pub(super) fn new_task(self: &Arc<Self>, session: &SessionId) -> Result<SessionTask, BusError> {
        let estate = self.records.look();
        let (_, project) = place_of(&estate, session)?;
        let place = Place {
            session: session.as_str().to_owned(),
            root: PathBuf::from(&project.root_path),
            message_bus: self.message_root.join(&project.slug),
        };
        let last = estate.runs_of(session).rev().find_map(|kept| kept.session_total.clone());
        let generation = estate.runs_of(session).map(|kept| kept.host).max().unwrap_or(0);
        let (_, orders) = mpsc::channel(1);
        Ok(SessionTask {
            house: Arc::clone(self),
            place,
            orders,
            waiting: VecDeque::new(),
            link: None,
            current: None,
            inbox: None,
            before: last,
            generation,
        })
    }

    pub(super) async fn order(&self, session: &str, order: Order) -> Result<(), Order> {
        let orders = self.at_work().sessions.get(session).cloned();
        match orders {
            Some(orders) => orders.send(order).await.map_err(|mpsc::error::SendError(order)| order),
            None => Err(order),
        }
    }

    /// A session that took no orders any more takes some again, unless the daemon stops.
    pub(super) fn reopen(&self, session: &str) -> Result<mpsc::Receiver<Order>, Stopping> {
        let mut at_work = self.at_work();
        if let Some(stopping) = at_work.stopping {
            return Err(stopping);
        }
        let (orders, receiver) = mpsc::channel(MOST_ORDERS);
        at_work.sessions.insert(session.to_owned(), orders);
        self.left.notify_waiters();
        Ok(receiver)
    }

    /// Waits until no session is at work.
    pub(super) async fn until_all_left(&self) {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            if self.at_work().sessions.is_empty() {
                return;
            }
            left.await;
        }
    }

    /// Ends what hosts that are gone have left behind, where no walls were around it.
    pub(super) async fn sweep(&self) {
        let hosts = self.paths.hosts();
        match tokio::task::spawn_blocking(move || mark::sweep(&hosts)).await {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(ended, "processes of hosts that are gone were ended"),
            Err(error) => tracing::error!(%error, "nobody looked for what hosts have left behind"),
        }
    }

    /// A run is over: kept, told, and marked as told.
    pub(super) async fn over(&self, mut kept: KeptRun, state: RunState, result: &str) {
        kept.run.state = state;
        kept.run.ended_at.get_or_insert_with(now);
        if let Err(error) = kept::keep(&self.records, &kept).await {
            tracing::error!(?error, run = kept.id().as_str(), "the end of a run could not be kept");
        }
        telling::ended(self, &kept, result);
        kept.end_is_told = true;
        if let Err(error) = kept::keep(&self.records, &kept).await {
            tracing::error!(?error, run = kept.id().as_str(), "the end of a run could not be kept");
        }
    }

    /// Waits for the end of a run.
    pub(super) async fn until_over(&self, run: &RunId) -> RunState {
        let globs =
            telling::ENDS.into_iter().filter_map(|glob| TopicGlob::try_from(glob.to_owned()).ok()).collect();
        let mut ends = self.topics.subscribe(globs, None).ok();
        loop {
            match self.records.look().run(run) {
                Ok(kept) if !kept.run.state.is_over() => {}
                Ok(kept) => return kept.run.state,
                Err(_) => return RunState::Cancelled,
            }
            match &mut ends {
                Some(ends) => {
                    ends.next().await;
                }
                None => return RunState::Cancelled,
            }
        }
    }

    /// The variables that tell an agent where it is, and who judges it.
    pub(super) fn environment(&self, place: &Place, kept: &KeptRun) -> Vec<(OsString, OsString)> {
        let mut variables = bus_notes::environment(place, kept);
        let correlation = kept.correlation_id.as_ref().map_or(kept.id().as_str(), |id| id.as_str());
        let patience = match kept.run.attended {
            Attended::Here => self.answer_here,
            Attended::Later => self.answer_later,
            Attended::Nobody => Duration::ZERO,
        };
        let judged: [(&str, OsString); 4] = [
            ("SWB_CONTROL_SOCKET", self.paths.control_socket().into()),
            ("SWB_SESSION_ID", place.session.clone().into()),
            ("SWB_CORRELATION_ID", correlation.into()),
            ("SWB_ASK_TIMEOUT_MS", patience.as_millis().to_string().into()),
        ];
        variables.extend(judged.map(|(name, value)| (name.into(), value)));
        variables
    }

    /// Tells the message bus of a run.
    pub(super) fn bus_note(&self, place: &Place, kept: &KeptRun, kind: &str) {
        bus_notes::post(place, kept, kind);
    }
}
