//! Questions: put, waited for, timed out; and what need not be asked.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swb_bus::topics::Topics;
use swb_proto::id::{self, ApprovalId};
use swb_rules::approval::{Approval, ApprovalEvent, ApprovalRequest, Desk, Patience};
use swb_rules::policy::{Grant, Input};
use tokio::sync::Notify;

use super::error::AskError;
use super::kept::KeptDesk;
use super::subject::{presentable, presentable_reason};
use super::telling;
use super::waiting::{Waiters, Waiting};
use crate::mint::Mint;
use crate::telemetry::ApprovalCounts;

/// Most questions that one agent and those below it may have open.
const MAX_PENDING_OF_ONE: usize = 250;
/// The wall clock may jump while a timer sleeps, so it is looked at again after this long.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// How long a disk that refuses is left alone.
const RETRY: Duration = Duration::from_secs(1);

/// The wall clock, replaceable in tests.
pub type Clock = fn() -> SystemTime;

/// All approvals of the daemon.
#[derive(Debug)]
pub struct Approvals {
    pub(super) state: Mutex<State>,
    /// The grants of the desk: asked at every call, so they do not lie behind the lock that is held over a write.
    standing: RwLock<Vec<Grant>>,
    topics: Arc<Topics>,
    clock: Clock,
    /// The latest moment seen: time does not go back.
    latest: AtomicU64,
    pub(super) mint: Mint,
    /// The next deadline may be another one.
    moved: Notify,
    counts: ApprovalCounts,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) desk: KeptDesk,
    waiters: Waiters,
}

impl Approvals {
    /// Opens the file at `path`, or begins it. Deadlines that passed while nobody was there leave some time to answer, and what
    /// a crash kept from being said is said.
    pub fn open(path: &Path, topics: Arc<Topics>, clock: Clock) -> io::Result<Arc<Self>> {
        let desk = KeptDesk::open(path, millis(clock()))?;
        let approvals = Arc::new(Approvals {
            state: Mutex::new(State { desk, waiters: Waiters::default() }),
            standing: RwLock::default(),
            topics,
            clock,
            latest: AtomicU64::new(0),
            mint: Mint::default(),
            moved: Notify::new(),
            counts: ApprovalCounts::default(),
        });
        approvals.note_what_was_told();
        approvals.change(|desk, now| ((), desk.restart(now)))?;
        Ok(approvals)
    }

    /// What was written last may or may not have been told before a crash: whoever keeps events knows.
    fn note_what_was_told(&self) {
        let mut state = self.lock();
        let desk = state.desk.desk();
        if desk.iter().any(Approval::is_unannounced) {
            let told = telling::told_after(&self.topics, desk.told_after());
            state.desk.note(told);
        }
    }

    /// An id for a question whose asker has none.
    #[must_use]
    pub fn new_id(&self) -> ApprovalId {
        ApprovalId::from_ulid(self.mint.unique())
    }

    /// Puts a question. Asked again under the same id it is the same question, with whatever became of it.
    pub async fn ask(
        self: &Arc<Self>,
        mut request: ApprovalRequest,
        patience: Patience,
    ) -> Result<Waiting, AskError> {
        id::check(&request.id)?;
        let approvals = Arc::clone(self);
        let asked = tokio::task::spawn_blocking(move || {
            request.subject = presentable(request.subject);
            request.reason = presentable_reason(&request.reason);
            if approvals.lock().waiters.are_stopping() {
                return Err(AskError::Stopping);
            }
            let put = approvals.change(|desk, now| put(desk, now, request, patience));
            let put = put.map_err(AskError::NotKept)??;
            // Looked up again: the answer may have come in between.
            let known = approvals.wait_for(&put.request.id);
            Ok(known.unwrap_or_else(|| approvals.lock().waiters.join(put)))
        });
        asked.await.unwrap_or_else(|panic| Err(AskError::NotKept(io::Error::other(panic))))
    }

    /// Takes a question back. May wait for the disk.
    pub fn withdraw(&self, approval: &str) -> io::Result<()> {
        self.change(|desk, now| ((), desk.withdraw(now, approval)))
    }

    /// Waits for a question that was put before. None if there is no such question.
    #[must_use]
    pub fn wait_for(&self, approval: &str) -> Option<Waiting> {
        let mut state = self.lock();
        let approval = state.desk.desk().get(approval)?.clone();
        Some(state.waiters.join(approval))
    }

    /// One question.
    #[must_use]
    pub fn get(&self, approval: &str) -> Option<Approval> {
        self.lock().desk.desk().get(approval).cloned()
    }

    /// The questions that `wanted` chooses, the oldest first.
    pub fn list(&self, wanted: impl Fn(&Approval) -> bool) -> Vec<Approval> {
        let mut list: Vec<Approval> =
            self.lock().desk.desk().iter().filter(|approval| wanted(approval)).cloned().collect();
        list.sort_by(|a, b| (a.requested_at, &a.request.id).cmp(&(b.requested_at, &b.request.id)));
        list
    }

    /// Questions without an answer.
    pub(crate) fn pending(&self) -> u64 {
        self.lock().desk.desk().iter().filter(|approval| approval.outcome.is_none()).count() as u64
    }

    /// What was asked and answered since the daemon began.
    pub(crate) fn counts(&self) -> &ApprovalCounts {
        &self.counts
    }

    /// The standing answer to the question about this call, if there is one. Never waits for the disk.
    #[must_use]
    pub fn covers(&self, input: &Input) -> Option<Grant> {
        let now = self.now();
        let standing = self.standing.read().unwrap_or_else(PoisonError::into_inner);
        standing.iter().find(|grant| grant.covers(input, now)).cloned()
    }

    /// The standing answers that hold now, the oldest first.
    #[must_use]
    pub fn grants(&self) -> Vec<Grant> {
        let now = self.now();
        let standing = self.standing.read().unwrap_or_else(PoisonError::into_inner);
        standing.iter().filter(|grant| now < grant.expires_at).cloned().collect()
    }

    /// A session has ended: its grants end, and what was asked in it or below it is answered with no. May wait for the disk.
    pub fn session_ended(&self, session: &str) -> io::Result<()> {
        let concerned = {
            let state = self.lock();
            let desk = state.desk.desk();
            desk.pending_for(session).next().is_some()
                || desk.grants(self.now()).any(|grant| grant.agent == session)
        };
        if concerned { self.change(|desk, now| ((), desk.end_agent(now, session))) } else { Ok(()) }
    }

    /// Sessions that something is pending or granted for.
    #[must_use]
    pub(crate) fn sessions(&self) -> Vec<String> {
        let state = self.lock();
        let desk = state.desk.desk();
        let asked_in = desk.pending().filter_map(|approval| approval.request.session_id.clone());
        let asked_by = desk.pending().map(|approval| approval.request.input.actor.id().to_owned());
        let granted = desk.grants(self.now()).map(|grant| grant.agent.clone());
        let mut sessions: Vec<String> = asked_in.chain(asked_by).chain(granted).collect();
        sessions.sort();
        sessions.dedup();
        sessions
    }

    /// Closes questions at their deadlines, until [`Approvals::stop`]. Runs on a task of its own.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let (next, now) = {
                let state = self.lock();
                if state.waiters.are_stopping() {
                    return;
                }
                // Where the disk refuses, the desk knows of nothing, but those who wait are still there.
                let deadlines = [state.desk.desk().next_deadline(), state.waiters.next_deadline()];
                (deadlines.into_iter().flatten().min(), self.now())
            };
            match next {
                None => self.moved.notified().await,
                Some(deadline) if deadline > now => {
                    let left = Duration::from_millis(deadline - now).min(LONGEST_SLEEP);
                    tokio::select! {
                        () = self.moved.notified() => {}
                        () = tokio::time::sleep(left) => {}
                    }
                }
                Some(_) => {
                    let approvals = Arc::clone(&self);
                    let expired = tokio::task::spawn_blocking(move || approvals.expire()).await;
                    if !matches!(expired, Ok(Ok(()))) {
                        tracing::error!(?expired, "approvals could not be closed at their deadline");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        }
    }

    fn expire(&self) -> io::Result<()> {
        let expired = self.change(|desk, now| ((), desk.expire(now)));
        // Nobody waits past the deadline, whatever the disk does.
        self.lock().waiters.give_up(self.now());
        expired
    }

    /// Tells everybody who waits that the daemon stops. The questions stay for the next one. May wait for the disk.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.waiters.stop();
        if let Err(error) = state.desk.flush(self.now()) {
            tracing::warn!(%error, "the next daemon has to look up what was told of approvals");
        }
        drop(state);
        self.moved.notify_one();
    }

    /// Makes a change, says it, and tells whoever waits. Only what is on disk is said.
    pub(super) fn change<T>(
        &self,
        command: impl FnOnce(&mut Desk, u64) -> (T, Vec<ApprovalEvent>),
    ) -> io::Result<T> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = self.now();
        let mut grants = Vec::new();
        let done = state.desk.change(now, self.topics.head(), |desk| {
            let (result, events) = command(desk, now);
            grants.extend(events.iter().filter(|event| telling::is_of_grant(event)).cloned());
            (result, events)
        });
        let standing = state.desk.desk().grants(now).cloned().collect();
        *self.standing.write().unwrap_or_else(PoisonError::into_inner) = standing;
        if done.is_ok() {
            telling::announce_grants(&self.topics, &grants);
        }
        self.announce(state);
        drop(guard);
        self.moved.notify_one();
        done
    }

    fn announce(&self, state: &mut State) {
        let mut unsaid: Vec<&Approval> =
            state.desk.desk().iter().filter(|approval| approval.is_unannounced()).collect();
        if unsaid.is_empty() {
            return;
        }
        unsaid.sort_by_key(|approval| approval.requested_at);
        let said =
            unsaid.iter().map(|approval| telling::announce(&self.topics, &self.counts, approval)).collect();
        let ended: Vec<_> = unsaid
            .iter()
            .filter_map(|approval| Some((approval.request.id.clone(), approval.outcome.clone()?)))
            .collect();
        state.desk.note(said);
        for (id, outcome) in ended {
            state.waiters.tell(&id, Ok(outcome));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        let now = millis((self.clock)());
        self.latest.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

type Put = Result<Approval, AskError>;

fn put(desk: &mut Desk, now: u64, request: ApprovalRequest, patience: Patience) -> (Put, Vec<ApprovalEvent>) {
    let root = request.input.actor.root();
    if request.input.actor.is_agent()
        && desk.get(&request.id).is_none()
        && desk.pending_for(root).count() >= MAX_PENDING_OF_ONE
    {
        return (Err(AskError::TooMany { limit: MAX_PENDING_OF_ONE }), Vec::new());
    }
    match desk.request(now, request, patience) {
        Ok(requested) => (Ok(requested.approval), requested.events),
        Err(error) => (Err(error.into()), Vec::new()),
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
