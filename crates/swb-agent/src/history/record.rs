//! Lines of a history file.
//!
//! The first line names the session; each further one is a message, a figure or a change. A kind of line that a later
//! version adds is skipped by this one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swb_proto::agent::{Message, TurnUsage};

/// The version that new files are written in.
pub(super) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record {
    Session {
        version: u32,
        id: String,
        created_at: String,
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
        /// The session that started this one, if it is a subagent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        cwd: PathBuf,
    },
    /// A turn begins. Together with its end, what `glance` reads instead of everything in between.
    TurnStart {
        number: u64,
        model: String,
        /// How the user's words begin, on one line.
        preview: String,
    },
    TurnEnd {
        number: u64,
        model: String,
        outcome: TurnOutcome,
    },
    Message {
        message: Message,
    },
    Usage {
        usage: TurnUsage,
        /// The call was about the conversation, not a part of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        aside: bool,
    },
    Model {
        model: String,
    },
    Compacted {
        /// So many messages from the beginning …
        count: usize,
        /// … were replaced by these.
        messages: Vec<Message>,
    },
    #[serde(other)]
    Unknown,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnOutcome {
    /// The model came to its end.
    Done,
    /// Somebody aborted it.
    Cancelled,
    /// It broke off.
    Failed,
    /// Something that a later version knows.
    #[serde(other)]
    Other,
}

/// How much of what a user says is kept as a preview, in characters.
const PREVIEW_CHARS: usize = 120;

/// How a message begins, on one line.
pub(super) fn preview(message: &Message) -> String {
    let words = message.user_text().into_iter().flat_map(str::split_whitespace);
    words.flat_map(|word| [" ", word]).skip(1).flat_map(str::chars).take(PREVIEW_CHARS).collect()
}
