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
use tokio::sync::{Semaphore, mpsc};

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
}

#[derive(Debug, Default)]
pub(super) struct AtWork {
    pub(super) sessions: HashMap<String, mpsc::Sender<Order>>,
    pub(super) is_stopping: bool,
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
            let orders = self.session(&session)?;
            match orders.send(order).await {
                Ok(()) => return Ok(()),
                Err(mpsc::error::SendError(back)) => order = back,
            }
        }
        Err(gone())
    }

    /// The line to a session at work; it begins to work if it does not.
    pub(super) fn session(self: &Arc<Self>, session: &SessionId) -> Result<mpsc::Sender<Order>, BusError> {
        let mut at_work = self.at_work();
        if at_work.is_stopping {
            return Err(BusError::new(ERR_SHUTTING_DOWN, "the daemon is stopping"));
        }
        if let Some(orders) = at_work.sessions.get(session.as_str()).filter(|orders| !orders.is_closed()) {
            return Ok(orders.clone());
        }
        let task = self.new_task(session)?;
        let (orders, receiver) = mpsc::channel(MOST_ORDERS);
        at_work.sessions.insert(session.as_str().to_owned(), orders.clone());
        tokio::spawn(SessionTask { orders: receiver, ..task }.run());
        Ok(orders)
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

    /// A session wants to end because nothing is to be done; false if an order has come meanwhile.
    pub(super) fn retire(&self, session: &str, orders: &mpsc::Receiver<Order>) -> bool {
        let mut at_work = self.at_work();
        if !orders.is_empty() {
            return false;
        }
        at_work.sessions.remove(session);
        true
    }

    pub(super) fn forget(&self, session: &str) {
        self.at_work().sessions.remove(session);
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
