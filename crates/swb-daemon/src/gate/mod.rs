//! The gate of the house: identify → validate → decide → approve → record. What passed goes to the bus.
//!
//! ```text
//! connection ─ identity ─► Guest ─ admit ─► question ─► Policy ─ allow ──────────► start recorded ─► bus ─► end recorded ─► answer
//!                                                         ├ ask ─► Approvals ─ yes ─┘
//!                                                         └ deny ──────────────────► start and end recorded ─► refusal
//! ```
//!
//! * `identity` – whose process is at the other end; `question` – what a command is about, in the words of the rules;
//!   `guest` – one command after the other; `receipt` – what is owed to the record.
//!
//! Invariants: a process below a host is that host's agent, whatever it claims, on every door; who cannot be told is
//! refused; no rules, a broken rule or a log that takes no more mean no; what a person agreed to is decided again before
//! it is done, so that rules that changed in between count. Calls between subsystems pass no gate: they carry the caller of
//! the command that caused them. Proof: `tests/gate.rs` and `tests/hostile_lines.rs` of this room,
//! `swb-cli/tests/gate/` with the real binary.

mod guest;
mod identity;
mod question;
mod receipt;

pub(crate) use question::ancestry;

use std::sync::Arc;

use swb_bus::gate::{Gate, Guest, Visitor};
use swb_proto::Actor;

use crate::approvals::Approvals;
use crate::policy::Policy;
use crate::record::Recorder;
use crate::records::Records;
use guest::Known;
use identity::Identity;

/// What the gate asks and tells.
#[derive(Debug)]
pub(crate) struct HouseGate {
    pub(crate) records: Arc<Records>,
    pub(crate) policy: Policy,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) recorder: Arc<Recorder>,
}

impl HouseGate {
    /// Somebody whom the house knows without a connection: whoever has posted a message that is on its way.
    pub(crate) fn known(self: &Arc<Self>, actor: Actor) -> Arc<dyn Guest> {
        Arc::new(Known { house: Arc::clone(self), identity: Identity::Known(actor) })
    }
}

/// The gate as doors hold it.
#[derive(Debug, Clone)]
pub(crate) struct FrontGate(pub(crate) Arc<HouseGate>);

impl Gate for FrontGate {
    fn meet(&self, visitor: &Visitor<'_>) -> Arc<dyn Guest> {
        let identity = Identity::of(visitor);
        if identity != Identity::Person {
            tracing::debug!(?identity, "somebody else than a person connected");
        }
        Arc::new(Known { house: Arc::clone(&self.0), identity })
    }
}
