//! What is kept of a run, beyond what others see of it.

use serde::{Deserialize, Serialize};
use swb_proto::agent::TurnUsage;
use swb_proto::id::{CorrelationId, ProfileId, RunId, SessionId};
use swb_proto::run::{Run, RunState, RunUsage};
use swb_proto::{Actor, Meta};

use crate::records::{Estate, Records, not_kept};

/// Runs that are over and still known.
const MOST_OVER: usize = 2000;

/// A run as it lies on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptRun {
    #[serde(flatten)]
    pub(crate) run: Run,
    /// What was asked.
    pub(crate) prompt: String,
    /// Who asked.
    pub(crate) actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<CorrelationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile_id: Option<ProfileId>,
    /// The model that was wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted_model: Option<String>,
    /// Events from after this place tell of it.
    pub(crate) after: u64,
    /// Which of the processes that have served the session works on it; 0 before one does.
    #[serde(default)]
    pub(crate) host: u32,
    /// The place in the output of that process where it begins.
    #[serde(default)]
    pub(crate) from: u64,
    /// The number of the write that gave it its prompt.
    #[serde(default)]
    pub(crate) write: u64,
    /// How often its process has ended before it did.
    #[serde(default)]
    pub(crate) restarts: u32,
    /// Its end was told. Whether a run whose end was not marked so was told of, the record knows.
    #[serde(default)]
    pub(crate) end_is_told: bool,
    /// What its session had used when it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_total: Option<RunUsage>,
}

impl KeptRun {
    pub(crate) fn id(&self) -> &RunId {
        &self.run.run_id
    }

    /// Where its events belong.
    pub(crate) fn scope(&self) -> Meta {
        Meta {
            workspace_id: Some(self.run.workspace_id.clone()),
            session_id: Some(self.run.session_id.clone()),
            correlation_id: self.correlation_id.clone(),
            ..Meta::default()
        }
    }

    /// The agent that works on it.
    pub(crate) fn agent(&self) -> Actor {
        Actor::new("agent", self.run.session_id.as_str()).unwrap_or_else(|_| Actor::system())
    }
}

impl Estate {
    /// A run, or why there is none.
    pub(crate) fn run(&self, id: &RunId) -> Result<&KeptRun, swb_proto::BusError> {
        self.runs.get(id.as_str()).ok_or_else(|| {
            let message = format!("there is no run {id}; agent.list names them");
            swb_proto::BusError::new(swb_proto::error::ERR_INVALID_PARAMS, message).because("RUN_NOT_FOUND")
        })
    }

    /// Events from after this place tell of the runs that are not over, or whose end may not have been told.
    pub(crate) fn oldest_open_run(&self) -> Option<u64> {
        let open = self.runs.iter().filter(|kept| is_live(kept) || !kept.end_is_told);
        open.map(|kept| kept.after).min()
    }

    /// The runs of a session, the oldest first.
    pub(crate) fn runs_of<'a>(&'a self, id: &'a SessionId) -> impl DoubleEndedIterator<Item = &'a KeptRun> {
        let runs: Vec<&KeptRun> = self.runs.iter().filter(|kept| kept.run.session_id == *id).collect();
        runs.into_iter()
    }

    /// Forgets the oldest of those that are over.
    pub(crate) fn forget_old_runs(&mut self) {
        let over: Vec<String> = self
            .runs
            .iter()
            .filter(|kept| kept.run.state.is_over() && kept.end_is_told)
            .map(|kept| kept.id().as_str().to_owned())
            .collect();
        for id in over.iter().take(over.len().saturating_sub(MOST_OVER)) {
            if let Err(error) = self.runs.remove(id) {
                tracing::warn!(%error, run = id, "an old run could not be forgotten");
                return;
            }
        }
    }
}

/// Keeps a run as it is now, on a thread that may wait for the disk.
pub(super) async fn keep(
    records: &std::sync::Arc<Records>,
    kept: &KeptRun,
) -> Result<(), swb_proto::BusError> {
    let kept = kept.clone();
    records
        .change(move |estate| {
            let is_over = kept.run.state.is_over();
            estate.runs.put(kept).map_err(not_kept)?;
            if is_over {
                estate.forget_old_runs();
            }
            Ok(())
        })
        .await
}

/// Adds what a turn has used.
pub(super) fn add(usage: &mut RunUsage, turn: &TurnUsage) {
    usage.input_tokens += turn.input_tokens;
    usage.output_tokens += turn.output_tokens;
    usage.cache_read_tokens += turn.cache_read_input_tokens;
    usage.cache_write_tokens += turn.cache_creation_input_tokens;
    usage.estimated |= turn.estimated;
}

/// What lies between two totals of a session.
pub(super) fn between(before: Option<&RunUsage>, after: &TurnUsage, cost: Option<f64>) -> RunUsage {
    let none = RunUsage::default();
    let before = before.unwrap_or(&none);
    RunUsage {
        input_tokens: after.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: after.output_tokens.saturating_sub(before.output_tokens),
        cache_read_tokens: after.cache_read_input_tokens.saturating_sub(before.cache_read_tokens),
        cache_write_tokens: after.cache_creation_input_tokens.saturating_sub(before.cache_write_tokens),
        estimated: after.estimated,
        cost_usd: cost.map(|cost| (cost - before.cost_usd.unwrap_or(0.0)).max(0.0)),
        turns: 0,
    }
}

/// Whether a run still has something to come.
pub(super) fn is_live(kept: &KeptRun) -> bool {
    !kept.run.state.is_over()
}

/// Which state an end is.
pub(super) fn end_state(cancelled: bool, failed: bool) -> RunState {
    match (cancelled, failed) {
        (true, _) => RunState::Cancelled,
        (false, true) => RunState::Failed,
        (false, false) => RunState::Completed,
    }
}
