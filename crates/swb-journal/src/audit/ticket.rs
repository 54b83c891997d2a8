//! What a caller holds until its record is in the file: to be awaited in async code, or waited for on a thread.
//!
//! No runtime is needed: the log's side fills the slot and wakes whoever left a waker or sleeps on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::append::AppendError;
use super::hash::ChainHash;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: ChainHash,
}

pub(super) type Outcome = Result<Receipt, AppendError>;

/// An append under way. Dropping it does not take the record back.
#[derive(Debug)]
#[must_use = "the record is in the file only when the ticket says so"]
pub struct Ticket {
    slot: Arc<Slot>,
}

impl Ticket {
    pub(super) fn new() -> (Self, Arc<Slot>) {
        let slot = Arc::<Slot>::default();
        (Ticket { slot: Arc::clone(&slot) }, slot)
    }

    /// Sleeps until the record is in the file, or cannot be.
    pub fn wait(self) -> Outcome {
        let mut state = self.slot.state();
        loop {
            match state.outcome.take() {
                Some(outcome) => return outcome,
                None => {
                    state.sleeper = true;
                    state = self.slot.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.slot.state();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    state.waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

/// The log's end of a ticket.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    /// A thread waits. To wake one is a system call, whether or not there is any.
    sleeper: bool,
}

impl Slot {
    pub(super) fn fill(&self, outcome: Outcome) {
        let mut state = self.state();
        state.outcome = Some(outcome);
        let (waker, sleeper) = (state.waker.take(), state.sleeper);
        drop(state);
        if sleeper {
            self.filled.notify_one();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    const RECEIPT: Receipt = Receipt { number: 7, hash: ChainHash::NONE };

    #[test]
    fn a_ticket_that_is_awaited_is_woken_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let (mut ticket, slot) = Ticket::new();
        assert!(Pin::new(&mut ticket).poll(&mut context).is_pending());
        assert!(Pin::new(&mut ticket).poll(&mut context).is_pending());
        slot.fill(Ok(RECEIPT));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(matches!(Pin::new(&mut ticket).poll(&mut context), Poll::Ready(Ok(RECEIPT))));
    }

    #[test]
    fn a_ticket_that_is_waited_for_returns_before_and_after() {
        let (ticket, slot) = Ticket::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(move || ticket.wait());
            slot.fill(Ok(RECEIPT));
            assert!(matches!(waiter.join().unwrap(), Ok(RECEIPT)));
        });
        let (ticket, slot) = Ticket::new();
        slot.fill(Ok(RECEIPT));
        assert!(matches!(ticket.wait(), Ok(RECEIPT)));
    }
}
