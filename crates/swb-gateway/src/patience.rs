//! How long a connection may take, measured without a timer for every request.
//!
//! The HTTP library begins a sleep whenever it waits for the head of a request and throws it away when the head is there.
//! Each such sleep is a timer that has to be entered, and as it is always the next to go off, the thread that waits for
//! the timers has to be woken to hear of it: on a busy connection that costs more than the HTTP. Here a connection has one
//! alarm. A sleep whose deadline lies behind it leaves it as it is; when it goes off too early, it is set again.
//!
//! Invariant: a sleep ends at its own deadline, never before, and whoever waits for it is woken then.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type Alarm = Option<Pin<Box<tokio::time::Sleep>>>;

/// The timer of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience(Arc<Mutex<Alarm>>);

#[derive(Debug)]
struct Waiting {
    deadline: Instant,
    patience: Patience,
}

impl Patience {
    fn alarm(&self) -> MutexGuard<'_, Alarm> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for Patience {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Waiting { deadline, patience: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

impl Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline.into();
        let mut alarm = self.patience.alarm();
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if alarm.deadline() > deadline {
            alarm.as_mut().reset(deadline);
        }
        while alarm.as_mut().poll(context).is_ready() {
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_at_its_own_deadline_whatever_the_alarm_was_set_to() {
        let patience = Patience::default();
        let begun = patience.now();
        // One that is thrown away leaves its alarm behind.
        assert!(futures_util::poll!(patience.sleep(3 * TICK)).is_pending());
        tokio::time::advance(2 * TICK).await;
        patience.sleep(3 * TICK).await;
        assert_eq!((patience.now() - begun).as_secs(), 5);
        patience.sleep(TICK).await;
        assert_eq!((patience.now() - begun).as_secs(), 6);
        // An alarm that is set too late for the next one.
        assert!(futures_util::poll!(patience.sleep(60 * TICK)).is_pending());
        patience.sleep(TICK).await;
        assert_eq!((patience.now() - begun).as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_has_passed_is_over() {
        let patience = Patience::default();
        let passed = patience.now();
        tokio::time::advance(TICK).await;
        patience.sleep_until(passed).await;
        assert_eq!(patience.now() - passed, TICK);
    }
}
