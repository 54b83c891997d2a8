//! What is known of one subagent, shared by whoever drives it and whoever asks about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use swb_proto::agent::TurnUsage;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::work::Wish;
use crate::cancel::Cancel;
use crate::gate::Mode;

/// How many orders may wait to be passed on.
const ORDERS: usize = 16;

/// Something to be passed on to a subagent that works.
#[derive(Debug)]
pub(super) enum Order {
    Steer(String),
    Mode(Mode),
}

/// How a subagent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its last answer.
    Done(String),
    /// Why, and what it had said until then.
    Failed { reason: String, said: String },
    /// What it had said until then.
    Cancelled { said: String },
}

/// Its end.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) usage: TurnUsage,
    pub(crate) took: Duration,
}

/// What is new about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct News {
    pub(crate) session_id: Option<String>,
    pub(crate) status: String,
    pub(crate) tool_calls: u64,
    ended: Option<Arc<Ended>>,
}

/// One subagent.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) background: bool,
    /// The widest mode it was meant to have.
    mode: Option<Mode>,
    begun: Instant,
    cancel: Cancel,
    orders: mpsc::Sender<Order>,
    news: watch::Sender<News>,
    /// The model knows its outcome.
    told: AtomicBool,
}

impl Task {
    pub(super) fn new(id: u64, wish: &Wish) -> (Arc<Self>, mpsc::Receiver<Order>) {
        let (orders, passed_on) = mpsc::channel(ORDERS);
        let task = Task {
            id,
            name: wish.name.clone(),
            background: wish.background,
            mode: wish.mode,
            begun: Instant::now(),
            cancel: Cancel::new(),
            orders,
            news: watch::Sender::new(News { status: "starting".to_owned(), ..News::default() }),
            told: AtomicBool::new(false),
        };
        (Arc::new(task), passed_on)
    }

    pub(crate) fn news(&self) -> News {
        self.news.borrow().clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut News)) {
        self.news.send_modify(change);
    }

    pub(crate) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Its mode, if ours is this.
    pub(super) fn mode(&self, ours: Mode) -> Mode {
        self.mode.map_or(ours, |wished| wished.min(ours))
    }

    /// Our mode is now this. One that does not take orders is ended instead: it may do more than we may.
    pub(super) fn set_mode(&self, ours: Mode) {
        if !self.is_over() && self.orders.try_send(Order::Mode(self.mode(ours))).is_err() {
            self.cancel();
        }
    }

    /// Passes words on to it. False if it does not take any now.
    pub(crate) fn steer(&self, message: String) -> bool {
        !self.is_over() && self.orders.try_send(Order::Steer(message)).is_ok()
    }

    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(super) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(super) fn finish(&self, ended: Ended) {
        self.news.send_modify(|news| news.ended = Some(Arc::new(ended)));
    }

    pub(super) fn is_over(&self) -> bool {
        self.news.borrow().ended.is_some()
    }

    /// How it ended, if it has.
    pub(crate) fn outcome(&self) -> Option<Arc<Ended>> {
        self.news.borrow().ended.clone()
    }

    /// Returns when it has ended.
    pub(crate) async fn ended(&self) -> Arc<Ended> {
        loop {
            let mut news = self.news.subscribe();
            // The sender is ours, so it is there as long as we wait.
            let ended =
                news.wait_for(|news| news.ended.is_some()).await.ok().and_then(|news| news.ended.clone());
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// The model knows how it ended.
    pub(crate) fn tell(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    /// Whether the model still has to be told how it ended.
    pub(super) fn is_news(&self) -> bool {
        self.background && self.is_over() && !self.told.load(Ordering::Relaxed)
    }
}
