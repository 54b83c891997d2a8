//! What a running daemon says of itself in a file, for those who cannot ask it: which process, which socket.
//!
//! It is there exactly while a daemon runs. Left behind by a crash, it is wrong until the next start replaces it, so
//! nobody takes its existence for life: the lock and the socket tell that.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use swb_proto::Timestamp;

/// The content of `control.meta.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The daemon's process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it became ready.
    pub started_at: Timestamp,
    /// Its control socket.
    pub socket: String,
    /// Its HTTP server; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
}

impl Description {
    /// Reads the file, if there is one and it is whole.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Puts the file in place in one step.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(&draft, text)?;
        std::fs::rename(&draft, path)
    }
}
