//! A session at work: the one task that talks to its agent.
//!
//! It starts the agent when there is something to do, gives it one run after the other, tells what it does, and lets it go
//! when nothing was to be done for a while. Whoever wants something of it sends an order. Invariants: a run is kept as it
//! is before anybody hears of it; every run that was taken comes to one end, whatever becomes of the agent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use swb_proto::agent::Command;
use swb_proto::id::RunId;
use swb_proto::run::{AnswerParams, Attended, Progress, RunState, RunUsage};
use swb_proto::{BusError, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::agent::{BUILTIN, Birth, Place};
use super::current::{Current, Phase, failed};
use super::inbox::{Inbox, Parcel};
use super::kept::{self, KeptRun};
use super::link::{Came, Link};
use super::{House, telling};
use crate::records::now;

/// How long an agent may take to be there.
pub(super) const READY_PATIENCE: Duration = Duration::from_secs(30);

/// How something is said to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It hears it before its next step.
    Steer,
    /// It hears it when it is done.
    FollowUp,
}

/// What is wanted of a session.
#[derive(Debug)]
pub(super) enum Order {
    /// Another run.
    Run(Box<KeptRun>),
    /// The end of a run.
    Cancel { run: RunId, reason: Option<String>, done: oneshot::Sender<()> },
    /// Something for the run under way; no answer if there is none.
    Tell { how: How, text: String, from: String, done: oneshot::Sender<Result<RunId, BusError>> },
    /// A message from the bus for the run under way.
    Give { parcel: Box<Parcel>, done: oneshot::Sender<Result<RunId, BusError>> },
    /// Something about the run under way that its agent did not say.
    Remark(Box<Progress>),
    /// An answer to what the run under way has asked.
    Answer { answer: Box<AnswerParams>, done: oneshot::Sender<Result<RunId, BusError>> },
    /// What the run under way waits for.
    Look { done: oneshot::Sender<Option<Look>> },
    /// The session is over.
    End { done: Option<oneshot::Sender<()>> },
}

/// What the run under way is at.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) run: RunId,
    pub(super) is_starting: bool,
    pub(super) calls: Vec<(String, String, Timestamp)>,
    pub(super) since: Timestamp,
    pub(super) text: String,
    pub(super) usage: RunUsage,
}

/// A session at work.
#[derive(Debug)]
pub(super) struct SessionTask {
    pub(super) house: Arc<House>,
    pub(super) place: Place,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) waiting: VecDeque<KeptRun>,
    pub(super) link: Option<Link>,
    pub(super) current: Option<Current>,
    /// Brings the run under way its mail.
    pub(super) inbox: Option<Inbox>,
    /// What the session had used before the run under way.
    pub(super) before: Option<RunUsage>,
    /// How many processes have served the session.
    pub(super) generation: u32,
}

impl SessionTask {
    /// Works until nothing was to be done for a while.
    pub(super) async fn run(mut self) {
        let slots = Arc::clone(&self.house.slots);
        let mut idle_since = Instant::now();
        // A run that a daemon before us had begun.
        self.open_inbox();
        loop {
            let wants_slot = self.current.is_none() && !self.waiting.is_empty();
            if self.current.is_some() || wants_slot {
                idle_since = Instant::now();
            }
            let until = self.deadline().unwrap_or(idle_since + self.house.idle);
            let hash = |bytes: &[u8]| self.house.recorder.hash_arguments(bytes);
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::End { done }) => {
                        self.end().await;
                        self.house.forget(&self.place.session);
                        if let Some(done) = done { let _ = done.send(()); }
                        return;
                    }
                    Some(order) => self.obey(order).await,
                    // The daemon stops; the agent works on.
                    None => return,
                },
                slot = slot_of(&slots), if wants_slot => self.begin(slot).await,
                came = next_of(&mut self.link, &hash) => self.came(came).await,
                () = sleep_until(until) => {
                    if self.current.is_some() {
                        self.overdue().await;
                    } else if self.house.retire(&self.place.session, &self.orders) {
                        self.let_go().await;
                        return;
                    } else {
                        idle_since = Instant::now();
                    }
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let current = self.current.as_ref()?;
        let far = Instant::now() + Duration::from_secs(3600);
        Some([current.deadline, current.time_is_up].into_iter().flatten().fold(far, Instant::min))
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Run(kept) => self.waiting.push_back(*kept),
            Order::Cancel { run, reason, done } => {
                self.cancel(&run, reason).await;
                let _ = done.send(());
            }
            Order::Tell { how, text, from, done } => {
                let _ = done.send(self.tell(how, text, from).await);
            }
            Order::Give { parcel, done } => {
                let _ = done.send(self.give(*parcel).await);
            }
            Order::Remark(progress) => self.remark(*progress).await,
            Order::Answer { answer, done } => {
                let _ = done.send(self.answer(*answer).await);
            }
            Order::Look { done } => {
                let _ = done.send(self.look());
            }
            Order::End { .. } => {}
        }
    }

    fn look(&self) -> Option<Look> {
        let current = self.current.as_ref()?;
        Some(Look {
            run: current.kept.id().clone(),
            is_starting: current.phase == Phase::Starting,
            calls: current.calls.clone(),
            since: current.since.clone(),
            text: self.link.as_ref().map(|link| link.ear.said().to_owned()).unwrap_or_default(),
            usage: current.kept.run.usage.clone(),
        })
    }

    /// The next run has a slot.
    async fn begin(&mut self, slot: OwnedSemaphorePermit) {
        let Some(kept) = self.waiting.pop_front() else { return };
        self.current = Some(Current::new(kept, slot));
        self.set_out().await;
    }

    /// Sees to it that there is an agent for the run under way.
    pub(super) async fn set_out(&mut self) {
        let Some(current) = &mut self.current else { return };
        current.deadline = Some(Instant::now() + READY_PATIENCE);
        let wanted = (current.kept.run.agent.clone(), current.kept.run.attended);
        if self.link.as_ref().is_some_and(|link| link.started_for.as_ref() != Some(&wanted)) {
            // How long it waits for people, and what it is, it was told when it was started.
            self.let_go().await;
        }
        let Some(current) = &mut self.current else { return };
        if self.link.as_ref().is_some_and(|link| link.model.is_some()) {
            return self.hand_over().await;
        }
        if self.link.is_some() {
            return;
        }
        let kept = &current.kept;
        let birth = Birth {
            place: &self.place,
            agent: &kept.run.agent,
            model: kept.wanted_model.as_deref(),
            profile: kept.profile_id.as_ref().map(|profile| profile.as_str()),
            asks: kept.run.attended == Attended::Here,
            goes_on: kept.run.agent == BUILTIN && self.house.agents.has_history(&self.place.session),
            environment: self.house.environment(&self.place, kept),
        };
        let started = self.house.agents.start(&birth).await;
        let socket = self.house.agents.socket(&self.place.session);
        self.generation += 1;
        match started {
            Ok(()) => match Link::connect(&socket, self.generation, (0, 0)).await {
                Ok(mut link) => {
                    link.started_for = Some(wanted);
                    self.link = Some(link);
                }
                Err(error) => self.finish(Some(failed(error.to_string(), "AGENT_NOT_STARTED"))).await,
            },
            Err(error) => self.finish(Some(failed(error.to_string(), "AGENT_NOT_STARTED"))).await,
        }
    }

    /// The agent is there: it gets its prompt.
    pub(super) async fn hand_over(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        let model = link.model.clone();
        if let Some(wanted) =
            current.kept.wanted_model.clone().filter(|wanted| model.as_ref() != Some(wanted))
        {
            let word = Command::SetModel { id: current.next_id("model"), model: wanted.clone() };
            if link.say(&word).await.is_ok() {
                link.model = Some(wanted);
            }
        }
        let first_time = current.kept.run.started_at.is_none();
        let message = if first_time { current.kept.prompt.clone() } else { go_on(&current.kept.prompt) };
        let prompt = prompt(&current.kept, message);
        let place = link.place();
        link.settle(place).await;
        let kept = &mut current.kept;
        kept.from = place;
        kept.run.state = RunState::Running;
        kept.run.model.clone_from(&link.model);
        kept.run.containment = Some(link.containment.clone());
        kept.run.started_at.get_or_insert_with(now);
        kept.host = link.generation;
        kept.write = link.number_of(&prompt).unwrap_or(0);
        let recorded = kept::keep(&self.house.records, kept).await;
        if let Err(error) = recorded {
            return self.finish(Some(error)).await;
        }
        if first_time {
            self.house.bus_note(&self.place, &current.kept, "RUN_START");
            let hash = self.house.recorder.hash_arguments(current.kept.prompt.as_bytes());
            telling::started(&self.house, &current.kept, hash);
        }
        current.phase = Phase::Working;
        current.deadline = None;
        current.since = now();
        current.open.insert(current.kept.id().as_str().to_owned());
        if let Err(error) = link.say(&prompt).await {
            tracing::warn!(%error, "a prompt could not be written");
        }
        self.house.hand_over_mail(link, current).await;
        self.open_inbox();
        let Some(current) = &self.current else { return };
        if current.stopping.is_some() {
            self.stop_agent().await;
        }
    }
}

pub(super) async fn slot_of(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match Arc::clone(slots).acquire_owned().await {
        Ok(slot) => slot,
        // It is never closed.
        Err(_) => std::future::pending().await,
    }
}

async fn next_of(link: &mut Option<Link>, hash: &(dyn Fn(&[u8]) -> String + Sync)) -> Came {
    match link {
        Some(link) => link.next(hash).await,
        None => std::future::pending().await,
    }
}

pub(super) fn prompt(kept: &KeptRun, message: String) -> Command {
    Command::Prompt { id: kept.id().as_str().to_owned(), message, attachments: Vec::new() }
}

/// What an agent is told whose process has ended in the middle of its work.
pub(super) fn go_on(prompt: &str) -> String {
    format!(
        "Your process ended unexpectedly and was started again; what was under way then did not come to an end. \
         Look at how things stand and go on. The task was:\n\n{prompt}"
    )
}
