//! Runs: an agent works on something in a session.
//!
//! A session has one agent process at a time; a run is one piece of its work, from a prompt to its one end. While it
//! works, people steer it and send it more. What it does is told as `agent.run.started`, any number of
//! `agent.run.progress` and exactly one `agent.run.completed` or `agent.run.failed` ([`progress`]).

mod commands;
pub mod progress;
mod view;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::error::ErrorEnvelope;
use crate::id::{ProjectId, RunId, SessionId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;

pub use commands::{
    AnswerParams, CancelRunParams, ListRunsParams, RunCancelled, RunList, RunParams, RunTaken, TakenStatus,
    TellParams, Told, ToldStatus, WhichRun,
};
pub use progress::{
    PlanProgress, Progress, Question, RunCompleted, RunFailed, RunProgress, RunStarted, Source,
    SubagentProgress, SubagentState, ToolProgress, ToolStatus,
};
pub use view::{RunView, Wait, Waits};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for a slot, or for the run before it in its session.
    Queued,
    /// Its agent works.
    Running,
    /// It came to its end.
    Completed,
    /// It did not.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl RunState {
    /// Whether nothing will become of it any more.
    pub fn is_over(self) -> bool {
        matches!(self, RunState::Completed | RunState::Failed | RunState::Cancelled)
    }
}

/// What a run may use, with everything that it starts. What is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Answers of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
}

/// What a run has used, with everything that it started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Tokens that went into models.
    pub input_tokens: u64,
    /// Tokens that came out of them.
    pub output_tokens: u64,
    /// Of those that went in: read from a cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Of those that went in: written to a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Whether a count is a guess.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// US dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Answers of its model.
    #[serde(default)]
    pub turns: u64,
}

/// Who can be asked while a run works: it says how long an approval waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attended {
    /// Somebody looks on.
    #[default]
    Here,
    /// Somebody comes back to it.
    Later,
    /// Nobody: what needs an approval is denied at once.
    Nobody,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its id.
    pub run_id: RunId,
    /// The session it works in.
    pub session_id: SessionId,
    /// The workspace that lies in.
    pub workspace_id: WorkspaceId,
    /// The project it works in.
    pub project_id: ProjectId,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// Which agent works: `builtin`, or one of the configuration.
    pub agent: String,
    /// The model it works with, once it has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where it stands.
    pub state: RunState,
    /// The beginning of its prompt.
    pub title: String,
    /// Who can be asked.
    #[serde(default)]
    pub attended: Attended,
    /// What it may use.
    #[serde(default)]
    pub budget: Budget,
    /// What it has used.
    #[serde(default)]
    pub usage: RunUsage,
    /// `contained`, or why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its agent began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEnvelope>,
}

body! {
    /// Words of `agent/*`.
    RunBody in Run {
        /// A wish for one.
        Run(RunParams),
        /// Its answer.
        Taken(RunTaken),
        /// A wish for its end.
        Cancel(CancelRunParams),
        /// Its answer.
        Cancelled(RunCancelled),
        /// Something to say to one.
        Tell(TellParams),
        /// An answer to what one has asked.
        Answer(AnswerParams),
        /// The answer to both.
        Told(Told),
        /// Which one is meant.
        Which(WhichRun),
        /// Which ones are meant.
        WhichOnes(ListRunsParams),
        /// One.
        One(RunView),
        /// Many.
        List(RunList),
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $summary:literal, $params:ty => $response:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}
        impl Method for $name {
            const NAME: &'static str = $wire;
            const SUMMARY: &'static str = $summary;
            type Params = $params;
            type Response = $response;
        }
    )*};
}

methods! {
    /// `agent/run`.
    Start = "agent/run", "Have an agent work on something", RunParams => RunTaken;
    /// `agent/cancel`.
    Cancel = "agent/cancel", "End a run, with everything it has started", CancelRunParams => RunCancelled;
    /// `agent/steer`.
    Steer = "agent/steer", "Say something to a run that it hears before its next step", TellParams => Told;
    /// `agent/follow_up`.
    FollowUp = "agent/follow_up", "Say something to a run that it hears when it is done", TellParams => Told;
    /// `agent/answer`.
    Answer = "agent/answer", "Answer what a run has asked", AnswerParams => Told;
    /// `agent/get`.
    Get = "agent/get", "One run, and what it waits for", WhichRun => RunView;
    /// `agent/list`.
    List = "agent/list", "The runs of agents: those under way, or all", ListRunsParams => RunList;
}
