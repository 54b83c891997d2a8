//! What is wanted of a session.

use swb_proto::id::RunId;
use swb_proto::run::{AnswerParams, Progress, RunUsage};
use swb_proto::{BusError, Timestamp};
use tokio::sync::oneshot;

use super::inbox::Parcel;
use super::kept::KeptRun;

/// How something is said to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It hears it before its next step.
    Steer,
    /// It hears it when it is done.
    FollowUp,
}

/// What is wanted of a session.
#[derive(Debug)]
pub(super) enum Order {
    /// Another run.
    Run(Box<KeptRun>),
    /// The end of a run.
    Cancel { run: RunId, reason: Option<String>, done: oneshot::Sender<()> },
    /// Something for the run under way; no answer if there is none.
    Tell { how: How, text: String, from: String, done: oneshot::Sender<Result<RunId, BusError>> },
    /// A message from the bus for the run under way.
    Give { parcel: Box<Parcel>, done: oneshot::Sender<Result<RunId, BusError>> },
    /// Something about the run under way that its agent did not say.
    Remark(Box<Progress>),
    /// An answer to what the run under way has asked.
    Answer { answer: Box<AnswerParams>, done: oneshot::Sender<Result<RunId, BusError>> },
    /// What the run under way waits for.
    Look { done: oneshot::Sender<Option<Look>> },
    /// The session is over.
    End,
}

/// What the run under way is at.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) run: RunId,
    pub(super) is_starting: bool,
    pub(super) calls: Vec<(String, String, Timestamp)>,
    pub(super) since: Timestamp,
    pub(super) text: String,
    pub(super) usage: RunUsage,
}
