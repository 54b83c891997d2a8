//! What is said to runs, and what is answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Attended, Budget, Run, RunState};
use crate::id::{ProfileId, ProjectId, RunId, SessionId, WorkspaceId};

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
