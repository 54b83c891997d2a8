//! The bus over a Unix socket: one JSON object per line, both ends.
//!
//! * [`line_buffer`] – bytes to lines, bounded. Pure.
//! * [`server`] – accepts connections of the same user; one task each (`connection`), each command its way (`passage`).
//! * [`client`] – one connection shared by many callers; reconnects, resumes.

pub mod client;
mod connection;
pub mod line_buffer;
mod outgoing;
mod passage;
mod peer;
mod pending;
pub mod server;

pub use server::{ControlServer, ServerLimits};
