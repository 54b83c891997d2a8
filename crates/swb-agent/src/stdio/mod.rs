//! The pipe to the parent.
//!
//! * [`private`] – takes stdin and stdout away from everybody else in the process.
//! * [`input`] – a thread that turns bytes into requests, whatever the rest is doing.
//! * [`output`] – frames on their way out: ordered, bounded, and aware of a parent that has gone.

pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod private;
