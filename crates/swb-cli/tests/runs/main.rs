//! Runs of agents under the daemon, through the real binary: a daemon, hosts, agents in cells, the demo model.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod below;
mod day;
mod foreign;
mod house;
mod kills;
mod life;
