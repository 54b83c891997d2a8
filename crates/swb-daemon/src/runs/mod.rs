//! Runs: agents at work under the daemon.
//!
//! ```text
//! agent.run ─► Runs ─ order ─► SessionTask ─ link ─► host ─► agent
//!                                  │  ▲                │
//!                        telling ◄─┘  └── hearing ◄────┘ lines of its output
//! ```
//!
//! * `session` – the one task that talks to the agent of a session; `current` – the run under way there.
//! * `agent` – which agent, and what its process is started with. `link` – the line to it, through its host.
//! * `output`, `hearing` – its output, as lines and as words. `telling` – the events of runs.
//! * `kept` – what is kept of a run. `recovery` – how a daemon takes over the runs of the one before it.
//! * `bus_notes` – what the message bus hears of a run.
//!
//! Invariants: a run is kept before anybody hears of it; every piece of progress is in the session's transcript, with the
//! place of the agent's output that it was made from, before anybody sees it; every run has one end. A daemon that dies
//! ends no run: agents are children of hosts. Proof: tests beside the code; `swb-cli/tests/runs/` with the real binary.

mod agent;
mod bus_notes;
mod current;
mod hearing;
mod kept;
mod link;
mod output;
mod recovery;
mod session;
mod telling;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swb_bus::topics::Topics;
use swb_bus::{CallContext, CallError};
use swb_journal::transcript::Transcripts;
use swb_proto::error::{
    ERR_INTERNAL, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_SHUTTING_DOWN, ERR_UNAUTHORIZED,
};
use swb_proto::id::{RunId, SessionId};
use swb_proto::run::{
    AnswerParams, Attended, Budget, Run, RunParams, RunState, RunTaken, RunUsage, RunView, TakenStatus,
    ToldStatus, Wait, Waits,
};
use swb_proto::session::{CreateSessionParams, SessionMode};
use swb_proto::{BusError, TopicGlob};
use swb_rules::lifecycle;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::approvals::Approvals;
use crate::config::Config;
use crate::paths::Paths;
use crate::record::Recorder;
use crate::records::{Estate, Records, now};

pub(crate) use kept::KeptRun;
pub(crate) use session::How;
pub(crate) use telling::PROGRESS;

use agent::{Agents, BUILTIN, Place};
use session::{Order, SessionTask};

/// Orders that may wait for one session.
const MOST_ORDERS: usize = 256;
/// Runs that may wait in one session.
const MOST_WAITING: usize = 100;
/// The longest prompt, in bytes: it goes to the agent as one frame.
const LONGEST_PROMPT: usize = 768 * 1024;
/// How much of a prompt is its title.
const TITLE: usize = 120;

/// What all sessions at work share.
#[derive(Debug)]
struct House {
    records: Arc<Records>,
    topics: Arc<Topics>,
    recorder: Arc<Recorder>,
    approvals: Arc<Approvals>,
    transcripts: Arc<Transcripts>,
    agents: Agents,
    paths: Paths,
    message_root: PathBuf,
    slots: Arc<Semaphore>,
    idle: Duration,
    at_work: Mutex<AtWork>,
}

#[derive(Debug, Default)]
struct AtWork {
    sessions: HashMap<String, mpsc::Sender<Order>>,
    is_stopping: bool,
}

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
    pub(crate) paths: Paths,
    pub(crate) config: Config,
}

impl Runs {
    pub(crate) fn new(parts: RunsParts) -> Self {
        let RunsParts { records, topics, recorder, approvals, transcripts, paths, config } = parts;
        Runs(Arc::new(House {
            records,
            topics,
            recorder,
            approvals,
            transcripts,
            message_root: paths.message_root(&config),
            slots: Arc::new(Semaphore::new(config.runs.slots)),
            idle: Duration::from_secs(config.runs.idle_s),
            agents: Agents::new(paths.clone(), config),
            paths,
            at_work: Mutex::default(),
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
                let _ = house.order(session.as_str(), Order::End { done: None }).await;
            }
        });
    }

    /// `agent.run`.
    pub(crate) async fn start(&self, ctx: CallContext, params: RunParams) -> Result<RunTaken, BusError> {
        check_prompt(&params.prompt)?;
        let agent = params.agent.clone().unwrap_or_else(|| BUILTIN.to_owned());
        if !self.0.agents.knows(&agent) {
            let message = agent::BirthError::Unknown(agent).to_string();
            return Err(BusError::new(ERR_INVALID_PARAMS, message).because("AGENT_NOT_FOUND"));
        }
        let session = self.session_for(&ctx, &params).await?;
        self.may_drive(&ctx, &session)?;
        let house = Arc::clone(&self.0);
        let run_id = RunId::from_ulid(house.records.unique());
        let caller = ctx.caller();
        let (actor, correlation_id) = (caller.actor().clone(), caller.correlation().cloned());
        let after = house.topics.head();
        let wall_ms = params.budget.as_ref().and_then(|budget| budget.wall_ms).or(params.timeout_ms);
        let kept = house
            .records
            .change(move |estate| {
                let (session, project) = place_of(estate, &session)?;
                let run = Run {
                    run_id,
                    session_id: session.session_id.clone(),
                    workspace_id: session.workspace_id.clone(),
                    project_id: project.project_id.clone(),
                    parent_run_id: params.parent_run_id,
                    agent,
                    model: None,
                    state: RunState::Queued,
                    title: title(&params.prompt),
                    attended: params.attended,
                    budget: Budget { wall_ms, ..params.budget.unwrap_or_default() },
                    usage: RunUsage::default(),
                    containment: None,
                    created_at: now(),
                    started_at: None,
                    ended_at: None,
                    error: None,
                };
                let waiting = estate.runs_of(&session.session_id).filter(|kept| kept::is_live(kept)).count();
                if waiting >= MOST_WAITING {
                    let message = format!("{waiting} runs wait in this session already");
                    return Err(BusError::new(ERR_INVALID_REQUEST, message).because("QUEUE_FULL"));
                }
                let kept = KeptRun {
                    profile_id: params.profile_id.or_else(|| session.profile_id.clone()),
                    run,
                    prompt: params.prompt,
                    actor,
                    correlation_id,
                    wanted_model: params.model,
                    after,
                    host: 0,
                    from: 0,
                    write: 0,
                    restarts: 0,
                    end_is_told: false,
                    session_total: None,
                };
                estate.runs.put(kept.clone()).map_err(crate::records::not_kept)?;
                Ok((kept, waiting))
            })
            .await;
        let (kept, waiting) = kept?;
        let waits = waiting > 0 || house.slots.available_permits() == 0;
        let taken = RunTaken {
            run_id: kept.id().clone(),
            session_id: kept.run.session_id.clone(),
            status: if waits { TakenStatus::Queued } else { TakenStatus::Started },
            after,
        };
        if waits {
            telling::queued(&house.topics, &kept);
        }
        house.take(kept).await?;
        Ok(taken)
    }

    /// An agent has only those at its command that it has started: others may be allowed more than it is.
    pub(crate) fn may_drive(&self, ctx: &CallContext, session: &SessionId) -> Result<(), BusError> {
        let actor = ctx.caller().actor();
        let estate = self.0.records.look();
        let is_below = || {
            estate.above(session.as_str()).iter().any(|above| above.session_id.as_str() == actor.id.as_str())
        };
        if actor.kind.as_str() != "agent" || is_below() {
            return Ok(());
        }
        let message = format!("{session} was not started by this agent");
        Err(BusError::new(ERR_UNAUTHORIZED, message).because("NOT_BELOW"))
    }

    /// The session a run is to work in; a new one if none is named.
    async fn session_for(&self, ctx: &CallContext, params: &RunParams) -> Result<SessionId, BusError> {
        if let Some(named) = &params.session_id {
            return Ok(named.clone());
        }
        let Some(project_id) = params.project_id.clone() else {
            // An agent's own session is the context of whatever it does; its runs are others.
            return ctx.caller().meta().session_id.clone().ok_or_else(|| {
                let message = "where? session_id names a session, project_id a project for a new one";
                BusError::new(ERR_INVALID_PARAMS, message)
            });
        };
        let wish = CreateSessionParams {
            project_id,
            profile_id: params.profile_id.clone(),
            mode: SessionMode::Agent,
            rules: None,
        };
        let created = ctx.bus().call::<swb_proto::session::Create>(wish).await.map_err(call_error)?;
        Ok(created.session_id)
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
        let from = ctx.caller().actor().id.as_str().to_owned();
        let (done, done_rx) = oneshot::channel();
        let order = Order::Tell { how, text: text.clone(), from, done };
        let told = match self.0.order(session.as_str(), order).await {
            Ok(()) => done_rx.await.map_err(|_| gone())?,
            Err(_) => Err(nothing_under_way()),
        };
        match (told, how) {
            (Ok(run), _) => Ok((run, ToldStatus::Delivered)),
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
    pub(crate) async fn answer(&self, session: &SessionId, answer: AnswerParams) -> Result<RunId, BusError> {
        let (done, done_rx) = oneshot::channel();
        let order = Order::Answer { answer: Box::new(answer), done };
        self.0.order(session.as_str(), order).await.map_err(|_| nothing_under_way())?;
        done_rx.await.map_err(|_| gone())?
    }

    /// The run that is meant: by its id, or the one under way in a session, or the last one there.
    pub(crate) fn which(
        &self,
        run: Option<&RunId>,
        session: Option<&SessionId>,
    ) -> Result<KeptRun, BusError> {
        let estate = self.0.records.look();
        if let Some(run) = run {
            return estate.run(run).cloned();
        }
        let Some(session) = session else {
            return Err(BusError::new(ERR_INVALID_PARAMS, "which run? run_id or session_id names it"));
        };
        let session = &estate.session(session)?.session_id;
        let live = estate.runs_of(session).find(|kept| kept::is_live(kept)).cloned();
        live.or_else(|| estate.runs_of(session).next_back().cloned()).ok_or_else(|| {
            BusError::new(ERR_INVALID_PARAMS, format!("nothing has run in {session} yet"))
                .because("RUN_NOT_FOUND")
        })
    }

    /// `agent.get`: a run and what it waits for.
    pub(crate) async fn view(&self, kept: KeptRun) -> RunView {
        let mut view = RunView { run: kept.run, waits: Vec::new(), text: String::new() };
        let session = view.run.session_id.clone();
        let (done, looked) = oneshot::channel();
        if view.run.state.is_over() || self.0.order(session.as_str(), Order::Look { done }).await.is_err() {
            return view;
        }
        let Ok(look) = looked.await else { return view };
        match look {
            Some(look) if look.run == view.run.run_id => {
                (view.text, view.run.usage) = (look.text, look.usage);
                if look.is_starting || look.calls.is_empty() {
                    view.waits.push(Wait { what: Waits::Model, since: look.since });
                }
                for (call_id, name, since) in look.calls {
                    view.waits.push(Wait { what: Waits::Tool { name, call_id }, since });
                }
                let of_session = |approval: &swb_rules::approval::Approval| {
                    approval.request.session_id.as_deref() == Some(session.as_str())
                        && approval.outcome.is_none()
                };
                for approval in self.0.approvals.list(of_session) {
                    view.waits.extend(wait_for_approval(&approval));
                }
            }
            Some(look) => {
                let since = view.run.created_at.clone();
                view.waits.push(Wait { what: Waits::Run { run_id: look.run }, since });
            }
            None => {
                let estate = self.0.records.look();
                let queued =
                    |kept: &&KeptRun| kept.run.state == RunState::Queued && kept.run.run_id < view.run.run_id;
                let behind = estate.runs.iter().filter(queued).count() as u64;
                let since = view.run.created_at.clone();
                view.waits.push(Wait { what: Waits::Slot { behind }, since });
            }
        }
        view
    }

    /// All runs that fit.
    pub(crate) fn list(&self, wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
        let estate = self.0.records.look();
        estate.runs.iter().map(|kept| &kept.run).filter(|run| wanted(run)).cloned().collect()
    }

    /// Ends all agents: nothing works on.
    pub(crate) async fn end_all(&self) {
        let sessions: Vec<mpsc::Sender<Order>> = {
            let mut at_work = self.0.at_work();
            at_work.is_stopping = true;
            at_work.sessions.drain().map(|(_, orders)| orders).collect()
        };
        let mut ends = Vec::new();
        for orders in sessions {
            let (done, done_rx) = oneshot::channel();
            if orders.send(Order::End { done: Some(done) }).await.is_ok() {
                ends.push(done_rx);
            }
        }
        for end in ends {
            let _ = end.await;
        }
    }

    /// Lets go of all agents: they work on, and the next daemon finds them.
    pub(crate) fn let_go(&self) {
        let mut at_work = self.0.at_work();
        at_work.is_stopping = true;
        at_work.sessions.clear();
    }
}

impl House {
    fn at_work(&self) -> MutexGuard<'_, AtWork> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a run to its session, which begins to work if it did not.
    async fn take(self: &Arc<Self>, kept: KeptRun) -> Result<(), BusError> {
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
    fn session(self: &Arc<Self>, session: &SessionId) -> Result<mpsc::Sender<Order>, BusError> {
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
    fn new_task(self: &Arc<Self>, session: &SessionId) -> Result<SessionTask, BusError> {
        let estate = self.records.look();
        let (_, project) = place_of(&estate, session)?;
        let place = Place {
            session: session.as_str().to_owned(),
            root: PathBuf::from(&project.root_path),
            message_bus: self.message_root.join(bus_notes::slug(project)),
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
            before: last,
            generation,
        })
    }

    async fn order(&self, session: &str, order: Order) -> Result<(), Order> {
        let orders = self.at_work().sessions.get(session).cloned();
        match orders {
            Some(orders) => orders.send(order).await.map_err(|mpsc::error::SendError(order)| order),
            None => Err(order),
        }
    }

    /// A session wants to end because nothing is to be done; false if an order has come meanwhile.
    fn retire(&self, session: &str, orders: &mpsc::Receiver<Order>) -> bool {
        let mut at_work = self.at_work();
        if !orders.is_empty() {
            return false;
        }
        at_work.sessions.remove(session);
        true
    }

    fn forget(&self, session: &str) {
        self.at_work().sessions.remove(session);
    }

    /// A run is over: kept, told, and marked as told.
    async fn over(&self, mut kept: KeptRun, state: RunState, result: &str) {
        kept.run.state = state;
        kept.run.ended_at.get_or_insert_with(now);
        if let Err(error) = kept::keep(&self.records, &kept).await {
            tracing::error!(?error, run = kept.id().as_str(), "the end of a run could not be kept");
        }
        telling::ended(&self.topics, &kept, result);
        kept.end_is_told = true;
        if let Err(error) = kept::keep(&self.records, &kept).await {
            tracing::error!(?error, run = kept.id().as_str(), "the end of a run could not be kept");
        }
    }

    /// Waits for the end of a run.
    async fn until_over(&self, run: &RunId) -> RunState {
        let globs = ["agent.run.completed", "agent.run.failed", "agent.run.dropped"];
        let globs = globs.into_iter().filter_map(|glob| TopicGlob::try_from(glob.to_owned()).ok()).collect();
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
    fn environment(&self, place: &Place, kept: &KeptRun) -> Vec<(OsString, OsString)> {
        let mut variables = bus_notes::environment(place, kept);
        let correlation = kept.correlation_id.as_ref().map_or(kept.id().as_str(), |id| id.as_str());
        let patience = match kept.run.attended {
            Attended::Here => 15 * 60 * 1000,
            Attended::Later => 24 * 60 * 60 * 1000,
            Attended::Nobody => 0,
        };
        let judged: [(&str, OsString); 4] = [
            ("SWB_CONTROL_SOCKET", self.paths.control_socket().into()),
            ("SWB_SESSION_ID", place.session.clone().into()),
            ("SWB_CORRELATION_ID", correlation.into()),
            ("SWB_ASK_TIMEOUT_MS", patience.to_string().into()),
        ];
        variables.extend(judged.map(|(name, value)| (name.into(), value)));
        variables
    }

    /// Tells the message bus of a run.
    fn bus_note(&self, place: &Place, kept: &KeptRun, kind: &str) {
        bus_notes::post(place, kept, kind);
    }
}

fn place_of<'a>(
    estate: &'a Estate,
    session: &SessionId,
) -> Result<(&'a swb_proto::session::Session, &'a swb_proto::project::Project), BusError> {
    let session = estate.session(session)?;
    if !lifecycle::session_lives(session.state) {
        let message = format!("{} has ended", session.session_id);
        return Err(BusError::new(ERR_INVALID_REQUEST, message).because("SESSION_ENDED"));
    }
    estate.active_workspace(&session.workspace_id)?;
    Ok((session, estate.project(&session.project_id)?))
}

fn check_prompt(prompt: &str) -> Result<(), BusError> {
    let problem = if prompt.trim().is_empty() {
        "there is nothing to do: the prompt is empty".to_owned()
    } else if prompt.len() > LONGEST_PROMPT {
        format!("the prompt has {} bytes; {LONGEST_PROMPT} are the most", prompt.len())
    } else {
        return Ok(());
    };
    Err(BusError::new(ERR_INVALID_PARAMS, problem))
}

/// The beginning of a prompt, without secrets.
fn title(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = swb_rules::redact::redact(line).text;
    let end = line.floor_char_boundary(TITLE);
    if end < line.len() { format!("{}…", &line[..end]) } else { line }
}

fn wait_for_approval(approval: &swb_rules::approval::Approval) -> Option<Wait> {
    let since = crate::approvals::timestamp(approval.requested_at);
    let approval_id = approval.request.id.clone().try_into().ok()?;
    Some(Wait { what: Waits::Approval { approval_id, about: approval.request.reason.clone() }, since })
}

fn nothing_under_way() -> BusError {
    BusError::new(ERR_INVALID_REQUEST, "no run is under way in this session").because("NOTHING_UNDER_WAY")
}

fn gone() -> BusError {
    BusError::new(ERR_INTERNAL, "the session has ended meanwhile").because("SESSION_ENDED")
}

fn call_error(error: CallError) -> BusError {
    match error {
        CallError::Bus(error) => error,
        other => BusError::new(ERR_INTERNAL, other.to_string()),
    }
}
