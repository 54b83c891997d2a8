//! The gate: what every command from outside passes before the bus sees it.
//!
//! A door (the control socket, a web server) asks once who somebody is ([`Gate::meet`]) and then, for every command,
//! whether it may go on ([`Guest::admit`]). What may go on comes with a [`Receipt`], which is closed with the result
//! before that result is sent: so nothing is answered that was not recorded. A bus without a gate lets everything pass.
//!
//! Calls within the daemon pass no gate: they carry the caller of the command that caused them.
//! Invariants: a receipt is closed with the result, or dropped when nobody waits for one any more, never both; a caller
//! is what the gate says, whatever the line says.
//! Proof: `tests/gate.rs`.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use swb_proto::{BusError, BusPayload, BusResult, Meta};
use tokio::net::UnixStream;

use crate::context::Caller;

/// Decides who comes in, and what they may do.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Somebody is at a door. Asked once for each connection; may look around the system, so not on a hot path.
    fn meet(&self, visitor: &Visitor<'_>) -> Arc<dyn Guest>;
}

/// What a door knows about whoever connected.
#[derive(Debug)]
pub enum Visitor<'a> {
    /// A process at a socket of this machine.
    Local(&'a UnixStream),
    /// A process at the other end of a network connection.
    Network {
        /// Its end.
        from: SocketAddr,
        /// Ours.
        to: SocketAddr,
    },
}

/// Whoever is behind a connection, as the gate knows them.
pub trait Guest: Send + Sync + std::fmt::Debug {
    /// The caller that this guest is in a context: the same in the same context, for as long as it stays. What the
    /// context claims about the actor is a claim.
    fn caller(&self, context: Meta) -> Caller;

    /// May this be done now?
    fn admit(&self, caller: &Arc<Caller>, command: &Command<'_>) -> Admission;
}

/// A command that wants to pass.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The id it came with; none if no answer is wanted.
    pub id: Option<&'a str>,
    /// The slashed name.
    pub method: &'a str,
    /// What it takes, as it came.
    pub params: Option<&'a RawValue>,
    /// The same, typed.
    pub payload: &'a BusPayload,
    /// Whether it can begin later. What cannot is told [`Admission::Wait`] only to be refused in the end.
    pub can_wait: bool,
}

/// What the gate says to a command.
pub enum Admission {
    /// Go on, and tell the receipt what came of it.
    Go(Box<dyn Receipt>),
    /// Somebody is asked first, or the disk is waited for. Dropping it takes the question back.
    Wait(BoxFuture<'static, Result<Box<dyn Receipt>, BusError>>),
    /// No. The gate has recorded it.
    Refused(BusError),
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Admission::Go(_) => "Go",
            Admission::Wait(_) => "Wait",
            Admission::Refused(_) => "Refused",
        })
    }
}

/// A command that is being carried out.
pub trait Receipt: Send {
    /// It has ended. Returned is what may be answered now: the result, or why it must not be told.
    fn close(self: Box<Self>, result: BusResult) -> Closing;
}

/// What may be answered, and when.
pub enum Closing {
    /// Now.
    Now(BusResult),
    /// When the record is safe.
    Later(BoxFuture<'static, BusResult>),
}

impl std::fmt::Debug for Closing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Closing::Now(_) => "Now",
            Closing::Later(_) => "Later",
        })
    }
}

impl Closing {
    /// What may be answered, once it may.
    pub async fn settled(self) -> BusResult {
        match self {
            Closing::Now(result) => result,
            Closing::Later(result) => result.await,
        }
    }
}
