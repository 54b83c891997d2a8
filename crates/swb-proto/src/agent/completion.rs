//! One question to a model, without a conversation around it: what the process that asks the model is told, and what it
//! says. Each is one line of JSON; the end of its standard input means that nobody wants the answer any more.

use serde::{Deserialize, Serialize};

use super::TurnUsage;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The prompt.
    pub content: String,
    /// The longest answer that is of use, in bytes.
    pub max_bytes: usize,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Completion {
    /// The model answered.
    Answered {
        /// Its words.
        content: String,
        /// Which model.
        model: String,
        /// What it used.
        usage: TurnUsage,
    },
    /// It did not.
    Failed {
        /// Which model.
        model: String,
        /// Why, for programs: `MODEL_REFUSED`, `MODEL_SILENT` …
        reason: String,
        /// The status of HTTP that a provider refused with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Why, for people.
        message: String,
    },
}
