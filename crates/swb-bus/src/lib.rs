//! The spine: one way to call anything, one order for everything that happened.
//!
//! * [`BusHandle`] – what everyone holds: `request`, `notify`, `subscribe`. The same type inside the daemon
//!   ([`Bus::handle`]) and outside it ([`BusHandle::connect`]), with the same errors.
//! * [`BusHandler`] – what a subsystem implements. The first segment of a method chooses it.
//! * [`topics`] – events with a global `seq`, a per-topic `sequence`, replay from a cursor, gaps that are announced.
//! * [`transport`] – the control socket, both ends.
//! * [`gate`] – what commands from outside pass before the bus sees them.
//!
//! A request is dispatched on the task of its caller: there is no queue to wait in, a slow handler delays only those who
//! called it, and a reply that is ready at once costs no wake-up. Notifications go through one bounded queue per
//! subsystem and are dropped, with an error to the sender, when it is full.
//!
//! Invariants: a request gets exactly one answer or one [`BusCallError`]; nobody waits after [`Bus::shutdown`]; a panic
//! in a handler costs its caller one error; dropping the future of a request cancels the work behind it.
//! Proof: `tests/` by noun; `tests/bus.rs` and `tests/cancel.rs` take the weaknesses of the incumbent bus one by one, and
//! `tests/contract.rs` holds every handle to the same facts, inside the process and across the socket.

mod call;
mod cancel;
mod context;
mod dispatch;
pub mod gate;
mod handle;
mod handler;
mod in_flight;
mod message;
mod notice;
mod request_id;
mod stats;
pub mod topics;
pub mod transport;

pub use call::{PendingCall, Started};
pub use cancel::{CancelSignal, StopReason};
pub use context::{CallContext, Caller};
pub use dispatch::{Bus, BusBuilder};
pub use handle::{BusHandle, CallError, EventStream};
pub use handler::BusHandler;
pub use message::{BusCallError, BusMessage};
pub use stats::Stats;
