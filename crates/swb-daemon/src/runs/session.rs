//! A session at work: the one task that talks to its agent.
//!
//! It starts the agent when there is something to do, gives it one run after the other, tells what it does, and lets it go
//! when nothing was to be done for a while. Whoever wants something of it sends an order. Invariants: a run is kept as it
//! is before anybody hears of it; every run that was taken comes to one end, whatever becomes of the agent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use swb_proto::run::RunUsage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::agent::Place;
use super::current::{Current, Phase};
use super::house::{House, Stopping};
use super::inbox::Inbox;
use super::kept::KeptRun;
use super::link::{Came, Link};
use super::order::{Look, Order};

/// A session at work.
#[derive(Debug)]
pub(super) struct SessionTask {
    pub(super) house: Arc<House>,
    pub(super) place: Place,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) waiting: VecDeque<KeptRun>,
    pub(super) link: Option<Link>,
    pub(super) current: Option<Current>,
    /// Brings the run under way its mail.
    pub(super) inbox: Option<Inbox>,
    /// What the session had used before the run under way.
    pub(super) before: Option<RunUsage>,
    /// How many processes have served the session.
    pub(super) generation: u32,
}

impl SessionTask {
    /// Works until nothing was to be done for a while.
    pub(super) async fn run(mut self) {
        let slots = Arc::clone(&self.house.slots);
        let mut idle_since = Instant::now();
        // A run that a daemon before us had begun.
        self.open_inbox();
        loop {
            let wants_slot = self.current.is_none() && !self.waiting.is_empty();
            if self.current.is_some() || wants_slot {
                idle_since = Instant::now();
            }
            let until = self.deadline().unwrap_or(idle_since + self.house.idle);
            let hash = |bytes: &[u8]| self.house.recorder.hash_arguments(bytes);
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::End) => return self.end().await,
                    Some(order) => self.obey(order).await,
                    // The daemon stops; the agent works on.
                    None => return,
                },
                slot = slot_of(&slots), if wants_slot => self.begin(slot).await,
                came = next_of(&mut self.link, &hash) => self.came(came).await,
                () = sleep_until(until) => {
                    if self.current.is_some() {
                        self.overdue().await;
                    } else if self.retire().await {
                        return;
                    } else {
                        idle_since = Instant::now();
                    }
                }
            }
        }
    }

    /// Ends because nothing is to be done; false if an order has come meanwhile.
    async fn retire(&mut self) -> bool {
        let late = self.last_orders().await;
        if late.is_empty() {
            self.let_go().await;
            return true;
        }
        let stopping = self.house.reopen(&self.place.session).map(|orders| self.orders = orders);
        let is_over = late.iter().any(|order| matches!(order, Order::End));
        for order in late {
            self.obey(order).await;
        }
        match stopping {
            Ok(()) if !is_over => false,
            // What is kept is found by the next daemon.
            Err(Stopping::LettingGo) => true,
            Ok(()) | Err(Stopping::Ending) => {
                self.end().await;
                true
            }
        }
    }

    /// Takes no more orders; those that came before. Whoever is about to give one is waited for.
    pub(super) async fn last_orders(&mut self) -> Vec<Order> {
        self.orders.close();
        let mut late = Vec::new();
        while let Some(order) = self.orders.recv().await {
            late.push(order);
        }
        late
    }

    fn deadline(&self) -> Option<Instant> {
        let current = self.current.as_ref()?;
        let far = Instant::now() + Duration::from_secs(3600);
        Some([current.deadline, current.time_is_up].into_iter().flatten().fold(far, Instant::min))
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Run(kept) => self.waiting.push_back(*kept),
            Order::Cancel { run, reason, done } => {
                self.cancel(&run, reason).await;
                let _ = done.send(());
            }
            Order::Tell { how, text, from, done } => {
                let _ = done.send(self.tell(how, text, from).await);
            }
            Order::Give { parcel, done } => {
                let _ = done.send(self.give(*parcel).await);
            }
            Order::Remark(progress) => self.remark(*progress).await,
            Order::Answer { answer, done } => {
                let _ = done.send(self.answer(*answer).await);
            }
            Order::Look { done } => {
                let _ = done.send(self.look());
            }
            Order::End => {}
        }
    }

    fn look(&self) -> Option<Look> {
        let current = self.current.as_ref()?;
        Some(Look {
            run: current.kept.id().clone(),
            is_starting: current.phase == Phase::Starting,
            calls: current.calls.clone(),
            since: current.since.clone(),
            text: self.link.as_ref().map(|link| link.ear.said().to_owned()).unwrap_or_default(),
            usage: current.kept.run.usage.clone(),
        })
    }

    /// The next run has a slot.
    async fn begin(&mut self, slot: OwnedSemaphorePermit) {
        let Some(kept) = self.waiting.pop_front() else { return };
        self.current = Some(Current::new(kept, slot));
        self.set_out().await;
    }
}

pub(super) async fn slot_of(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match Arc::clone(slots).acquire_owned().await {
        Ok(slot) => slot,
        // It is never closed.
        Err(_) => std::future::pending().await,
    }
}

async fn next_of(link: &mut Option<Link>, hash: &(dyn Fn(&[u8]) -> String + Sync)) -> Came {
    match link {
        Some(link) => link.next(hash).await,
        None => std::future::pending().await,
    }
}
