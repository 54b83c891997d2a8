//! Settings of completions, `llm.complete`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Completions that the daemon has a model make: that of `agent.model`, called as section `model` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LlmConfig {
    /// Questions that a model is asked at once; others wait.
    pub at_once: usize,
    /// How long an answer may take, in seconds, the wait included.
    pub timeout_s: u64,
}

impl Default for LlmConfig {
    fn default() -> Self {
        LlmConfig { at_once: 4, timeout_s: 300 }
    }
}
