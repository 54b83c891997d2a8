//! `swb rpc`: the agent's stdio protocol, checked from outside by driving the real binary over pipes.
//!
//! Each test is a fact of the protocol or a known defect of its first implementation that must not come back.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod aborting;
mod answering;
mod asking;
mod attachments;
mod child;
mod commands;
mod compaction;
mod ending;
mod framing;
mod full_disk;
mod guarding;
mod hostile;
mod lending;
mod mcp;
mod planning;
mod providers;
mod rules;
mod sessions;
mod starting;
mod subagents;
mod tools;
mod turns;
mod weaknesses;
