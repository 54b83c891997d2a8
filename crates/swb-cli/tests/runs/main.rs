//! Runs of agents under the daemon, through the real binary: a daemon, hosts, agents in cells, the demo model.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod agui;
#[path = "../../../swb-gateway/tests/agui_client/mod.rs"]
mod agui_client;
mod below;
mod command;
mod day;
mod figures;
mod foreign;
#[path = "../rpc/mcp/hostile.rs"]
mod hostile;
mod house;
mod inbox;
mod kills;
mod leaving;
mod life;
mod mcp;
mod planning;
mod seen_from_elsewhere;
mod task;
#[path = "../run/terminal.rs"]
mod terminal;
mod traces;
mod uncontained;
