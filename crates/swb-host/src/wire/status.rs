//! How a host and its child are, as JSON: the one body that may grow.

use serde::{Deserialize, Serialize};

use super::Stream;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// How a host and its child are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the words that this host speaks.
    pub version: u16,
    /// The host's own process.
    pub host_pid: u32,
    /// The child's, as the host sees it.
    pub child_pid: u32,
    /// What holds the child.
    pub containment: Containment,
    /// Set once it has ended.
    pub exit: Option<Exit>,
    /// What came out so far.
    pub out: Vec<OutStatus>,
    /// What went in so far.
    pub input: Vec<InStatus>,
}

/// How well the child is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Containment {
    /// In namespaces of its own.
    Namespaces,
    /// The kernel refused them: only process groups and good manners hold it.
    Advisory {
        /// What the kernel said.
        reason: String,
    },
    /// Nobody asked for any.
    Off,
}

/// One stream out of the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutStatus {
    /// Which one.
    pub stream: Stream,
    /// The first byte still kept.
    pub kept_from: u64,
    /// How many bytes came out so far.
    pub end: u64,
    /// It is not read now because nothing more can be kept.
    pub full: bool,
}

/// One stream into the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InStatus {
    /// Which one.
    pub stream: Stream,
    /// The number of the last write taken.
    pub taken: u64,
    /// Bytes taken that the child has not read yet.
    pub waiting: usize,
}
