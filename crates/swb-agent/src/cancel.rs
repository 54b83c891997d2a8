//! A wish to stop, shared by those who wish and those who work.

use tokio::sync::watch;

/// Cheap to clone; once cancelled, for ever cancelled.
#[derive(Debug, Clone)]
pub(crate) struct Cancel(watch::Sender<bool>);

impl Cancel {
    pub(crate) fn new() -> Self {
        Cancel(watch::Sender::new(false))
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once somebody has cancelled.
    pub(crate) async fn cancelled(&self) {
        // The sender lives as long as we do, so this ends only when the value is true.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}
