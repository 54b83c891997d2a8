//! One hermetic harness for every test that needs a daemon.
//!
//! A [`World`] is a home of its own in a short temporary folder: no fixed port, no shared file, nothing of the user's
//! environment. The daemon in it runs in this process ([`World::start`], on a runtime of its own that can be killed
//! without warning) or as the real binary ([`World::swb`]). [`Wire`] is a client that knows nothing but lines.
//! A [`peer::Peer`] is a provider of models that does what it is told.
//! Tests wait for named conditions with [`wait()`]; they never sleep.

mod binary;
pub mod peer;
mod wait;
mod wire;
mod world;

pub use binary::Ran;
pub use wait::{PATIENCE, wait, wait_for};
pub use wire::Wire;
pub use world::World;
