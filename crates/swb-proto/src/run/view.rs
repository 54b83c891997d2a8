//! A run as whoever looks at it sees it: how it stands, and what it waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::Timestamp;
use crate::id::{ApprovalId, RunId};

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
