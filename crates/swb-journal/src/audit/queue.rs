//! Entries that wait to be written, in order and in bounded memory.
//!
//! Whoever writes takes all of them at once, so that a write, and a sync, serve everyone who waits. A writer that syncs
//! gives those it has just woken the chance to come back before it begins again: a sync takes a hundred times as long as
//! they do, and without it they would fall into two groups that take turns.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::append::{AppendError, Work};
use super::entry::Kind;

/// How often a gathering writer looks in vain for those it expects.
const PATIENCE: u32 = 4;

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    limit_bytes: usize,
}

#[derive(Debug)]
struct State {
    waiting: Vec<Work>,
    bytes: usize,
    closed: bool,
    /// The writer sleeps. Nobody does where whoever comes writes.
    idle: bool,
    /// How many came to the last two gatherings.
    company: [usize; 2],
}

impl Queue {
    pub(super) fn new(limit_bytes: usize) -> Self {
        let state = State { waiting: Vec::new(), bytes: 0, closed: false, idle: false, company: [1; 2] };
        Queue { state: Mutex::new(state), filled: Condvar::new(), limit_bytes }
    }

    /// Whether nothing waits, and the log is not closed.
    pub(super) fn is_free(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && !state.closed
    }

    pub(super) fn push(&self, work: Work) -> Result<(), AppendError> {
        let mut state = self.state();
        if state.closed {
            return Err(AppendError::Closed);
        }
        // A single entry is always let in, however small the limit.
        let full = !state.waiting.is_empty() && state.bytes + work.body().len() > self.limit_bytes;
        if full && work.kind != Kind::End {
            return Err(AppendError::Full { bytes: state.bytes });
        }
        state.bytes += work.body().len();
        state.waiting.push(work);
        let idle = state.idle;
        drop(state);
        if idle {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Everything that waits now.
    pub(super) fn take(&self) -> Vec<Work> {
        self.state().take()
    }

    /// Sleeps until something waits, lets those in who are just coming, and takes everything. None after the end.
    pub(super) fn gather(&self) -> Option<Vec<Work>> {
        let mut state = self.state();
        while state.waiting.is_empty() && !state.closed {
            state.idle = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle = false;
        }
        let (mut seen, mut in_vain) = (0, 0);
        loop {
            let here = state.waiting.len();
            if here == 0 {
                return None;
            }
            in_vain = if here == seen { in_vain + 1 } else { 0 };
            if here >= state.expected() || in_vain > PATIENCE || state.closed {
                state.company = [here, state.company[0]];
                return Some(state.take());
            }
            seen = here;
            drop(state);
            std::thread::yield_now();
            state = self.state();
        }
    }

    /// Takes nothing more in. What waits is still written.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Vec<Work> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    fn expected(&self) -> usize {
        let [last, before] = self.company;
        if last.max(before) == 1 { 1 } else { last + before }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, Status};
    use super::super::moment::Moment;
    use super::*;

    fn start() -> Entry {
        Entry::start(Moment::default(), "a.b")
    }

    fn push(queue: &Queue, entry: &Entry) -> Result<(), AppendError> {
        let mut work = Work::new(entry)?;
        let ticket = work.ticket();
        drop(ticket);
        queue.push(work)
    }

    #[test]
    fn a_full_queue_refuses_starts_and_events_but_never_an_end() {
        let queue = Queue::new(100);
        while push(&queue, &start()).is_ok() {}
        let waiting = queue.state().waiting.len();
        assert!((1..5).contains(&waiting), "{waiting}");
        let error = push(&queue, &Entry::event(Moment::default(), "a.b", 1)).unwrap_err();
        assert!(matches!(error, AppendError::Full { bytes } if bytes <= 100), "{error}");
        push(&queue, &Entry::end(Moment::default(), 1, Status::Ok, &start())).unwrap();
        assert_eq!(queue.take().len(), waiting + 1);
        push(&queue, &start()).unwrap();
    }

    #[test]
    fn a_closed_queue_gives_out_what_waits_and_then_ends() {
        let queue = Queue::new(1000);
        push(&queue, &start()).unwrap();
        queue.close();
        assert!(matches!(push(&queue, &start()), Err(AppendError::Closed)));
        assert_eq!(queue.gather().map(|batch| batch.len()), Some(1));
        assert!(queue.gather().is_none());
    }

    #[test]
    fn an_entry_that_is_dropped_unwritten_tells_whoever_waits() {
        let mut work = Work::new(&start()).unwrap();
        let ticket = work.ticket();
        drop(work);
        assert!(matches!(ticket.wait(), Err(AppendError::Closed)));
    }

    #[test]
    fn a_single_entry_is_let_in_however_small_the_limit() {
        let queue = Queue::new(1);
        push(&queue, &start()).unwrap();
        assert!(matches!(push(&queue, &start()), Err(AppendError::Full { .. })));
    }
}
