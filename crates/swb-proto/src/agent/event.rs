//! The eight events of the contract and the six that stream inside `message_update`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a turn has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Tokens sent to the model, those from a cache not counted.
    pub input_tokens: u64,
    /// Tokens that came back.
    pub output_tokens: u64,
    /// Tokens that a cache supplied.
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    /// Tokens that went into a cache.
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
    /// The share of cache writes that is kept for five minutes, if told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_5m: Option<u64>,
    /// The share of cache writes that is kept for an hour, if told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_1h: Option<u64>,
    /// The model, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether any of it is a guess, because a server counted nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl TurnUsage {
    /// Adds the figures of another model call.
    pub fn add(&mut self, other: &TurnUsage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.cache_creation_5m = sum(self.cache_creation_5m, other.cache_creation_5m);
        self.cache_creation_1h = sum(self.cache_creation_1h, other.cache_creation_1h);
        self.estimated |= other.estimated;
    }
}

/// What a child tells its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A piece of the answer that is being made.
    MessageUpdate {
        /// The piece.
        event: AssistantEvent,
    },
    /// A subagent begins.
    SubagentStart {
        /// Counted from 1 in each process.
        subagent_id: u64,
        /// Its name.
        agent_name: String,
        /// How its task begins.
        task_preview: String,
    },
    /// A subagent does something.
    SubagentUpdate {
        /// As in its start.
        subagent_id: u64,
        /// Its name.
        agent_name: String,
        /// What it does, in free words.
        status: String,
    },
    /// A subagent has ended.
    SubagentDone {
        /// As in its start.
        subagent_id: u64,
        /// Its name.
        agent_name: String,
        /// How its result begins.
        result_preview: String,
        /// How long it took.
        duration_secs: f64,
    },
    /// The turn is over. Exactly one per turn, right before its response.
    AgentEnd {
        /// What it used.
        usage: TurnUsage,
    },
    /// The one answer to a command.
    Response {
        /// The command's id.
        id: String,
        /// The command's name.
        command: String,
        /// Further keys, on the same level, in alphabetical order.
        #[serde(flatten)]
        body: BTreeMap<String, Value>,
    },
    /// Something went wrong.
    Error {
        /// The command it is about, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// What, for people.
        message: String,
    },
    /// The first frame of all.
    Ready {
        /// What `--continue` takes.
        session_id: String,
        /// The model in use.
        model: String,
        /// [`super::PROTOCOL_VERSION`].
        protocol_version: u32,
    },
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantEvent {
    /// Text.
    TextDelta {
        /// The piece.
        delta: String,
    },
    /// Thinking.
    ThinkingDelta {
        /// The piece.
        delta: String,
    },
    /// The model begins to call a tool.
    ToolcallStart {
        /// The model's name for this call; unique within a turn only.
        tool_id: String,
        /// The tool.
        tool_name: String,
    },
    /// A fragment of the arguments' JSON text.
    ToolcallInputDelta {
        /// As in the start.
        tool_id: String,
        /// The fragment.
        delta: String,
    },
    /// The arguments, whole.
    ToolcallInput {
        /// As in the start.
        tool_id: String,
        /// The arguments.
        input: Value,
    },
    /// What the tool returned.
    ToolcallResult {
        /// As in the start.
        tool_id: String,
        /// Always text; failures too.
        result: String,
    },
}
