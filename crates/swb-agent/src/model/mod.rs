//! What answers: the seam between the agent and whatever makes its words.
//!
//! A [`Model`] turns a [`Prompt`] into a stream of [`Delta`]s. The stream is pulled, so a parent that does not read slows
//! the model down, and dropping it ends the call. It is whole only if it ends with [`Delta::Stop`]: one that just stops
//! was cut off. `catalogue` knows the names, `demo` needs neither key nor network, `remote` calls a [`provider`].

pub(crate) mod catalogue;
pub(crate) mod demo;
mod error;
mod files;
mod known;
mod price;
pub mod provider;
pub(crate) mod remote;
pub mod settings;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde_json::Value;
use swb_proto::agent::{AddedEvent, Message, TurnUsage};

pub use error::{ModelError, Unusable};
pub use files::{FileBody, Files, Inputs};

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation so far, the latest last.
    pub messages: Vec<Arc<Message>>,
    /// The contents of the files that the messages name.
    pub files: Files,
    /// What holds for the whole conversation.
    pub system: Arc<str>,
    /// What is wanted.
    pub task: Task,
    /// How much to think.
    pub thinking: Thinking,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
}

/// A tool as a model knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub input_schema: Value,
}

impl ToolSpec {
    /// The tools as `tools_list` shows them.
    pub(crate) fn list(described: &Value) -> Vec<ToolSpec> {
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let described = described.as_array().into_iter().flatten();
        described
            .map(|tool| ToolSpec {
                name: text(tool, "name"),
                description: text(tool, "description"),
                input_schema: tool["input_schema"].clone(),
            })
            .collect()
    }
}

/// What is wanted of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The next message of the conversation.
    Answer,
    /// A text that can stand for a conversation. The messages and the system prompt say all that is needed; no tools are
    /// offered.
    Summarise,
}

/// How much a model shall think before it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// As the model sees fit.
    #[default]
    Medium,
    /// A lot.
    High,
}

impl Thinking {
    const NAMES: [(&'static str, Thinking); 4] = [
        ("off", Thinking::Off),
        ("low", Thinking::Low),
        ("medium", Thinking::Medium),
        ("high", Thinking::High),
    ];

    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, level)| level)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, level)| *level == self).map_or("medium", |(name, _)| name)
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// Text.
    Text(String),
    /// A thought of its own begins. Not needed if there is only one.
    ThoughtStart,
    /// Thinking.
    Thinking(String),
    /// The provider's seal on the thinking so far.
    Signature(String),
    /// A tool is going to be called.
    CallStart {
        /// The model's name for the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A fragment of the arguments of a call.
    CallInput {
        /// Which call.
        id: String,
        /// The fragment.
        delta: String,
    },
    /// What this call of the model has used, as far as it is known; each report replaces the one before.
    Usage(TurnUsage),
    /// Nothing was said so far, and it is tried again after a while.
    Retry(Retry),
    /// The answer is whole.
    Stop,
}

/// An attempt that failed, and the wait before the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts have failed.
    pub attempt: u32,
    /// How many further ones are made at most.
    pub retries: u32,
    /// How long until the next.
    pub wait: Duration,
    /// Why it failed.
    pub reason: String,
}

impl Retry {
    /// What the parent sees of it.
    pub(crate) fn event(&self) -> AddedEvent {
        let wait_ms = u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX);
        AddedEvent::ModelRetry {
            attempt: self.attempt,
            retries: self.retries,
            wait_ms,
            reason: self.reason.clone(),
        }
    }
}

/// The pieces of one answer.
pub type Deltas = BoxStream<'static, Result<Delta, ModelError>>;

/// Something that answers.
pub trait Model: Debug + Send + Sync {
    /// Begins an answer. Nothing happens until the stream is pulled.
    fn answer(&self, prompt: Prompt) -> Deltas;

    /// Which attached files it can be given. Text goes to every model.
    fn inputs(&self) -> Inputs {
        Inputs::default()
    }
}
