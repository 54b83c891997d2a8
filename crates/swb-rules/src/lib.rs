//! What may happen: pure decisions. No clock, no file, no socket, no `async`; time is passed in.
//!
//! A rule is a value with methods that take what happened and return what is to be done, so that every decision can be
//! replayed from its record and tested without waiting.

pub mod approval;
pub mod inbox;
pub mod lifecycle;
pub mod policy;
pub mod redact;
pub mod restart;
pub mod shell;
