//! The twelve commands of the contract.

use serde::{Deserialize, Serialize};

/// A file that belongs to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Where the child can read it.
    pub path: String,
    /// What to call it; the last part of the path if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A hint at what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
}

/// What a parent may ask of a child. The id is any string, the empty one included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Begin a turn.
    Prompt {
        /// Echoed in the response.
        id: String,
        /// What the user says.
        message: String,
        /// Files that belong to it.
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    /// Begin a turn once nothing else runs.
    FollowUp {
        /// Echoed in the response.
        id: String,
        /// What the user says.
        message: String,
    },
    /// Replace the history by a summary of it.
    Compact {
        /// Echoed in the response.
        id: String,
    },
    /// Go on with an empty history under a new session id.
    NewSession {
        /// Echoed in the response.
        id: String,
    },
    /// The history.
    GetMessages {
        /// Echoed in the response.
        id: String,
    },
    /// Use another model from the next turn on.
    SetModel {
        /// Echoed in the response.
        id: String,
        /// Its name.
        model: String,
    },
    /// The models that can be used now.
    GetAvailableModels {
        /// Echoed in the response.
        id: String,
    },
    /// End what is running.
    Abort {
        /// Echoed in the response.
        id: String,
    },
    /// What the session has used so far.
    GetSessionStats {
        /// Echoed in the response.
        id: String,
    },
    /// What the child is doing.
    GetState {
        /// Echoed in the response.
        id: String,
    },
    /// The tools and their schemas. The one command whose id may be missing; it is then answered as `""`.
    ToolsList {
        /// Echoed in the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Finish, save and exit. Never answered.
    Shutdown,
}
