//! Runs of agents under the daemon, through the real binary: a daemon, hosts, agents in cells, the demo model.

mod house;
mod kills;
mod life;
