//! Counters of the bus, and log lines that cannot become a flood.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use swb_proto::BusError;
use swb_proto::error::ERR_INTERNAL;

/// What happened on the bus since it was built.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "the names are those of `swb_proto::control::Counters`, documented there")]
pub struct Stats {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub notifications: AtomicU64,
    pub notifications_dropped: AtomicU64,
    pub notifications_unrouted: AtomicU64,
    pub cancelled: AtomicU64,
    pub panics: AtomicU64,
    pub refused: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Lets one log line through per second and remembers how many it held back.
#[derive(Debug)]
pub(crate) struct Throttle {
    origin: Instant,
    next_ms: AtomicU64,
    held_back: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        Throttle { origin: Instant::now(), next_ms: AtomicU64::new(0), held_back: AtomicU64::new(0) }
    }
}

impl Throttle {
    /// The number of occurrences to report now, if it is time.
    pub(crate) fn pass(&self) -> Option<u64> {
        self.pass_at(self.origin.elapsed())
    }

    fn pass_at(&self, now: Duration) -> Option<u64> {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let held_back = self.held_back.fetch_add(1, Ordering::Relaxed) + 1;
        let due = self.next_ms.load(Ordering::Relaxed);
        let first = now >= due
            && self.next_ms.compare_exchange(due, now + 1000, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        first.then(|| {
            self.held_back.fetch_sub(held_back, Ordering::Relaxed);
            held_back
        })
    }
}

/// Counts and logs a panic, and makes the error its caller gets: the fact, but nothing of the inside.
pub(crate) fn panic_error(stats: &Stats, place: &str, panic: &(dyn Any + Send)) -> BusError {
    count(&stats.panics);
    let message = panic.downcast_ref::<&str>().copied();
    let message =
        message.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)");
    tracing::error!(place, message, "panicked");
    BusError::new(ERR_INTERNAL, "the handler failed unexpectedly; the log has the rest")
        .because("HANDLER_PANICKED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_one_line_a_second_that_counts_it() {
        let throttle = Throttle::default();
        let lines: Vec<_> = (0..3000).filter_map(|ms| throttle.pass_at(Duration::from_millis(ms))).collect();
        assert_eq!(lines, [1, 1000, 1000]);
    }
}
