//! What answers: the seam between the agent and whatever makes its words.
//!
//! A [`Model`] turns a [`Prompt`] into a stream of [`Delta`]s. The stream is pulled, so a parent that does not read slows
//! the model down, and dropping it ends the call. It is whole only if it ends with [`Delta::Stop`]: one that just stops
//! was cut off. `catalogue` knows the names, `demo` needs neither key nor network.

pub(crate) mod catalogue;
pub(crate) mod demo;
mod files;

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use swb_proto::agent::{Message, TurnUsage};

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
    /// The answer is whole.
    Stop,
}

/// Why there is no answer, or only a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No such model, or no way to reach it.
    #[error("model `{name}` cannot be used here; `get_available_models` lists those that can")]
    Unusable {
        /// The name.
        name: String,
    },
    /// The stream ended in the middle.
    #[error("the model's answer was cut off")]
    CutOff,
    /// Nothing was said.
    #[error("model returned an empty response")]
    Empty,
    /// The conversation does not fit into the model's context; a shorter one may.
    #[error("the conversation is too long for the model: {message}")]
    TooLong {
        /// The model's words.
        message: String,
    },
    /// The model said that it failed.
    #[error("{message}")]
    Failed {
        /// Its words.
        message: String,
    },
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
