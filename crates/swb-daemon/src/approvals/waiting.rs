//! Who waits for which outcome.

use std::collections::HashMap;

use swb_rules::approval::{Approval, Outcome};
use tokio::sync::watch;

use super::error::WaitError;

/// A question that was put, and its outcome to come.
#[derive(Debug)]
pub struct Waiting {
    approval: Approval,
    end: watch::Receiver<Option<End>>,
}

type End = Result<Outcome, WaitError>;

impl Waiting {
    /// The question as it stood when waiting began.
    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Waits for the outcome. It may be dropped at any time: the question stays.
    pub async fn outcome(mut self) -> Result<Outcome, WaitError> {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(Err(WaitError::Stopping)),
            Err(_) => Err(WaitError::Stopping),
        }
    }
}

#[derive(Debug)]
struct Awaited {
    deadline: u64,
    sender: watch::Sender<Option<End>>,
}

/// Everybody who waits. At most one entry per pending question, however many wait for it.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    by_approval: HashMap<String, Awaited>,
    stopping: bool,
}

impl Waiters {
    /// Begins to wait.
    pub(super) fn join(&mut self, approval: Approval) -> Waiting {
        let end = match &approval.outcome {
            Some(outcome) => watch::channel(Some(Ok(outcome.clone()))).1,
            None if self.stopping => watch::channel(Some(Err(WaitError::Stopping))).1,
            None => {
                let (id, deadline) = (approval.request.id.clone(), approval.deadline);
                let awaited = || Awaited { deadline, sender: watch::channel(None).0 };
                self.by_approval.entry(id).or_insert_with(awaited).sender.subscribe()
            }
        };
        Waiting { approval, end }
    }

    /// The next deadline of one that somebody waits for.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.by_approval.values().map(|awaited| awaited.deadline).min()
    }

    /// Tells whoever still waits though the deadline has passed.
    pub(super) fn give_up(&mut self, now: u64) {
        for (_, awaited) in self.by_approval.extract_if(|_, awaited| awaited.deadline <= now) {
            awaited.sender.send_replace(Some(Err(WaitError::NotKept)));
        }
    }

    /// Tells all who wait for it.
    pub(super) fn tell(&mut self, approval: &str, end: End) {
        if let Some(awaited) = self.by_approval.remove(approval) {
            awaited.sender.send_replace(Some(end));
        }
    }

    /// Tells everybody that the daemon stops.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        for (_, awaited) in self.by_approval.drain() {
            awaited.sender.send_replace(Some(Err(WaitError::Stopping)));
        }
    }

    pub(super) fn are_stopping(&self) -> bool {
        self.stopping
    }
}
