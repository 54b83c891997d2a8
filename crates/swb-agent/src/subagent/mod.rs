//! Subagents: other agents that this one starts, drives and ends.
//!
//! A subagent is another process of this program, driven over the very protocol that our own parent speaks with us. It has
//! its own session and history, works in the same folder, and never has more rights than we have: its mode is at most
//! ours, and what it has to ask comes up to us and goes on to our parent under its name.
//!
//! ```text
//!  tool call ─► Subagents::start ─► task (record, watched by tools) ◄── news
//!                     └─► work (a tokio task): Process ◄─ frames ─► drive ─► events to our parent
//! ```
//!
//! * `launch` – how the process is started. * `process` – its pipes, bounded both ways, and its end.
//! * `drive` – the protocol from a parent's side. * `relay` – questions on their way up. * `status` – frames in words.
//! * `task` – what is known of one. * `report` – what the model is told when one that ran in the background is over.
//!
//! Invariants: there are at most so many, and they nest at most so deep; every one of them ends with an outcome, whatever
//! its process does; when one is cancelled, or we end, its whole tree ends. Proof: `tests.rs` with programs that
//! misbehave, and `crates/swb-cli/tests/rpc/subagents.rs` with the real binary.

mod drive;
mod launch;
mod process;
mod relay;
mod report;
mod status;
mod task;
mod work;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use swb_proto::agent::TurnUsage;
use tokio::sync::Notify;

pub use launch::Launch;
pub(crate) use report::is_report;
pub(crate) use task::{Ended, Outcome, Task};
pub(crate) use work::Wish;

use crate::gate::ask::Asks;
use crate::gate::{Gate, Mode};
use crate::stdio::output::Output;
use crate::tools::Toolbox;
use crate::turn::{SharedHistory, locked};

/// A root may have subagents, these may have some, and those may, too.
pub(crate) const MAX_DEPTH: usize = 3;
/// How many may work at once for a root; half of it one level deeper, and so on.
const MAX_RUNNING: usize = 8;
/// How many results wait to be collected before the oldest is forgotten.
const MAX_KEPT: usize = 32;

/// How patient we are with a subagent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Until it is ready.
    pub(crate) ready: Duration,
    /// Until it is asked whether it is still there.
    pub(crate) silence: Duration,
    /// Until it has answered that.
    pub(crate) sign_of_life: Duration,
    /// Until it has ended by itself.
    pub(crate) ending: Duration,
    /// What it may say in one answer, in bytes.
    pub(crate) answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ready: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            sign_of_life: Duration::from_secs(15),
            ending: Duration::from_millis(1500),
            answer: 1024 * 1024,
        }
    }
}

/// What all subagents of a process share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) launch: Launch,
    /// How many agents are above this one.
    pub(crate) depth: usize,
    pub(crate) workspace: PathBuf,
    pub(crate) output: Output,
    pub(crate) asks: Arc<Asks>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: Limits,
}

/// The subagents of this process.
#[derive(Debug)]
pub(crate) struct Subagents {
    /// `None` where there is only a list of tools to be shown.
    around: Option<Surroundings>,
    /// The tools that can be lent to them.
    toolbox: OnceLock<Weak<Toolbox>>,
    state: Mutex<State>,
    /// One of them has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    tasks: BTreeMap<u64, Arc<Task>>,
    count: u64,
    /// The session they are started for.
    home: Option<SharedHistory>,
    /// What those that have ended have used, and no `agent_end` has told yet.
    unreported: TurnUsage,
}

/// Why a subagent was not started. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("subagents cannot be started here")]
    Nowhere,
    #[error("subagents go no deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("{0} subagents are at work, which is the limit; collect or cancel one first")]
    TooMany(usize),
}

impl Subagents {
    /// None can be started, but the tools can be listed.
    pub(crate) fn nowhere() -> Self {
        Subagents { around: None, toolbox: OnceLock::new(), state: Mutex::default(), ended: Notify::new() }
    }

    pub(crate) fn new(around: Surroundings) -> Self {
        Subagents { around: Some(around), ..Self::nowhere() }
    }

    /// Lends them what can be lent of these.
    pub(crate) fn lend_from(&self, toolbox: &Arc<Toolbox>) {
        // There is only one, so whoever comes second brings the same.
        let _ = self.toolbox.set(Arc::downgrade(toolbox));
    }

    fn toolbox(&self) -> Weak<Toolbox> {
        self.toolbox.get().cloned().unwrap_or_default()
    }

    /// Whether this agent is one that may have subagents at all.
    pub(crate) fn allowed(&self) -> bool {
        self.around.as_ref().is_none_or(|around| around.depth < MAX_DEPTH)
    }

    /// Those that are started from now on belong to this session; those of an earlier one end.
    pub(crate) fn settle_in(&self, home: SharedHistory) {
        self.cancel_all();
        self.all().iter().for_each(|task| task.tell());
        self.state().home = Some(home);
    }

    /// Starts one.
    pub(crate) fn start(self: &Arc<Self>, wish: Wish) -> Result<Arc<Task>, StartError> {
        let around = self.around.as_ref().ok_or(StartError::Nowhere)?;
        if around.depth >= MAX_DEPTH {
            return Err(StartError::TooDeep);
        }
        let (task, orders, home) = {
            let mut state = self.state();
            let home = state.home.clone().ok_or(StartError::Nowhere)?;
            let limit = MAX_RUNNING >> around.depth;
            let running = state.tasks.values().filter(|task| !task.is_over()).count();
            if running >= limit {
                return Err(StartError::TooMany(running));
            }
            state.forget_old();
            state.count += 1;
            let (task, orders) = Task::new(state.count, &wish);
            state.tasks.insert(task.id, Arc::clone(&task));
            (task, orders, home)
        };
        tokio::spawn(work::work(Arc::clone(self), Arc::clone(&task), wish, orders, home));
        Ok(task)
    }

    /// The one of this id.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<Task>> {
        self.state().tasks.get(&id).cloned()
    }

    /// All that are known, in the order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<Task>> {
        self.state().tasks.values().cloned().collect()
    }

    /// Forgets one.
    pub(crate) fn forget(&self, id: u64) {
        self.state().tasks.remove(&id);
    }

    /// The mode has changed: none of them may do more than we may.
    pub(crate) fn narrow(&self, ours: Mode) {
        for task in self.all() {
            task.set_mode(ours);
        }
    }

    /// Ends all of them.
    pub(crate) fn cancel_all(&self) {
        self.all().iter().for_each(|task| task.cancel());
    }

    /// Whether some that were cancelled have not ended yet.
    pub(crate) fn are_ending(&self) -> bool {
        self.state().tasks.values().any(|task| task.is_cancelled() && !task.is_over())
    }

    /// Returns once nothing is left that was cancelled.
    pub(crate) async fn end_of_cancelled(&self) {
        for task in self.all().into_iter().filter(|task| task.is_cancelled()) {
            task.ended().await;
        }
    }

    /// Returns after one has ended.
    pub(crate) async fn one_ended(&self) {
        self.ended.notified().await;
    }

    /// What those that have ended have used, told once.
    pub(crate) fn take_usage(&self) -> TurnUsage {
        std::mem::take(&mut self.state().unreported)
    }

    /// What the model has not been told yet of those that ran in the background.
    pub(crate) fn take_news(&self) -> Option<String> {
        let news: Vec<_> = self.state().tasks.values().filter(|task| task.is_news()).cloned().collect();
        report::report(&news)
    }

    /// The end of one: its usage counts for the session, and whoever waits is told.
    fn finish(&self, task: &Task, home: &SharedHistory, ended: Ended) {
        // What cannot be written now is still in the totals of the subagent's own history.
        let _ = locked(home).used_aside(&ended.usage);
        {
            let mut state = self.state();
            state.unreported.add(&ended.usage);
            if !task.background {
                // Whoever waits for it has it in his hands.
                state.tasks.remove(&task.id);
            }
        }
        task.finish(ended);
        self.ended.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room for one more.
    fn forget_old(&mut self) {
        while self.tasks.len() >= MAX_KEPT {
            let oldest = self.tasks.values().find(|task| task.is_over()).map(|task| task.id);
            match oldest {
                Some(id) => self.tasks.remove(&id),
                None => return,
            };
        }
    }
}

#[cfg(test)]
mod tests;
