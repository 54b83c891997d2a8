//! Runs: agents at work under the daemon.
//!
//! ```text
//! agent.run ─► Runs ─ order ─► SessionTask ─ link ─► host ─► agent
//!                                  │  ▲                │
//!                        telling ◄─┘  └── hearing ◄────┘ lines of its output
//! ```
//!
//! * `taking`, `viewing` – what is asked about runs from outside. `house` – which sessions are at work.
//! * `session` – the one task that talks to the agent of a session: `listening` to it, `saying` things to it, `ending` its
//!   runs; `current` – the run under way there.
//! * `order` – what is wanted of it; `starting` – how a run gets its agent.
//! * `agent` – which agent, and what its process is started with. `link` – the line to it, through its host.
//! * `output`, `hearing` – its output, as lines and as words. `telling` – the events of runs.
//! * `kept` – what is kept of a run. `recovery` – how a daemon takes over the runs of the one before it.
//! * `bus_notes` – what the message bus hears of a run. `inbox` – what a run hears of the message bus.
//!
//! Invariants: a run is kept before anybody hears of it; every piece of progress is in the session's transcript, with the
//! place of the agent's output that it was made from, before anybody sees it; every run has one end. A daemon that dies
//! ends no run: agents are children of hosts. Proof: tests beside the code; `swb-cli/tests/runs/` with the real binary.

mod agent;
mod bus_notes;
mod current;
mod ending;
mod hearing;
mod house;
mod inbox;
mod kept;
mod link;
mod listening;
mod order;
mod output;
mod recovery;
mod saying;
mod session;
mod starting;
mod taking;
mod telling;
mod viewing;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swb_bus::CallContext;
use swb_bus::topics::Topics;
use swb_journal::transcript::Transcripts;
use swb_proto::error::{ERR_INTERNAL, ERR_INVALID_REQUEST};
use swb_proto::id::{RunId, SessionId};
use swb_proto::run::{AnswerParams, RunParams, RunState, TakenStatus, ToldStatus};
use swb_proto::{BusError, TopicGlob};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::approvals::Approvals;
use crate::config::Config;
use crate::gate::HouseGate;
use crate::paths::Paths;
use crate::record::Recorder;
use crate::records::Records;
use crate::telemetry::RunCounts;

pub(crate) use inbox::Office;
pub(crate) use kept::KeptRun;
pub(crate) use order::How;
pub(crate) use telling::PROGRESS;

use agent::Agents;
use house::{House, Stopping};
use order::Order;
use taking::check_prompt;

/// How long all agents together may take to end: longer than each of them may.
const ALL_GONE: Duration = Duration::from_secs(20);
/// Orders that may wait for one session.
const MOST_ORDERS: usize = 256;

/// The runs of a daemon.
#[derive(Debug, Clone)]
pub(crate) struct Runs(Arc<House>);

/// What runs are built from.
pub(crate) struct RunsParts {
    pub(crate) records: Arc<Records>,
    pub(crate) topics: Arc<Topics>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) transcripts: Arc<Transcripts>,
    pub(crate) gate: Arc<HouseGate>,
    pub(crate) office: Arc<Office>,
    pub(crate) paths: Paths,
    pub(crate) config: Config,
}

impl Runs {
    pub(crate) fn new(parts: RunsParts) -> Self {
        let RunsParts { records, topics, recorder, approvals, transcripts, gate, office, paths, config } =
            parts;
        Runs(Arc::new(House {
            records,
            topics,
            recorder,
            approvals,
            transcripts,
            gate,
            office,
            in_a_row: config.runs.messages_in_a_row,
            message_root: paths.message_root(&config),
            slots: Arc::new(Semaphore::new(config.runs.slots)),
            counts: RunCounts::default(),
            idle: Duration::from_secs(config.runs.idle_s),
            answer_here: Duration::from_secs(config.runs.answer_here_s),
            answer_later: Duration::from_secs(config.runs.answer_later_s),
            agents: Agents::new(paths.clone(), config),
            paths,
            at_work: Mutex::default(),
            left: Notify::new(),
        }))
    }

    /// Ends the agents of sessions that end.
    pub(crate) fn watch_sessions(&self) {
        let glob = TopicGlob::try_from("session.terminated".to_owned());
        let Some(Ok(mut ended)) = glob.ok().map(|glob| self.0.topics.subscribe(vec![glob], None)) else {
            return;
        };
        let house = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Some(delivery) = ended.next().await {
                let envelope = delivery.to_envelope(house.topics.now());
                let Some(session) = envelope.session_id else { continue };
                let _ = house.order(session.as_str(), Order::End).await;
                house.forget_mail(session.as_str()).await;
            }
        });
    }

    /// `agent.cancel`. Returns when the run is over.
    pub(crate) async fn cancel(&self, run: &RunId, reason: Option<String>) -> Result<RunState, BusError> {
        let kept = self.0.records.look().run(run)?.clone();
        if kept.run.state.is_over() {
            return Ok(kept.run.state);
        }
        let (done, done_rx) = oneshot::channel();
        let order = Order::Cancel { run: run.clone(), reason, done };
        self.0.order(kept.run.session_id.as_str(), order).await.map_err(|_| gone())?;
        done_rx.await.map_err(|_| gone())?;
        Ok(self.0.until_over(run).await)
    }

    /// `agent.steer` and `agent.follow_up`: the run it went to.
    pub(crate) async fn tell(
        &self,
        ctx: CallContext,
        session: &SessionId,
        how: How,
        text: String,
    ) -> Result<(RunId, ToldStatus), BusError> {
        check_prompt(&text)?;
        let actor = ctx.caller().actor().clone();
        let from = actor.id.as_str().to_owned();
        let (done, done_rx) = oneshot::channel();
        let order = Order::Tell { how, text: text.clone(), from, done };
        let told = match self.0.order(session.as_str(), order).await {
            Ok(()) => done_rx.await.map_err(|_| gone())?,
            Err(_) => Err(nothing_under_way()),
        };
        match (told, how) {
            (Ok(run), _) => {
                self.0.heard_from(&actor, session).await;
                Ok((run, ToldStatus::Delivered))
            }
            (Err(error), How::Steer) => Err(error),
            (Err(_), How::FollowUp) => {
                let last = self.0.records.look().runs_of(session).next_back().cloned();
                let params = RunParams {
                    session_id: Some(session.clone()),
                    prompt: text,
                    agent: last.as_ref().map(|last| last.run.agent.clone()),
                    attended: last.as_ref().map(|last| last.run.attended).unwrap_or_default(),
                    ..RunParams::default()
                };
                let taken = self.start(ctx, params).await?;
                let status = match taken.status {
                    TakenStatus::Started => ToldStatus::Started,
                    TakenStatus::Queued => ToldStatus::Queued,
                };
                Ok((taken.run_id, status))
            }
        }
    }

    /// `agent.answer`: the run that got it.
    pub(crate) async fn answer(
        &self,
        ctx: &CallContext,
        session: &SessionId,
        answer: AnswerParams,
    ) -> Result<RunId, BusError> {
        let (done, done_rx) = oneshot::channel();
        let order = Order::Answer { answer: Box::new(answer), done };
        self.0.order(session.as_str(), order).await.map_err(|_| nothing_under_way())?;
        let run = done_rx.await.map_err(|_| gone())??;
        self.0.heard_from(ctx.caller().actor(), session).await;
        Ok(run)
    }

    /// Ends all agents: nothing works on. Returns when they are gone, also those that were being let go already.
    pub(crate) async fn end_all(&self) {
        let sessions: Vec<mpsc::Sender<Order>> = {
            let mut at_work = self.0.at_work();
            at_work.stopping = Some(Stopping::Ending);
            at_work.sessions.values().cloned().collect()
        };
        for orders in sessions {
            // One that takes no orders any more is ending.
            let _ = orders.send(Order::End).await;
        }
        if timeout(ALL_GONE, self.0.until_all_left()).await.is_err() {
            tracing::error!("agents did not end in time");
        }
    }

    /// Lets go of all agents: they work on, and the next daemon finds them.
    pub(crate) fn let_go(&self) {
        let mut at_work = self.0.at_work();
        at_work.stopping = Some(Stopping::LettingGo);
        at_work.sessions.clear();
    }
}

fn nothing_under_way() -> BusError {
    BusError::new(ERR_INVALID_REQUEST, "no run is under way in this session; agent.follow_up begins one")
        .because("NOTHING_UNDER_WAY")
}

fn gone() -> BusError {
    BusError::new(ERR_INTERNAL, "the session has ended meanwhile").because("SESSION_ENDED")
}
