//! The end of a request before its answer: cancelled, too late, or the bus is closing.
//!
//! One small cell per request is shared by the caller, the handler and the table of requests in flight. It is set once;
//! both sides can wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use swb_proto::BusError;
use swb_proto::error::{ERR_CANCELLED, ERR_SHUTTING_DOWN, ERR_TIMEOUT};
use tokio::sync::Notify;

/// Why work shall stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StopReason {
    /// `$/cancel` named the request.
    Cancelled = 1,
    /// The caller's deadline passed.
    TimedOut = 2,
    /// The bus is closing.
    ShuttingDown = 3,
    /// The caller dropped its future, or its connection broke: nobody waits for the answer.
    CallerGone = 4,
}

impl StopReason {
    fn from_u8(value: u8) -> Option<Self> {
        [StopReason::Cancelled, StopReason::TimedOut, StopReason::ShuttingDown, StopReason::CallerGone]
            .into_iter()
            .find(|reason| *reason as u8 == value)
    }

    /// What the caller is told.
    pub fn to_error(self) -> BusError {
        match self {
            StopReason::Cancelled | StopReason::CallerGone => {
                BusError::new(ERR_CANCELLED, "the request was cancelled")
            }
            StopReason::TimedOut => {
                BusError::new(ERR_TIMEOUT, "the deadline passed before there was an answer")
            }
            StopReason::ShuttingDown => BusError::new(ERR_SHUTTING_DOWN, "the daemon is stopping"),
        }
    }
}

/// Tells a handler that its caller no longer wants the answer.
#[derive(Debug, Clone)]
pub struct CancelSignal(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    reason: AtomicU8,
    changed: Notify,
}

impl CancelSignal {
    pub(crate) fn new() -> Self {
        CancelSignal(Arc::default())
    }

    /// Why the work shall stop, if it shall.
    pub fn reason(&self) -> Option<StopReason> {
        StopReason::from_u8(self.0.reason.load(Ordering::Acquire))
    }

    /// Returns once the work shall stop.
    pub async fn cancelled(&self) -> StopReason {
        loop {
            // Registered before looking, so that a change in between is not missed.
            let changed = self.0.changed.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            changed.await;
        }
    }

    /// Asks for the end. The first reason stays; whether this was the first is returned.
    pub(crate) fn stop(&self, reason: StopReason) -> bool {
        let first =
            self.0.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.0.changed.notify_waiters();
        }
        first
    }
}
