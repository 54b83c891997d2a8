//! The messages of a history, as `get_messages` shows them and as the history file keeps them.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or a tool that answers.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

/// Plain text, or blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// What a user wrote.
    Text(String),
    /// What a model said, or what tools returned.
    Blocks(Vec<Block>),
}

// Told apart by what stands there, and read in one pass: a history may have a hundred thousand of them.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(Content::Blocks)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// The thought.
        thinking: String,
        /// The provider's seal on it; empty if there is none.
        #[serde(default)]
        signature: String,
    },
    /// A picture that came with what a user wrote.
    Image {
        /// Its name.
        title: String,
        /// Where its bytes are.
        source: Source,
    },
    /// A PDF or a text that came with what a user wrote.
    Document {
        /// Its name.
        title: String,
        /// Where its bytes are.
        source: Source,
    },
    /// A call of a tool.
    ToolUse {
        /// The model's name for the call.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
    },
    /// The answer to a call.
    ToolResult {
        /// The call's id.
        tool_use_id: String,
        /// What the tool returned.
        content: String,
        /// Whether it failed; only said if it did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Where the bytes of an attached file are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// In a file that is kept beside the history.
    File {
        /// Its name there, which follows from its bytes.
        file_id: String,
        /// What the bytes are, as they themselves tell.
        media_type: String,
        /// How many.
        size: u64,
    },
}

impl Message {
    /// What a user wrote.
    pub fn user(text: impl Into<String>) -> Self {
        Message { role: Role::User, content: Content::Text(text.into()) }
    }

    /// What a model said.
    pub fn assistant(blocks: Vec<Block>) -> Self {
        Message { role: Role::Assistant, content: Content::Blocks(blocks) }
    }

    /// What tools returned.
    pub fn results(blocks: Vec<Block>) -> Self {
        Message { role: Role::User, content: Content::Blocks(blocks) }
    }

    /// Its blocks; none if it is plain text.
    pub fn blocks(&self) -> &[Block] {
        match &self.content {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// What a user wrote, and the files that came with it.
    pub fn with_files(text: impl Into<String>, mut files: Vec<Block>) -> Self {
        files.push(Block::Text { text: text.into() });
        Message { role: Role::User, content: Content::Blocks(files) }
    }

    /// What a user wrote; `None` for anything else.
    pub fn user_text(&self) -> Option<&str> {
        match (self.role, &self.content) {
            (Role::User, Content::Text(text)) => Some(text),
            // Files stand before the text.
            (Role::User, Content::Blocks(blocks)) => blocks.iter().rev().find_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            }),
            (Role::Assistant, _) => None,
        }
    }

    /// The attached files.
    pub fn files(&self) -> impl Iterator<Item = &Source> {
        self.blocks().iter().filter_map(|block| match block {
            Block::Image { source, .. } | Block::Document { source, .. } => Some(source),
            _ => None,
        })
    }

    /// The ids of the tools it calls.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }
}
