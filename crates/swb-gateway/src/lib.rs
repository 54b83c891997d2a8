//! Foreign doors: what programs that speak HTTP see of the house: the message bus as REST and SSE, and runs of
//! agents over AG-UI.
//!
//! ```text
//!  TCP ─► server ─► front (request id · Host · Origin · who are you) ─► routes ─► messages ─► swb-journal (the files)
//!                                                                          ├────► stream   ─► one tail per bus file
//!                                                                          └────► agui ─► gate ─► bus, and its events
//! ```
//!
//! * [`Gateway`] – listening, from the first free port to the last stream's end.
//! * [`auth`] – tokens per principal, one-time links, cookies; files that the command line reads too.
//! * `front`, `host` – everything a request must pass before a route sees it.
//! * `messages` – list and post. `buses`, `lane` – the files, and the order in which posts reach them;
//!   [`Postmaster`] – who keeps account of them. `stream` – Server-Sent Events.
//! * [`agui`] – runs of agents, and events of the bus, as front ends know them.
//! * [`metrics`] – figures for Prometheus, those of the house too.
//! * [`openapi`] – the same routes as a document.
//!
//! It holds no state of its own: messages live in their files, tokens and threads in theirs, and a restart loses nothing.
//! What is in memory (open buses, tails, frames) serves requests and is bounded.
//!
//! Invariants: no request reaches a route without a principal, but for the three that say nothing; a name from outside
//! never leads out of the root; the cost of a message does not grow with the length of its bus, and its formatting does not
//! grow with the number of its readers; a reader that does not read costs a fixed amount of memory.
//! Proof: `tests/` with a real TCP client, one file per noun; `benches/http.rs` for the figures.

pub mod agui;
mod announce;
pub mod auth;
mod buses;
mod eager;
mod failure;
mod front;
mod gateway;
mod host;
mod json;
mod lane;
mod messages;
pub mod metrics;
pub mod openapi;
mod patience;
mod postmaster;
mod routes;
mod server;
mod sse;
mod stream;
mod visit;

pub use gateway::{Gateway, GatewayError, GatewayOptions};
pub use postmaster::{Expected, Postmaster};
