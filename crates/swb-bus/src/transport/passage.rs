//! One command's way through the gate and the bus, from a line that was understood to what may be answered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use swb_proto::error::ERR_POLICY_DENIED;
use swb_proto::{BusError, BusPayload, BusResult};

use super::pending::unanswered;
use crate::call::Started;
use crate::cancel::{CancelSignal, StopReason};
use crate::context::Caller;
use crate::dispatch::Bus;
use crate::gate::{Admission, Closing, Command, Guest, Receipt};
use crate::message::BusCallError;

/// What has become of a command so far.
pub(super) enum Passage {
    /// This may be answered.
    Answered(BusResult),
    /// This will be.
    Later {
        /// How to cancel it.
        signal: CancelSignal,
        /// Whether somebody is asked first. The end of the bus does not end that.
        asks: bool,
        /// What may be answered then.
        result: BoxFuture<'static, BusResult>,
    },
}

/// A request: through the gate, to its handler, and back through the gate.
pub(super) fn request(
    bus: &Arc<Bus>,
    guest: Option<&dyn Guest>,
    caller: &Arc<Caller>,
    (id, params): (&str, Option<&RawValue>),
    method: String,
    payload: BusPayload,
) -> Passage {
    let Some(guest) = guest else { return started(bus.start(caller, None, method, payload), None) };
    let command = Command { id: Some(id), method: &method, params, payload: &payload, can_wait: true };
    match guest.admit(caller, &command) {
        Admission::Refused(error) => Passage::Answered(Err(error)),
        Admission::Go(receipt) => started(bus.start(caller, None, method, payload), Some(receipt)),
        Admission::Wait(agreed) => {
            let signal = CancelSignal::new();
            let (bus, caller) = (Arc::clone(bus), Arc::clone(caller));
            let result = once_agreed(bus, caller, signal.clone(), agreed, method, payload).boxed();
            Passage::Later { signal, asks: true, result }
        }
    }
}

/// What the connection does itself: it can be refused, but it cannot wait for somebody to agree.
pub(super) fn at_once(
    guest: Option<&dyn Guest>,
    caller: &Arc<Caller>,
    command: &Command<'_>,
    work: impl FnOnce() -> BusResult,
) -> Passage {
    let Some(guest) = guest else { return Passage::Answered(work()) };
    match guest.admit(caller, command) {
        Admission::Refused(error) => Passage::Answered(Err(error)),
        Admission::Go(receipt) => closed(receipt, work()),
        Admission::Wait(refusal) => {
            let result = async move {
                match refusal.await {
                    Err(error) => Err(error),
                    Ok(receipt) => receipt.close(Err(too_late())).settled().await,
                }
            };
            Passage::Later { signal: CancelSignal::new(), asks: false, result: result.boxed() }
        }
    }
}

/// The gate agreed to something that had to begin at once.
fn too_late() -> BusError {
    BusError::new(ERR_POLICY_DENIED, "it was allowed too late").because("ALLOWED_TOO_LATE")
}

fn started(started: Result<Started, BusCallError>, receipt: Option<Box<dyn Receipt>>) -> Passage {
    let result = match started {
        Ok(Started::Pending(call)) => {
            let signal = call.cancel_signal().clone();
            let result = async move {
                let result = call.answer().await.unwrap_or_else(|error| Err(unanswered(error)));
                match receipt {
                    Some(receipt) => receipt.close(result).settled().await,
                    None => result,
                }
            };
            return Passage::Later { signal, asks: false, result: result.boxed() };
        }
        Ok(Started::Done(result)) => result,
        Err(error) => Err(unanswered(error)),
    };
    match receipt {
        Some(receipt) => closed(receipt, result),
        None => Passage::Answered(result),
    }
}

fn closed(receipt: Box<dyn Receipt>, result: BusResult) -> Passage {
    match receipt.close(result) {
        Closing::Now(result) => Passage::Answered(result),
        // What was done cannot be cancelled any more; the signal is heard by nobody.
        Closing::Later(result) => Passage::Later { signal: CancelSignal::new(), asks: false, result },
    }
}

/// A request that somebody has to agree to first.
async fn once_agreed(
    bus: Arc<Bus>,
    caller: Arc<Caller>,
    signal: CancelSignal,
    agreed: BoxFuture<'static, Result<Box<dyn Receipt>, BusError>>,
    method: String,
    payload: BusPayload,
) -> BusResult {
    let too_late = async {
        match caller.meta().timeout_ms {
            Some(patience) => tokio::time::sleep(Duration::from_millis(patience)).await,
            None => std::future::pending().await,
        }
    };
    let receipt = tokio::select! {
        biased;
        agreed = agreed => agreed?,
        reason = signal.cancelled() => return Err(reason.to_error()),
        () = too_late => return Err(StopReason::TimedOut.to_error()),
    };
    match started(bus.start(&caller, None, method, payload), Some(receipt)) {
        Passage::Answered(result) => result,
        Passage::Later { signal: inner, mut result, .. } => tokio::select! {
            biased;
            result = &mut result => result,
            reason = signal.cancelled() => {
                inner.stop(reason);
                result.await
            }
        },
    }
}
