//! A session at work: the one task that talks to its agent.
//!
//! It starts the agent when there is something to do, gives it one run after the other, tells what it does, and lets it go
//! when nothing was to be done for a while. Whoever wants something of it sends an order. Invariants: a run is kept as it
//! is before anybody hears of it; every run that was taken comes to one end, whatever becomes of the agent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use swb_host::wire::Exit;
use swb_proto::agent::{AddedCommand, Command};
use swb_proto::error::ERR_INVALID_REQUEST;
use swb_proto::id::RunId;
use swb_proto::run::{AnswerParams, Attended, Progress, RunState, RunUsage, Source, ToolStatus};
use swb_proto::{BusError, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::agent::{BUILTIN, Birth, Place};
use super::current::{CANCEL_PATIENCE, Current, Phase, cancelled, failed, over_budget};
use super::hearing::{Answer, Heard};
use super::kept::{self, KeptRun};
use super::link::{Came, Link};
use super::{House, telling};
use crate::records::now;

/// How long an agent may take to be there.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How long an agent may take to say what it has used.
const CLOSING_PATIENCE: Duration = Duration::from_secs(1);
/// How long an agent may take to end by itself.
const GOODBYE: Duration = Duration::from_secs(3);
const KILL: u8 = 9;
/// How often an agent that ends in the middle of a run is started again.
const RESTARTS: u32 = 1;

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
    async fn set_out(&mut self) {
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
    async fn hand_over(&mut self) {
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
            telling::started(&self.house.topics, &current.kept, hash);
        }
        current.phase = Phase::Working;
        current.deadline = None;
        current.since = now();
        current.open.insert(current.kept.id().as_str().to_owned());
        if let Err(error) = link.say(&prompt).await {
            tracing::warn!(%error, "a prompt could not be written");
        }
        if current.stopping.is_some() {
            self.stop_agent().await;
        }
    }

    async fn came(&mut self, came: Came) {
        match came {
            Came::Heard(heard) => {
                for heard in heard {
                    self.heard(heard).await;
                }
            }
            Came::Complained { upto } => {
                if let Some(link) = &mut self.link {
                    link.noted(upto).await;
                }
            }
            Came::Exited(exit) => self.exited(Some(exit)).await,
            Came::Lost => self.exited(None).await,
            Came::Nothing => {}
        }
    }

    async fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Progress(progress) => self.progress(progress).await,
            Heard::Ready { model } => {
                if let Some(link) = &mut self.link {
                    link.model = Some(model);
                }
                if self.current.as_ref().is_some_and(|current| current.phase == Phase::Starting) {
                    self.hand_over().await;
                }
            }
            Heard::Answered { id, body } => self.answered(&id, body).await,
            Heard::Refused { id, message } => {
                let error = Some(message);
                match id {
                    Some(id) => self.answered(&id, Answer { error, ..Answer::default() }).await,
                    None => tracing::debug!(error, "an agent complains"),
                }
            }
            Heard::Turn(usage) => {
                if let Some(current) = &mut self.current {
                    current.kept.run.usage.turns += 1;
                    let mut used = std::mem::take(&mut current.kept.run.usage);
                    if used.input_tokens == 0 && used.output_tokens == 0 {
                        kept::add(&mut used, &usage);
                    }
                    current.kept.run.usage = used;
                }
            }
            Heard::Below(usage) => {
                if let Some(current) = &mut self.current {
                    kept::add(&mut current.below, &usage);
                }
            }
            Heard::Place { end, at_rest } => {
                if at_rest && let Some(link) = &mut self.link {
                    link.settle(end).await;
                }
            }
        }
    }

    async fn progress(&mut self, progress: Progress) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        let answers = note_calls(current, &progress);
        if answers {
            current.kept.run.usage.turns += 1;
        }
        link.nth += 1;
        if link.told > 0 {
            // A daemon before us has told it.
            link.told -= 1;
            return;
        }
        current.step += 1;
        let source = Source { host: link.generation, offset: link.rest, nth: link.nth };
        let House { topics, .. } = &*self.house;
        if let Progress::Mcp { call } = &progress {
            telling::mcp_call(topics, &current.kept, &current.agent, call);
        }
        telling::progress(topics, &current.kept, &current.agent, current.step, Some(source), progress);
        if answers {
            // Its model is asked next: time to look at what was used so far.
            let word = Command::GetSessionStats { id: current.next_id("used") };
            let _ = link.say(&word).await;
        }
    }

    async fn answered(&mut self, id: &str, answer: Answer) {
        let Some(current) = &mut self.current else { return };
        if let Some((totals, cost)) = &answer.totals {
            if !id.starts_with(current.kept.id().as_str()) {
                return;
            }
            current.used(self.before.as_ref(), totals, *cost);
            let mut total = RunUsage { cost_usd: *cost, ..RunUsage::default() };
            kept::add(&mut total, totals);
            current.kept.session_total = Some(total);
            let usage = current.kept.run.usage.clone();
            if current.phase == Phase::Closing {
                return self.finish(None).await;
            }
            if let Some(excess) = current.excess() {
                self.stop(excess, true).await;
            } else {
                self.remark(Progress::Usage { usage }).await;
            }
            return;
        }
        if let Some(is_busy) = answer.is_busy {
            if !is_busy && current.open.is_empty() {
                current.is_recovered = false;
                self.close().await;
            }
            return;
        }
        // Of what was said under a daemon before us only the ids tell whose it is.
        let is_ours = current.is_recovered && id.starts_with(current.kept.id().as_str());
        if !(current.open.remove(id) || is_ours) {
            return;
        }
        let is_prompt = id == current.kept.id().as_str();
        current.cancelled |= answer.cancelled;
        if let Some(error) = answer.error.filter(|_| is_prompt) {
            current.error = Some(failed(error, "AGENT_FAILED"));
        }
        if current.open.is_empty() {
            self.close().await;
        }
    }

    /// The agent is done: what has it used?
    async fn close(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        if current.is_recovered {
            let word = Command::GetState { id: current.next_id("state") };
            let _ = link.say(&word).await;
            return;
        }
        current.phase = Phase::Closing;
        current.deadline = Some(Instant::now() + CLOSING_PATIENCE);
        let word = Command::GetSessionStats { id: current.next_id("used") };
        if link.say(&word).await.is_err() {
            self.finish(None).await;
        }
    }

    /// Says something about the run that its agent did not say.
    async fn remark(&mut self, progress: Progress) {
        let Some(current) = &mut self.current else { return };
        if self.link.as_ref().is_some_and(|link| link.told > 0) {
            return;
        }
        current.step += 1;
        telling::progress(&self.house.topics, &current.kept, &current.agent, current.step, None, progress);
    }

    async fn tell(&mut self, how: How, text: String, from: String) -> Result<RunId, BusError> {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return Err(at_rest()) };
        if current.phase == Phase::Starting || current.stopping.is_some() {
            return Err(at_rest());
        }
        let id = current.next_id("said");
        let message = text.clone();
        let said = match how {
            How::Steer => link.say(&AddedCommand::Steer { id: id.clone(), message }).await,
            How::FollowUp => link.say(&Command::FollowUp { id: id.clone(), message }).await,
        };
        said.map_err(|error| failed(error.to_string(), "AGENT_GONE"))?;
        current.phase = Phase::Working;
        current.deadline = None;
        current.open.insert(id);
        let run = current.kept.id().clone();
        let how = if how == How::Steer { "steer" } else { "follow_up" }.to_owned();
        let text = swb_rules::redact::redact(&text).text;
        self.remark(Progress::Input { text, how, from }).await;
        Ok(run)
    }

    async fn answer(&mut self, answer: AnswerParams) -> Result<RunId, BusError> {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return Err(at_rest()) };
        let AnswerParams { ask_id, option, text, declined, .. } = answer;
        let id = current.next_id("answer");
        let word = AddedCommand::Answer { id, ask_id, option, text, declined };
        link.say(&word).await.map_err(|error| failed(error.to_string(), "AGENT_GONE"))?;
        Ok(current.kept.id().clone())
    }

    async fn cancel(&mut self, run: &RunId, reason: Option<String>) {
        if let Some(at) = self.waiting.iter().position(|kept| kept.id() == run) {
            if let Some(mut kept) = self.waiting.remove(at) {
                kept.run.error = Some(cancelled(reason).into());
                self.house.over(kept, RunState::Cancelled, "").await;
            }
            return;
        }
        if self.current.as_ref().is_some_and(|current| current.kept.id() == run) {
            self.stop(cancelled(reason), false).await;
        }
    }

    /// Ends the run under way, with a reason. The agent is asked first.
    async fn stop(&mut self, error: BusError, is_failure: bool) {
        let Some(current) = &mut self.current else { return };
        if current.stopping.is_some() {
            return;
        }
        current.stopping = Some((error, is_failure));
        if current.phase == Phase::Starting {
            self.kill().await;
        } else {
            self.stop_agent().await;
        }
    }

    async fn stop_agent(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        current.deadline = Some(Instant::now() + CANCEL_PATIENCE);
        // First what waits, so that it does not begin when what is under way ends.
        let id = current.next_id("clear");
        let _ = link.say(&AddedCommand::ClearQueue { id }).await;
        let id = current.next_id("abort");
        let _ = link.say(&Command::Abort { id }).await;
    }

    /// Patience is at an end.
    async fn overdue(&mut self) {
        let Some(current) = &mut self.current else { return };
        let at = Instant::now();
        if current.time_is_up.is_some_and(|up| up <= at) {
            current.time_is_up = None;
            let limit = current.kept.run.budget.wall_ms.unwrap_or_default();
            return self.stop(over_budget(format!("its {limit} ms are over")), true).await;
        }
        if current.deadline.is_none_or(|deadline| deadline > at) {
            return;
        }
        match current.phase {
            Phase::Closing => self.finish(None).await,
            Phase::Working => self.kill().await,
            Phase::Starting => {
                let message =
                    format!("the agent did not get ready within {} seconds", READY_PATIENCE.as_secs());
                current.stopping.get_or_insert((failed(message, "AGENT_NOT_READY"), true));
                self.kill().await;
            }
        }
    }

    /// Ends the agent with everything it has started. Its end comes along the line.
    async fn kill(&mut self) {
        if let Some(current) = &mut self.current {
            current.deadline = Some(Instant::now() + CANCEL_PATIENCE);
        }
        match &mut self.link {
            Some(link) => link.signal(KILL).await,
            None => self.finish(None).await,
        }
    }

    /// The agent is gone, or its host is.
    async fn exited(&mut self, exit: Option<Exit>) {
        let Some(link) = self.link.take() else { return };
        let complaints = link.complaints();
        if exit.is_some() {
            link.release().await;
        }
        let Some(current) = &mut self.current else { return };
        if current.phase == Phase::Closing || current.stopping.is_some() {
            return self.finish(None).await;
        }
        let how = match exit {
            None => "its host ended".to_owned(),
            Some(Exit::Code(code)) => format!("it ended with code {code}"),
            Some(Exit::Signal(signal)) => format!("signal {signal} ended it"),
        };
        let words = last_line(&complaints).map(|line| format!(": {line}")).unwrap_or_default();
        let is_working = current.phase == Phase::Working;
        if exit.is_some()
            && is_working
            && current.kept.restarts < RESTARTS
            && current.kept.run.agent == BUILTIN
        {
            current.kept.restarts += 1;
            current.phase = Phase::Starting;
            current.open.clear();
            current.calls.clear();
            let message = format!("{how}; it is started again and goes on from its history");
            self.remark(Progress::Notice { name: "restarted".to_owned(), message }).await;
            return self.set_out().await;
        }
        let reason = if is_working { "AGENT_CRASHED" } else { "AGENT_NOT_READY" };
        self.finish(Some(failed(format!("the agent is gone: {how}{words}"), reason))).await;
    }

    /// The run under way is over.
    async fn finish(&mut self, error: Option<BusError>) {
        let Some(current) = self.current.take() else { return };
        let result = self.link.as_ref().map(|link| link.ear.said().to_owned()).unwrap_or_default();
        let mut kept = current.kept;
        let (stopped, stop_is_failure) = current.stopping.map_or((None, false), |(why, is)| (Some(why), is));
        let was_cancelled =
            (stopped.is_some() && !stop_is_failure) || (current.cancelled && stopped.is_none());
        let error = stopped.or(error).or(current.error).or_else(|| was_cancelled.then(|| cancelled(None)));
        let state = kept::end_state(was_cancelled, error.is_some());
        kept.run.error = error.map(Into::into);
        self.before.clone_from(&kept.session_total);
        if let Some(link) = &mut self.link {
            link.ear.clear();
            link.told = 0;
        }
        let kind = if state == RunState::Failed { "RUN_CRASH" } else { "RUN_STOP" };
        if kept.run.started_at.is_some() {
            self.house.bus_note(&self.place, &kept, kind);
        }
        self.house.over(kept, state, &result).await;
    }

    /// Lets the agent at rest go.
    async fn let_go(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        let hash = |_: &[u8]| String::new();
        let _ = link.say(&Command::Shutdown).await;
        let gone = async {
            loop {
                match link.next(&hash).await {
                    Came::Exited(_) | Came::Lost => return,
                    _ => {}
                }
            }
        };
        if tokio::time::timeout(GOODBYE, gone).await.is_err() {
            link.signal(KILL).await;
        }
        let _ = tokio::time::timeout(GOODBYE, link.release()).await;
    }

    /// The session is over: so is everything in it.
    async fn end(&mut self) {
        self.orders.close();
        let why = || cancelled(Some("its session has ended".to_owned()));
        for mut kept in std::mem::take(&mut self.waiting) {
            kept.run.error = Some(why().into());
            self.house.over(kept, RunState::Cancelled, "").await;
        }
        if let Some(current) = &mut self.current {
            current.stopping = Some((why(), false));
        }
        self.let_go().await;
        self.finish(None).await;
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

/// Keeps account of calls; true if the last one that was open is over.
fn note_calls(current: &mut Current, progress: &Progress) -> bool {
    let Progress::Tool { tool } = progress else { return false };
    match tool.status {
        ToolStatus::Started => current.calls.push((tool.call_id.clone(), tool.name.clone(), now())),
        ToolStatus::Done => {
            current.calls.retain(|(id, ..)| *id != tool.call_id);
            return current.calls.is_empty();
        }
        _ => {}
    }
    false
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

fn at_rest() -> BusError {
    BusError::new(ERR_INVALID_REQUEST, "no run is under way in this session; agent.follow_up begins one")
        .because("NOTHING_UNDER_WAY")
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(swb_rules::redact::without_paths(&swb_rules::redact::redact(line.trim()).text).into_owned())
}
