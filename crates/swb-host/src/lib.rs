//! Children: starting them, holding them, and ending everything they have started.
//!
//! * [`group`] – one child and its process group; dropping it ends the group.
//! * [`guard`] – a command that does not outlive whoever started it, not even when that is killed.
//! * [`descendants`] – whatever this process has brought into the world, also what left its group or its parent.
//! * [`host`] – a process that owns one child and outlives whoever started it; [`wire`] is how one talks to it, [`client`]
//!   the other end, `output` what is kept of what the child says.
//! * [`cell`] – walls around a child: namespaces in which what it must not touch is not there.
//! * [`lineage`] – whose process is at the other end of a socket; [`tcp_peer`] – of a connection over loopback.
//! * [`mark`] – how what a host has started is recognised once the host is gone.
//! * [`entry`] – the programs of this room within the one binary.
//!
//! This room knows nothing of what the children are for. Proof: unit tests beside each part, and `tests/` with real
//! processes.

pub mod cell;
pub mod client;
pub mod descendants;
pub mod entry;
pub mod group;
pub mod guard;
pub mod host;
pub mod lineage;
pub mod mark;
mod output;
mod signals;
pub mod tcp_peer;
pub mod wire;

pub use cell::Walls;
pub use client::HostClient;
pub use group::Group;
pub use guard::Guarded;
pub use host::Options;
pub use output::Limits;

/// A line for the log of a program of this room: its standard error.
fn complain(what: &str) {
    use std::io::Write;
    // There is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "swb host: {what}");
}
