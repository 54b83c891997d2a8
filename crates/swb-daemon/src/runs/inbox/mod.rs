//! The mail of an agent at work: what is posted to the bus of its task reaches it.
//!
//! ```text
//!  bus ─► reading ─► letter ─► poster, rules ─► gate (as whoever posted it) ─► session ─► agent ─► its answer
//!                                  │ hold             │ refused                  │ given          │ accepted
//!                                  └──────────────────┴── office (kept) ◄────────┴────────────────┘ ─► facts
//! ```
//!
//! * `office`, `kept` – how far each message has come, on disk; `counter` – which ones came through the daemon.
//! * `reading`, `letter` – the bus, followed. `poster` – who has posted what.
//! * `carrier` – asks the rules of `swb-rules::inbox`; `holding` – what waits; `passing` – the gate, and the way to the
//!   session; `giving` – the session's side. `facts` – what others see.
//!
//! A carrier works while a run does. What comes when none does, or what the agent was not done with when its run ended,
//! waits on the bus for the next run of the session; it starts none.
//! Invariants: a message is given to a process at most once, over as many daemons as it takes; none is passed over but for
//! a reason that is told; one that waits, for a person or for an approval, holds up no other.
//! Proof: tests beside the code; `swb-cli/tests/runs/inbox.rs` with the real binary.

mod carrier;
mod counter;
mod facts;
mod giving;
mod holding;
mod kept;
mod letter;
mod office;
mod passing;
mod poster;
mod reading;

use std::collections::HashSet;
use std::sync::Arc;

use swb_gateway::Postmaster;
use swb_proto::Actor;
use swb_proto::id::SessionId;
use swb_rules::inbox::{Manner, Poster};
use swb_rules::lifecycle;
use tokio::task::JoinHandle;

pub(crate) use office::Office;

use counter::Counter;

use super::agent::Place;
use super::house::House;
use super::kept::KeptRun;

/// A message on its way to the agent.
#[derive(Debug, Clone)]
pub(super) struct Parcel {
    msg_id: String,
    kind: String,
    manner: Manner,
    is_data: bool,
    text: String,
    poster: Poster,
    actor: Actor,
}

/// The carrier of a run. Let go, it stops; what it had in hand stays on the bus.
#[derive(Debug)]
pub(super) struct Inbox(JoinHandle<()>);

impl Inbox {
    pub(super) fn open(house: &Arc<House>, place: &Place, run: &KeptRun) -> Option<Self> {
        let carrier = carrier::Carrier::new(house, place, run)?;
        Some(Inbox(tokio::spawn(carrier.work())))
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Office {
    /// The account that the HTTP server keeps.
    pub(crate) fn counter(self: &Arc<Self>) -> Arc<dyn Postmaster> {
        Arc::new(Counter(Arc::clone(self)))
    }
}

impl House {
    /// The mail of sessions that are over is forgotten.
    pub(super) fn forget_mail_of_the_past(&self) {
        let living: HashSet<String> = {
            let estate = self.records.look();
            let living = estate.sessions.iter().filter(|session| lifecycle::session_lives(session.state));
            living.map(|session| session.session_id.as_str().to_owned()).collect()
        };
        self.office.keep_only(|session| living.contains(session));
    }

    /// A session is over, and its mail with it.
    pub(super) async fn forget_mail(self: &Arc<Self>, session: &str) {
        let (house, session) = (Arc::clone(self), session.to_owned());
        let _ = tokio::task::spawn_blocking(move || house.office.forget(&session)).await;
    }

    /// From here on mail is taken for a session.
    pub(super) async fn take_mail(self: &Arc<Self>, session: &SessionId) {
        let Ok(task) = self.new_task(session) else { return };
        let (house, place) = (Arc::clone(self), task.place);
        let admitted = move || {
            let project = place.message_bus.file_name()?.to_str()?;
            let last = || reading::last_of(&facts::bus_of(&place)?);
            house.office.admit(&place.session, project, last).err()
        };
        if let Ok(Some(error)) = tokio::task::spawn_blocking(admitted).await {
            tracing::error!(%error, session = session.as_str(), "no mail can be taken for a session");
        }
    }

    /// Somebody has said something to the agent of a session, beside its bus.
    pub(super) async fn heard_from(self: &Arc<Self>, actor: &Actor, session: &SessionId) {
        if actor.kind.as_str() != "user" {
            return;
        }
        let (house, session) = (Arc::clone(self), session.clone());
        let noted = move || house.office.person_spoke(session.as_str());
        if let Ok(Err(error)) = tokio::task::spawn_blocking(noted).await {
            tracing::warn!(%error, "that a person has said something could not be kept");
        }
    }
}
