//! Settings of the agents that `swb rpc` and `swb run` start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The agents that `swb rpc` and `swb run` start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentConfig {
    /// The model of new sessions; empty for `demo`, which needs neither key nor network.
    pub model: String,
    /// How much a model thinks: `off`, `low`, `medium` or `high`.
    pub thinking: String,
    /// What tools may do: `read-only`, `workspace` or `full`. Not read from a project's file.
    pub tool_mode: String,
    /// The model that summarises long conversations; empty for the one in use.
    pub compaction_model: String,
    /// How much of the result of a tool a model gets to see, in characters.
    pub max_tool_output: usize,
    /// After how many seconds a command of `bash` is killed that asked for no other time.
    pub bash_timeout_s: u64,
    /// The longest time, in seconds, that a command of `bash` may ask for.
    pub bash_max_timeout_s: u64,
    /// After how many seconds a subagent is ended whose task came with no other time.
    pub subagent_timeout_s: u64,
    /// Tools that agents do not have, parted by commas. Not read from a project's file.
    pub disabled_tools: String,
}

impl Default for AgentConfig {
    fn default() -> Self {
        AgentConfig {
            model: String::new(),
            thinking: "off".to_owned(),
            tool_mode: "workspace".to_owned(),
            compaction_model: String::new(),
            max_tool_output: 30_000,
            bash_timeout_s: 30,
            bash_max_timeout_s: 300,
            subagent_timeout_s: 600,
            disabled_tools: String::new(),
        }
    }
}

impl AgentConfig {
    /// The tools that agents do not have.
    pub fn disabled_tools(&self) -> Vec<String> {
        let names = self.disabled_tools.split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Values that have the right type and still make no sense.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !matches!(self.thinking.as_str(), "off" | "low" | "medium" | "high") {
            return Err(("agent.thinking", "must be off, low, medium or high".to_owned()));
        }
        if !matches!(self.tool_mode.as_str(), "read-only" | "workspace" | "full") {
            return Err(("agent.tool_mode", "must be read-only, workspace or full".to_owned()));
        }
        let at_least = |key, value: u64, least: u64| match value {
            _ if value < least => Err((key, format!("must be at least {least}"))),
            _ => Ok(()),
        };
        at_least("agent.max_tool_output", self.max_tool_output as u64, 1000)?;
        at_least("agent.bash_timeout_s", self.bash_timeout_s, 1)?;
        at_least("agent.bash_max_timeout_s", self.bash_max_timeout_s, self.bash_timeout_s)?;
        at_least("agent.subagent_timeout_s", self.subagent_timeout_s, 1)?;
        Ok(())
    }
}

/// What a project's file must not change: what an agent may do in the name of whoever runs it.
pub(super) fn is_the_users_alone(key: &str) -> bool {
    matches!(key, "agent.tool_mode" | "agent.disabled_tools")
        || key.starts_with("agents.")
        || key.starts_with("runs.")
        || key.starts_with("policy.")
        || key.starts_with("audit.")
}
