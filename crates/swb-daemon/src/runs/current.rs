//! The run under way in a session.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::value::RawValue;
use swb_proto::agent::TurnUsage;
use swb_proto::error::{ERR_CANCELLED, ERR_INTERNAL, ERR_POLICY_DENIED};
use swb_proto::run::{Budget, RunUsage};
use swb_proto::{Actor, BusError, Timestamp};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::kept::KeptRun;

/// How long an agent may take to end what it was told to end.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(4);

/// What stands in the ids of questions for what was used.
pub(super) const USED: &str = "used";

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its agent is not there yet.
    Starting,
    /// Its agent works.
    Working,
    /// Its agent is done, and is asked what it has used.
    Closing,
}

/// The run under way.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) kept: KeptRun,
    pub(super) agent: Actor,
    pub(super) phase: Phase,
    /// The number of the last piece of progress.
    pub(super) step: u64,
    /// Progress that has its number and is told next.
    pub(super) untold: Vec<Box<RawValue>>,
    /// What was said to the agent and is not answered.
    pub(super) open: BTreeSet<String>,
    /// How many things were said to it.
    pub(super) said: u64,
    /// What agents below it have used.
    pub(super) below: RunUsage,
    /// Why it is to end, and whether that is a failure.
    pub(super) stopping: Option<(BusError, bool)>,
    /// What went wrong.
    pub(super) error: Option<BusError>,
    pub(super) cancelled: bool,
    /// When patience is at an end.
    pub(super) deadline: Option<Instant>,
    /// When its time is up.
    pub(super) time_is_up: Option<Instant>,
    /// A daemon before us had begun it: what else was said to the agent is not known.
    pub(super) is_recovered: bool,
    /// Calls that are not over, and since when.
    pub(super) calls: Vec<(String, String, Timestamp)>,
    pub(super) since: Timestamp,
    /// Its slot.
    pub(super) _slot: OwnedSemaphorePermit,
}

impl Current {
    pub(super) fn new(kept: KeptRun, slot: OwnedSemaphorePermit) -> Self {
        let budget = kept.run.budget.wall_ms.map(Duration::from_millis);
        Current {
            agent: kept.agent(),
            phase: Phase::Starting,
            step: 0,
            untold: Vec::new(),
            open: BTreeSet::new(),
            said: 0,
            below: RunUsage::default(),
            stopping: None,
            error: None,
            cancelled: false,
            deadline: None,
            time_is_up: budget.map(|budget| Instant::now() + budget),
            is_recovered: false,
            calls: Vec::new(),
            since: crate::records::now(),
            kept,
            _slot: slot,
        }
    }

    /// The id under which the next thing is said to the agent.
    pub(super) fn next_id(&mut self, what: &str) -> String {
        self.said += 1;
        format!("{}.{what}{}", self.kept.id(), self.said)
    }

    /// Whether this is the id of a question for what was used.
    pub(super) fn asked_what_was_used(&self, id: &str) -> bool {
        let asked = id.strip_prefix(self.kept.id().as_str()).and_then(|rest| rest.strip_prefix('.'));
        asked.is_some_and(|asked| asked.starts_with(USED))
    }

    /// The id under which the agent is asked whether it works.
    pub(super) fn state_id(&self) -> String {
        format!("{}.state", self.kept.id())
    }

    /// What the run has used, by the totals of its session.
    pub(super) fn used(&mut self, before: Option<&RunUsage>, totals: &TurnUsage, cost: Option<f64>) {
        let turns = self.kept.run.usage.turns;
        let mut usage = super::kept::between(before, totals, cost);
        usage.input_tokens += self.below.input_tokens;
        usage.output_tokens += self.below.output_tokens;
        usage.cache_read_tokens += self.below.cache_read_tokens;
        usage.cache_write_tokens += self.below.cache_write_tokens;
        usage.estimated |= self.below.estimated;
        usage.turns = turns;
        self.kept.run.usage = usage;
    }

    /// What the run has used too much of.
    pub(super) fn excess(&self) -> Option<BusError> {
        let usage = &self.kept.run.usage;
        let Budget { tokens, cost_usd, turns, .. } = self.kept.run.budget;
        let used = usage.input_tokens + usage.output_tokens;
        let message = if let Some(limit) = tokens.filter(|limit| used > *limit) {
            format!("it has used {used} tokens of {limit}")
        } else if let Some(limit) = cost_usd.filter(|limit| usage.cost_usd.is_some_and(|cost| cost > *limit))
        {
            format!("it has cost {:.4} dollars of {limit}", usage.cost_usd.unwrap_or_default())
        } else if let Some(limit) = turns.filter(|limit| usage.turns > *limit) {
            format!("its model has answered {} times of {limit}", usage.turns)
        } else {
            return None;
        };
        Some(over_budget(message))
    }
}

/// A run was ended because of its budget.
pub(super) fn over_budget(message: String) -> BusError {
    BusError::new(ERR_POLICY_DENIED, message).because("BUDGET_EXCEEDED")
}

/// A run was ended because somebody wanted it.
pub(super) fn cancelled(reason: Option<String>) -> BusError {
    BusError::new(ERR_CANCELLED, reason.unwrap_or_else(|| "it was cancelled".to_owned())).because("CANCELLED")
}

/// An agent did not do what it should.
pub(super) fn failed(message: impl Into<String>, reason: &'static str) -> BusError {
    BusError::new(ERR_INTERNAL, message).because(reason)
}
