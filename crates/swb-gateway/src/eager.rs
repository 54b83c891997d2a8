//! A connection that wakes itself goes on at once.
//!
//! The HTTP library hands the body of a request from its reading half to its writing half, both in one task, through a
//! channel: so within a request the task wakes itself twice, and each time it returns to the scheduler, which queues it and
//! wakes another thread that may take it to another core, although all it needs is to be polled again. Whoever wakes an
//! [`Eager`] while it is polled only leaves a mark, and it is polled again right there; a few times, then others have
//! their turn.
//!
//! Invariant: no wake-up is lost. Every one that comes after a poll has begun is followed by another poll.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Polls in a row.
const TURNS: u32 = 8;

const ASLEEP: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// A future that is polled again at once if it woke itself.
#[derive(Debug)]
pub(crate) struct Eager<F> {
    inner: F,
    mark: Arc<Mark>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Mark {
    state: AtomicU8,
    /// Whoever polls the whole.
    outer: AtomicWaker,
}

impl<F: Future + Unpin> Eager<F> {
    pub(crate) fn new(inner: F) -> Self {
        let mark = Arc::<Mark>::default();
        let waker = Arc::clone(&mark).into();
        Eager { inner, mark, waker }
    }

    pub(crate) fn inner(&mut self) -> &mut F {
        &mut self.inner
    }
}

impl<F: Future + Unpin> Future for Eager<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Eager { inner, mark, waker } = &mut *self;
        // Before anything is polled: what comes from now on must find it.
        mark.outer.register(context.waker());
        for _ in 0..TURNS {
            mark.state.store(POLLED, Ordering::SeqCst);
            if let Poll::Ready(done) = Pin::new(&mut *inner).poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(done);
            }
            let slept = mark.state.compare_exchange(POLLED, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
            if slept.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Whoever polls sees the mark; whoever was woken already comes anyway.
        if self.state.swap(WOKEN, Ordering::SeqCst) == ASLEEP {
            self.outer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once, and says what came of it, after how many polls within, and how often it was woken.
    fn polled(times_woken: usize) -> (Poll<()>, usize, usize) {
        let count = Arc::new(Count::default());
        let mut polls = 0;
        let mut eager = Eager::new(Box::pin(poll_fn(|context| {
            polls += 1;
            if polls > times_woken {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })));
        let outcome = Pin::new(&mut eager).poll(&mut Context::from_waker(&Arc::clone(&count).into()));
        drop(eager);
        (outcome, polls, count.0.load(Ordering::SeqCst))
    }

    #[test]
    fn whoever_wakes_itself_is_polled_again_without_a_detour() {
        assert_eq!(polled(0), (Poll::Ready(()), 1, 0));
        assert_eq!(polled(3), (Poll::Ready(()), 4, 0));
    }

    #[test]
    fn whoever_does_so_for_ever_lets_others_run() {
        assert_eq!(polled(usize::MAX - 1), (Poll::Pending, 8, 1));
    }

    /// Two tasks hand a token back and forth, over threads: one lost wake-up and this never ends.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_up_is_lost() {
        let (to_left, mut left) = tokio::sync::mpsc::channel(1);
        let (to_right, mut right) = tokio::sync::mpsc::channel(1);
        let echo = tokio::spawn(Eager::new(Box::pin(async move {
            while let Some(number) = right.recv().await {
                if to_left.send(number).await.is_err() {
                    return;
                }
            }
        })));
        let asks = tokio::spawn(Eager::new(Box::pin(async move {
            for number in 0..20_000 {
                to_right.send(number).await.unwrap();
                assert_eq!(left.recv().await, Some(number));
            }
        })));
        asks.await.unwrap();
        echo.await.unwrap();
    }
}
