//! What was said while a turn was running: steering for this turn, follow-ups for later ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many may wait.
const MAX_WAITING: usize = 100;
/// How much they may weigh together.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The name of the command that steers.
pub(crate) const STEER: &str = "steer";

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) id: String,
    /// The command it came with, which is also what it is answered as.
    pub(crate) command: &'static str,
    pub(crate) message: String,
}

/// There is too much in it already.
#[derive(Debug, thiserror::Error)]
#[error("too much is waiting; `clear_queue` or `abort` makes room")]
pub(crate) struct Full;

/// Shared by the loop, which fills it, and the turn, which takes what steers it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<VecDeque<Waiting>>>);

impl Queue {
    fn entries(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, waiting: Waiting) -> Result<(), Full> {
        let mut entries = self.entries();
        let bytes: usize = entries.iter().map(|waiting| waiting.message.len()).sum();
        if entries.len() >= MAX_WAITING || bytes + waiting.message.len() > MAX_BYTES {
            return Err(Full);
        }
        entries.push_back(waiting);
        Ok(())
    }

    pub(crate) fn has_steering(&self) -> bool {
        self.entries().iter().any(|waiting| waiting.command == STEER)
    }

    pub(crate) fn take_steering(&self) -> Vec<Waiting> {
        let mut entries = self.entries();
        let (steering, rest) = entries.drain(..).partition(|waiting| waiting.command == STEER);
        *entries = rest;
        Vec::from_iter::<VecDeque<Waiting>>(steering)
    }

    /// The next to become a turn.
    pub(crate) fn next(&self) -> Option<Waiting> {
        self.entries().pop_front()
    }

    pub(crate) fn clear(&self) -> Vec<Waiting> {
        self.entries().drain(..).collect()
    }

    pub(crate) fn list(&self) -> Vec<Waiting> {
        self.entries().iter().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(command: &'static str, message: &str) -> Waiting {
        Waiting { id: message.to_owned(), command, message: message.to_owned() }
    }

    #[test]
    fn steering_is_taken_by_the_turn_and_the_rest_keeps_its_order() {
        let queue = Queue::default();
        for (command, message) in [("follow_up", "a"), (STEER, "b"), ("follow_up", "c"), (STEER, "d")] {
            queue.add(waiting(command, message)).unwrap();
        }
        assert!(queue.has_steering());
        assert_eq!(queue.take_steering(), [waiting(STEER, "b"), waiting(STEER, "d")]);
        assert_eq!(queue.next(), Some(waiting("follow_up", "a")));
        assert_eq!(queue.clear(), [waiting("follow_up", "c")]);
    }

    #[test]
    fn it_is_bounded() {
        let queue = Queue::default();
        let large = "x".repeat(MAX_BYTES / 2);
        queue.add(waiting(STEER, &large)).unwrap();
        queue.add(waiting(STEER, &large)).unwrap();
        assert!(queue.add(waiting(STEER, "x")).is_err());
        queue.clear();
        for _ in 0..MAX_WAITING {
            queue.add(waiting(STEER, "")).unwrap();
        }
        assert!(queue.add(waiting(STEER, "")).is_err());
    }
}
