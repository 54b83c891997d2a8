//! A request under way, from the caller's side.

use swb_proto::BusResult;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

use crate::cancel::{CancelSignal, StopReason};
use crate::in_flight::Entry;
use crate::message::BusCallError;

/// A request that was handed to its handler.
#[derive(Debug)]
pub enum Started {
    /// The answer was there at once.
    Done(BusResult),
    /// The handler is still at work.
    Pending(PendingCall),
}

/// The answer to come. Dropping it cancels the work.
#[derive(Debug)]
pub struct PendingCall {
    reply_rx: oneshot::Receiver<BusResult>,
    entry: Entry,
    deadline: Option<Instant>,
}

impl PendingCall {
    pub(crate) fn new(
        reply_rx: oneshot::Receiver<BusResult>,
        entry: Entry,
        deadline: Option<Instant>,
    ) -> Self {
        PendingCall { reply_rx, entry, deadline }
    }

    /// Ends the request early.
    pub fn cancel_signal(&self) -> &CancelSignal {
        &self.entry.signal
    }

    /// The answer, if it is there already.
    pub(crate) fn try_answer(mut self) -> Result<Started, BusCallError> {
        match self.reply_rx.try_recv() {
            Ok(result) => {
                self.entry.answered();
                Ok(Started::Done(result))
            }
            Err(TryRecvError::Closed) => {
                self.entry.answered();
                Err(BusCallError::Recv)
            }
            Err(TryRecvError::Empty) => Ok(Started::Pending(self)),
        }
    }

    /// Waits for the answer, for a reason to stop waiting, or for the deadline.
    pub async fn answer(mut self) -> Result<BusResult, BusCallError> {
        let deadline = self.deadline;
        let too_late = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let signal = self.entry.signal.clone();
        tokio::select! {
            biased;
            reply = &mut self.reply_rx => {
                self.entry.answered();
                reply.map_err(|_| BusCallError::Recv)
            }
            reason = signal.cancelled() => {
                self.entry.answered();
                Ok(Err(reason.to_error()))
            }
            () = too_late => {
                signal.stop(StopReason::TimedOut);
                self.entry.answered();
                Ok(Err(StopReason::TimedOut.to_error()))
            }
        }
    }
}
