//! What a run tells while it works: the payloads of `agent.run.*`.
//!
//! Every piece of progress has its number within the run (`step`, from 1, without a hole) and names the place of the
//! agent's output that it was made from, so that a later daemon goes on behind the last one that was told. Text that
//! follows text belongs to the same message; anything else in between ends it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunUsage;
use crate::agent::{McpCall, Plan, PlanUpdate, TaskState};
use crate::error::ErrorEnvelope;
use crate::id::{ProfileId, RunId};

/// `agent.run.started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Which run.
    pub run_id: RunId,
    /// How its agent is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<ProfileId>,
    /// The keyed hash of its prompt: two runs can be compared without knowing what was asked.
    pub prompt_hash: String,
    /// Which agent.
    pub agent: String,
    /// The model it works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The run that wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
}

/// `agent.run.progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProgress {
    /// Which run.
    pub run_id: RunId,
    /// Its number within the run.
    pub step: u64,
    /// What.
    #[serde(flatten)]
    pub progress: Progress,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// Where a piece of progress comes from: the `nth` (from 1) that the agent's output yields from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Which of the processes that have served the session, counted from 1.
    pub host: u32,
    /// A place in its output at which nothing was open.
    pub offset: u64,
    /// Counted from there.
    pub nth: u64,
}

/// What a run tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Progress {
    /// A piece of what its model says.
    Text {
        /// The piece.
        delta: String,
    },
    /// A piece of what its model thinks.
    Thinking {
        /// The piece.
        delta: String,
    },
    /// A call of a tool.
    Tool {
        /// How it stands.
        tool: ToolProgress,
    },
    /// An agent that it started.
    Subagent {
        /// How it stands.
        subagent: SubagentProgress,
    },
    /// What it means to do, and how far it has come.
    Plan(PlanProgress),
    /// An answer of its model is complete.
    Usage {
        /// What the run has used so far.
        usage: RunUsage,
    },
    /// A call of an MCP server is over.
    Mcp {
        /// The call.
        call: Box<McpCall>,
    },
    /// Somebody has said something to it.
    Input {
        /// What.
        text: String,
        /// `steer` or `follow_up`.
        how: String,
        /// Who.
        from: String,
    },
    /// The agent asks whoever looks on; `agent.answer` answers.
    Question {
        /// What.
        question: Question,
    },
    /// A question needs no answer any more.
    Answered {
        /// Which one.
        ask_id: String,
        /// What became of it.
        outcome: String,
    },
    /// Something that whoever looks on should know.
    Notice {
        /// A name for it: `model_retry`, `compaction`, `mcp_server`, `restarted`.
        name: String,
        /// For people.
        message: String,
    },
    /// A word of a later version.
    #[serde(other)]
    Other,
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, which the answer names.
    pub ask_id: String,
    /// What is asked.
    pub text: String,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether other words will do as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
    /// Until when.
    pub deadline: String,
}

/// How a call of a tool stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// The tool.
    pub name: String,
    /// The call.
    pub call_id: String,
    /// Where it stands.
    pub status: ToolStatus,
    /// `status` is `arguments` or `output`: a piece of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    /// `status` is `called`: what it was called with, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The keyed hash of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<String>,
    /// `status` is `done`: what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Where a call of a tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The model begins to write it.
    Started,
    /// A piece of its arguments.
    Arguments,
    /// Its arguments are complete.
    Called,
    /// A piece of what it puts out.
    Output,
    /// It is over.
    Done,
}

/// How an agent stands that a run has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubagentProgress {
    /// Its number below the one that started it, from the outermost on.
    pub path: Vec<u64>,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: SubagentState,
    /// The session it keeps its history under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it does, or what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// Where an agent stands that a run has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentState {
    /// It has begun.
    Started,
    /// It works.
    Working,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was ended.
    Cancelled,
}

impl From<TaskState> for SubagentState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Started => SubagentState::Started,
            TaskState::Progress | TaskState::Other => SubagentState::Working,
            TaskState::Done => SubagentState::Done,
            TaskState::Failed => SubagentState::Failed,
            TaskState::Cancelled => SubagentState::Cancelled,
        }
    }
}

/// The plan of a run's agent, or of one below it. It takes the place of the last plan of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProgress {
    /// The call that said so.
    pub call_id: String,
    /// Whose it is, if that is an agent that was started: its number below the one that started it, from the outermost on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u64>,
    /// The name of that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The plan, whole.
    #[serde(flatten)]
    pub plan: Plan,
    /// How much of it is done, rounded down; absent if it has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

impl From<PlanUpdate> for PlanProgress {
    fn from(update: PlanUpdate) -> Self {
        let PlanUpdate { tool_id: call_id, path, mut agents, plan } = update;
        let percent = plan.percent();
        PlanProgress { call_id, path, name: agents.pop(), plan, percent }
    }
}

/// As the agent had said it, but for the names of those between.
impl From<PlanProgress> for PlanUpdate {
    fn from(progress: PlanProgress) -> Self {
        let PlanProgress { call_id: tool_id, path, name, plan, .. } = progress;
        PlanUpdate { tool_id, path, agents: name.into_iter().collect(), plan }
    }
}

/// `agent.run.completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCompleted {
    /// Which run.
    pub run_id: RunId,
    /// The last thing its model said, without secrets.
    pub result: String,
    /// What it used.
    pub usage: RunUsage,
    /// How long it took.
    pub duration_ms: u64,
}

/// `agent.run.failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFailed {
    /// Which run.
    pub run_id: RunId,
    /// What went wrong.
    pub error: ErrorEnvelope,
    /// Whether somebody wanted its end.
    pub cancelled: bool,
    /// What it used.
    #[serde(default)]
    pub usage: RunUsage,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
}
