//! Runs: an agent works on something in a session.
//!
//! A session has one agent process at a time; a run is one piece of its work, from a prompt to its one end. While it
//! works, people steer it and send it more. What it does is told as `agent.run.started`, any number of
//! `agent.run.progress` and exactly one `agent.run.completed` or `agent.run.failed` ([`progress`]).

pub mod progress;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::error::ErrorEnvelope;
use crate::id::{ApprovalId, ProfileId, ProjectId, RunId, SessionId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;

pub use progress::{
    PlanProgress, Progress, Question, RunCompleted, RunFailed, RunProgress, RunStarted, Source,
    SubagentProgress, SubagentState, ToolProgress, ToolStatus,
};

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

/// `agent.run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunParams {
    /// The session to work in. Absent: the one of the request's context, else a new one in `project_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The project of a new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// What to do.
    pub prompt: String,
    /// How its agent is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<ProfileId>,
    /// Which agent: `builtin` if absent, or one of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model to work with. Absent: the agent's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The longest it may take; the same as `budget.wall_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who can be asked.
    #[serde(default)]
    pub attended: Attended,
    /// The run that wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
}

/// A run was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTaken {
    /// Its id.
    pub run_id: RunId,
    /// The session it works in.
    pub session_id: SessionId,
    /// `started`, or `queued` behind others.
    pub status: TakenStatus,
    /// Events from after this place tell of it.
    pub after: u64,
}

/// What became of a wish for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakenStatus {
    /// Its agent works on it.
    Started,
    /// It waits for a slot, or for the run before it.
    Queued,
}

/// Which run. Without a run: the one under way in the session, or the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhichRun {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its session. Absent: the one of the request's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// `agent.cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelRunParams {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its session, for the run under way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a run stands after it was to be ended. To cancel one that is over changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCancelled {
    /// Its id.
    pub run_id: RunId,
    /// `cancelled`, or how it had ended before.
    pub status: RunState,
}

/// `agent.steer` and `agent.follow_up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TellParams {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its session, for the run under way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What to say.
    pub text: String,
}

/// `agent.answer`: what a run has asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its session, for the run under way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The question.
    pub ask_id: String,
    /// One of its options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// Other words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Nobody will answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declined: bool,
}

/// What was said to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// The run that it went to. A follow-up in a session at rest begins a new one.
    pub run_id: RunId,
    /// The session.
    pub session_id: SessionId,
    /// How it got there.
    pub status: ToldStatus,
}

/// How something that was said got to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToldStatus {
    /// Its agent has it.
    Delivered,
    /// It was at rest, so it began anew.
    Started,
    /// It waits for the run before it.
    Queued,
}

/// `agent.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListRunsParams {
    /// Of which workspace. Absent: the one of the request's context, else all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Of which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Those that are over, too.
    #[serde(default)]
    pub ended: bool,
}

/// Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// The oldest first.
    pub runs: Vec<Run>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Waits {
    /// A person.
    Approval {
        /// The question.
        approval_id: ApprovalId,
        /// What it is about.
        about: String,
    },
    /// A tool.
    Tool {
        /// Which one.
        name: String,
        /// The call.
        call_id: String,
    },
    /// Another agent.
    Subagent {
        /// Which one.
        name: String,
    },
    /// The answer of its model.
    Model,
    /// A slot of the machine.
    Slot {
        /// Runs before it.
        behind: u64,
    },
    /// Nothing; but messages to it wait until a person says something.
    Person {
        /// How many.
        messages: u64,
    },
    /// The run before it in its session.
    Run {
        /// Which one.
        run_id: RunId,
    },
}

/// One wait, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// What for.
    #[serde(flatten)]
    pub what: Waits,
    /// Since when.
    pub since: Timestamp,
}

/// A run, and what it waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// The run.
    pub run: Run,
    /// What it waits for, the innermost last.
    pub waits: Vec<Wait>,
    /// What it has said since its last call of a tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
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
