//! What becomes of a subagent, for parents that show more than the contract's three events hold.

use serde::{Deserialize, Serialize};

use super::event::TurnUsage;

/// How far a subagent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It is ready and has got its task.
    Started,
    /// It does something.
    Progress,
    /// It has come to its end.
    Done,
    /// It broke off.
    Failed,
    /// It was told to stop.
    Cancelled,
    /// Something that a later version knows.
    #[serde(other)]
    Other,
}

/// What is known of it. A key that is not there is not known, or has not changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskUpdate {
    /// The `subagent_id`s that lead to it, its own last. Each is counted by the process that started it.
    pub path: Vec<u64>,
    /// The names that belong to them.
    pub agents: Vec<String>,
    /// How far it has come.
    pub state: TaskState,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether its parent goes on while it works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// What it does, in free words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// How its result begins, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// What it has used in all, its own subagents included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TurnUsage>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_secs: Option<f64>,
}
