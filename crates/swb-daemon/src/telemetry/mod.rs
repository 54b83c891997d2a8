//! What the house shows of itself to instruments.
//!
//! * `counts`, `tally` – what is counted where it happens. `figures` – the same, and how things stand, for `/metrics`.
//! * `traces` – spans for a collector, where the configuration names one. `run_spans` and `command_spans` make them of what
//!   happens, `span` is one, `names` has the conventions, `export` sends them.
//!
//! Invariants: what others can name (agents, models, tools, servers) is told apart only up to a number of names, so no page
//! and no memory grows with them. Counters begin anew with each daemon; everything else is read from what is kept.
//! Nothing that works waits for a collector, and without one there is nothing: no task, no queue, no memory.
//! Proof: tests beside the code, `swb-cli/tests/runs/figures.rs` and `traces.rs` with the real binary.

mod command_spans;
mod counts;
mod export;
mod figures;
mod names;
mod run_spans;
mod span;
mod tally;
mod traces;

pub(crate) use command_spans::CommandEnd;
pub(crate) use counts::{ApprovalCounts, CommandCounts, RunCounts};
pub(crate) use figures::HouseFigures;
pub(crate) use traces::{Before, CommandEnds, Traces, Watched};
