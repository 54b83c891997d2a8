//! `swb approvals` with the real binary: what a person sees and says, and what a killed daemon has kept.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod answering;
mod crash;
mod gated;
mod questions;
