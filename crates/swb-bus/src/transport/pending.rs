//! The unanswered requests of one connection, by the id they came with.

use std::collections::HashMap;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use swb_proto::error::{ERR_HANDLER, ERR_SHUTTING_DOWN};
use swb_proto::id::CorrelationId;
use swb_proto::line::Dialect;
use swb_proto::{BusError, BusResult};

use crate::cancel::{CancelSignal, StopReason};
use crate::message::BusCallError;

/// An answer that has come, and how to send it.
pub(super) struct Answer {
    pub(super) dialect: Dialect,
    /// The id as it stood on the wire.
    pub(super) id: String,
    pub(super) correlation: Option<CorrelationId>,
    pub(super) result: BusResult,
}

#[derive(Default)]
pub(super) struct PendingCalls {
    /// Whether somebody was asked to agree, and how to cancel it.
    by_id: HashMap<String, (bool, CancelSignal)>,
    answers: FuturesUnordered<BoxFuture<'static, Answer>>,
}

impl PendingCalls {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Keeps a request until its result is there, with how to cancel it and whether somebody was asked to agree.
    pub(super) fn add(
        &mut self,
        dialect: Dialect,
        id: &str,
        correlation: Option<CorrelationId>,
        how: (bool, CancelSignal),
        result: impl Future<Output = BusResult> + Send + 'static,
    ) {
        let id = id.to_owned();
        self.by_id.insert(id.clone(), how);
        let answer = async move { Answer { dialect, id, correlation, result: result.await } };
        self.answers.push(answer.boxed());
    }

    /// Cancels the request with this wire id; false if there is none.
    pub(super) fn cancel(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|(_, signal)| signal.stop(StopReason::Cancelled))
    }

    /// Ends what waits for somebody to agree.
    pub(super) fn stop_asking(&self, reason: StopReason) {
        for (_, signal) in self.by_id.values().filter(|(asks, _)| *asks) {
            signal.stop(reason);
        }
    }

    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.answers.poll_next_unpin(cx) {
            Poll::Ready(Some(answer)) => {
                self.by_id.remove(&answer.id);
                Poll::Ready(answer)
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

const REPLY_DROPPED: &str = "REPLY_DROPPED";
const NOT_SENT: &str = "NOT_SENT";

/// A call that got no answer, as the error its client is told.
pub(super) fn unanswered(error: BusCallError) -> BusError {
    match error {
        BusCallError::Send => StopReason::ShuttingDown.to_error().because(NOT_SENT),
        BusCallError::Recv | BusCallError::Full => {
            BusError::new(ERR_HANDLER, "the handler ended without an answer").because(REPLY_DROPPED)
        }
    }
}

/// The other way round: what the caller in the daemon's place would have got.
pub(super) fn call_error(error: &BusError) -> Option<BusCallError> {
    match (error.code, error.reason()) {
        (ERR_SHUTTING_DOWN, NOT_SENT) => Some(BusCallError::Send),
        (ERR_HANDLER, REPLY_DROPPED) => Some(BusCallError::Recv),
        _ => None,
    }
}
