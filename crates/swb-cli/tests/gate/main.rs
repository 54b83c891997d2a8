//! The gate of the real binary, tried from an agent's place: a shell behind a host.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod agent_place;
mod client;
mod crash;
mod hosted_agent;
mod identity;
mod routes;
mod tools;
