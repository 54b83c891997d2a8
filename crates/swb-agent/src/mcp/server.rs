//! One server and its life: started once, restarted when it is needed, never in the way of anything else.
//!
//! ```text
//!  Idle ── wake ──► Starting ── agreed, tools listed ──► Up
//!                    ▲     │ failed                       │ ended, fell silent, said too much
//!                    │     ▼                              ▼
//!                    └──── Down ◄─────────────────────────┘      wake: when its pause is over
//! ```
//!
//! A task of its own holds the connection; calls only borrow it. A server that is down keeps its tools, and the next call
//! of one of them starts it again. Each change is told to the parent.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::service::{Peer, RoleClient};
use swb_proto::agent::{AddedEvent, McpServer, McpState};
use swb_rules::redact::redact;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::backoff;
use super::call::CallError;
use super::client::Progress;
use super::fault::Fault;
use super::link::Link;
use super::listing::{Listing, list};
use super::options::ServerSpec;
use crate::cancel::Cancel;
use crate::stdio::output::Output;

/// Changes of a server's tools that come together are looked at together, and not more often than this.
const BETWEEN_CHANGES: Duration = Duration::from_millis(500);

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) spec: ServerSpec,
    root: PathBuf,
    output: Option<Output>,
    told: Cancel,
    state: watch::Sender<State>,
    listing: Mutex<Listing>,
    /// Failures in a row.
    failures: AtomicU32,
}

#[derive(Debug, Clone)]
enum State {
    Idle,
    Starting,
    Up(Connection),
    Down { reason: Arc<str>, until: Instant },
}

/// The way to a server that is up.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) progress: Progress,
    pub(super) fault: Fault,
}

impl Server {
    /// `told` ends it.
    pub(super) fn new(spec: ServerSpec, root: PathBuf, output: Option<Output>, told: Cancel) -> Self {
        let (state, _) = watch::channel(State::Idle);
        Server { spec, root, output, told, state, listing: Mutex::default(), failures: AtomicU32::new(0) }
    }

    /// Its tools, as far as they are known.
    pub(super) fn listing(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is not known yet what it has to offer.
    pub(super) fn is_starting(&self) -> bool {
        matches!(*self.state.borrow(), State::Starting)
    }

    /// Returns once it has started or failed to.
    pub(super) async fn started(&self) {
        // We hold the sender, so this ends only with the state.
        let _ = self.state.subscribe().wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// Returns once nothing of it is left.
    pub(super) async fn gone(&self) {
        let gone = |state: &State| matches!(state, State::Idle | State::Down { .. });
        let _ = self.state.subscribe().wait_for(gone).await;
    }

    /// Starts it, unless it runs or has to pause.
    pub(super) fn wake(self: &Arc<Self>) {
        let begin = self.state.send_if_modified(|state| {
            let begin = match state {
                State::Idle => true,
                State::Down { until, .. } => *until <= Instant::now(),
                State::Starting | State::Up(_) => false,
            };
            if begin {
                *state = State::Starting;
            }
            begin
        });
        if begin {
            tokio::spawn(Arc::clone(self).live());
        }
    }

    /// The connection; started if there is none.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Connection, CallError> {
        self.wake();
        self.started().await;
        match &*self.state.borrow() {
            State::Up(connection) => Ok(connection.clone()),
            State::Down { reason, until } => Err(CallError::Down {
                server: self.spec.name.clone(),
                reason: reason.to_string(),
                pause: until.saturating_duration_since(Instant::now()),
            }),
            State::Idle | State::Starting => Err(CallError::Ended { reason: "the agent ends".to_owned() }),
        }
    }

    /// Why it is not up, if it is not, or will not be any more in a moment.
    pub(super) async fn why_down(&self, patience: Duration) -> Option<String> {
        let mut states = self.state.subscribe();
        let down = states.wait_for(|state| matches!(state, State::Down { .. }));
        match &*tokio::time::timeout(patience, down).await.ok()?.ok()? {
            State::Down { reason, .. } => Some(reason.to_string()),
            _ => None,
        }
    }

    /// A call has worked, so that earlier failures are history.
    pub(super) fn has_worked(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// From the start to the end of one connection.
    async fn live(self: Arc<Self>) {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = self.told.cancelled() => {
                self.state.send_replace(State::Idle);
                return;
            }
        };
        let link = match opened {
            Ok(link) => link,
            Err(reason) => return self.lost(McpState::Failed, &reason).await,
        };
        let (peer, changed) = (link.peer.clone(), Arc::clone(&link.client.changed));
        let (progress, fault) = (link.client.progress.clone(), link.fault.clone());
        self.state.send_replace(State::Up(Connection { peer: peer.clone(), progress, fault }));
        self.tell(McpState::Ready, None).await;
        let reason = tokio::select! {
            reason = link.ended(&self.told) => reason,
            never = self.follow_changes(&peer, &changed) => match never {},
        };
        match reason {
            Some(reason) => self.lost(McpState::Down, &reason).await,
            None => {
                self.state.send_replace(State::Idle);
            }
        }
    }

    async fn open(&self) -> Result<Link, String> {
        let link = Link::open(&self.spec, &self.root).await.map_err(|error| error.to_string())?;
        let listing = tokio::time::timeout(self.spec.start_timeout, list(&link.peer, &self.spec)).await;
        let reason = match listing {
            Ok(Ok(listing)) => {
                *self.listing() = listing;
                return Ok(link);
            }
            Ok(Err(error)) => format!("it does not say which tools it has: {}", super::link::short(&error)),
            Err(_) => "it does not say which tools it has".to_owned(),
        };
        // Why is better known to the connection, if that is over.
        Err(link.fault.cause().map_or(reason, str::to_owned))
    }

    async fn follow_changes(&self, peer: &Peer<RoleClient>, changed: &Notify) -> std::convert::Infallible {
        loop {
            changed.notified().await;
            tokio::time::sleep(BETWEEN_CHANGES).await;
            let listed = tokio::time::timeout(self.spec.start_timeout, list(peer, &self.spec)).await;
            if let Ok(Ok(listing)) = listed {
                let others = {
                    let mut known = self.listing();
                    let others = known.tools != listing.tools;
                    *known = listing;
                    others
                };
                if others {
                    self.tell(McpState::Changed, None).await;
                }
            }
        }
    }

    async fn lost(&self, state: McpState, reason: &str) {
        let reason = redact(reason).text;
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        let until = Instant::now() + backoff::pause(before);
        self.state.send_replace(State::Down { reason: reason.as_str().into(), until });
        self.tell(state, Some(reason)).await;
    }

    async fn tell(&self, state: McpState, message: Option<String>) {
        let known = matches!(state, McpState::Ready | McpState::Changed);
        let (tools, left_out) = {
            let listing = self.listing();
            (known.then_some(listing.tools.len()), listing.left_out)
        };
        let message = message.or_else(|| {
            (known && left_out > 0).then(|| format!("{left_out} of its tools cannot be offered to a model"))
        });
        let event =
            AddedEvent::McpServer(McpServer { server: self.spec.name.clone(), state, tools, message });
        if let Some(output) = &self.output {
            // A parent that has gone is noticed by the loop.
            let _ = output.send(&event).await;
        }
    }
}
