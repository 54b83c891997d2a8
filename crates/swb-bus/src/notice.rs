//! Notifications on their way to one subsystem: a bounded queue and the task that empties it.
//!
//! Each subsystem has its own, so a flood for one neither delays nor displaces the notifications of another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use swb_proto::BusPayload;
use tokio::sync::mpsc;

use crate::handler::BusHandler;
use crate::message::BusCallError;
use crate::stats::{Stats, Throttle, count, panic_error};

#[derive(Debug)]
pub(crate) struct NoticeQueue {
    sender: mpsc::Sender<Notice>,
    dropped: Throttle,
}

#[derive(Debug)]
struct Notice {
    method: String,
    payload: BusPayload,
}

impl NoticeQueue {
    /// Starts the task that hands notices to `handler`. It ends when the queue is dropped.
    pub(crate) fn start(handler: Arc<dyn BusHandler>, capacity: usize, stats: Arc<Stats>) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Notice>(capacity);
        tokio::spawn(async move {
            while let Some(Notice { method, payload }) = receiver.recv().await {
                let call = AssertUnwindSafe(|| handler.handle_notification(&method, payload));
                if let Err(panic) = catch_unwind(call) {
                    panic_error(&stats, handler.prefix(), &*panic);
                }
            }
        });
        NoticeQueue { sender, dropped: Throttle::default() }
    }

    pub(crate) fn push(
        &self,
        method: String,
        payload: BusPayload,
        stats: &Stats,
    ) -> Result<(), BusCallError> {
        match self.sender.try_send(Notice { method, payload }) {
            Ok(()) => {
                count(&stats.notifications);
                Ok(())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(BusCallError::Send),
            Err(mpsc::error::TrySendError::Full(notice)) => {
                count(&stats.notifications_dropped);
                if let Some(dropped) = self.dropped.pass() {
                    tracing::warn!(
                        method = notice.method,
                        dropped,
                        "a queue is full: notifications were dropped"
                    );
                }
                Err(BusCallError::Full)
            }
        }
    }
}
