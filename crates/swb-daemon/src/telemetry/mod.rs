//! What the house shows of itself to instruments.
//!
//! * `counts`, `tally` – what is counted where it happens. `figures` – the same, and how things stand, for `/metrics`.
//!
//! Invariants: what others can name (agents, models, tools, servers) is told apart only up to a number of names, so no page
//! and no memory grows with them. Counters begin anew with each daemon; everything else is read from what is kept.
//! Proof: tests beside the code, `swb-cli/tests/runs/figures.rs` with the real binary.

mod counts;
mod figures;
mod tally;

pub(crate) use counts::{ApprovalCounts, CommandCounts, RunCounts};
pub(crate) use figures::HouseFigures;
