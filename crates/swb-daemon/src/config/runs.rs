//! Settings of the agents that the daemon runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunsConfig {
    /// Runs that work at once; others wait.
    pub slots: usize,
    /// How long an agent at rest is kept, in seconds. It goes on from its history when it is needed again.
    pub idle_s: u64,
    /// How long a question waits for an answer while somebody looks on, in seconds.
    pub answer_here_s: u64,
    /// How long it waits for somebody who comes later, in seconds; a day at most.
    pub answer_later_s: u64,
    /// `auto`: agents are contained where the kernel allows it. `off`: they are not.
    pub containment: String,
    /// Messages of its task's bus that may reach an agent in a row without a person; others wait.
    pub messages_in_a_row: u32,
}

impl Default for RunsConfig {
    fn default() -> Self {
        RunsConfig {
            slots: 16,
            idle_s: 600,
            answer_here_s: 15 * 60,
            answer_later_s: 24 * 60 * 60,
            containment: "auto".to_owned(),
            messages_in_a_row: 3,
        }
    }
}

/// An agent of the user's own: a program that is driven over its standard input and output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunnerConfig {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// `auto` (the usual) or `off`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub containment: String,
}

impl RunsConfig {
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.slots == 0 {
            return Err(("runs.slots", "must be at least 1".to_owned()));
        }
        for (key, time) in
            [("runs.answer_here_s", self.answer_here_s), ("runs.answer_later_s", self.answer_later_s)]
        {
            if !(1..=24 * 60 * 60).contains(&time) {
                return Err((key, "must be from 1 to 86400".to_owned()));
            }
        }
        if !matches!(self.containment.as_str(), "auto" | "off") {
            return Err(("runs.containment", "must be auto or off".to_owned()));
        }
        Ok(())
    }
}
