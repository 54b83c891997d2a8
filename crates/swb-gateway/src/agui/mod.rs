//! AG-UI: runs of agents for front ends that speak it (namespace `helios.agui.v1`).
//!
//! ```text
//!  events of the bus ─► translator ─► encoder ─► frames ─► POST /agui        one run, as the real client takes it
//!                   └─► ui ──────────────────────────────► GET /agui/stream  everything, under names for front ends
//! ```
//!
//! * `dialect` – what a client's version lets it take. `wire` – the words of AG-UI. `ui` – the names for front ends.
//! * `translator`, `progress`, `interrupt` – what events mean; pure. `encoder` – what may be sent next.
//!   `frames`, `provenance` – bytes, and where they come from.
//! * `post` – the request for a run, or for its going on; `input`, `project`, `threads` – what it means. `relay` – the run
//!   on its way to the client. `stream` – the other way to look on.
//!
//! Invariants: facts of the bus are summarised, never changed, and every frame says where it comes from
//! (`metadata["helios.agui.v1"]`); optionals that are absent are left out, never null; times are whole milliseconds.
//! Proof: `tests` against a model of the client's verifier, `tests/agui` with the real clients, `benches/agui` for speed.

mod dialect;
mod encoder;
mod frames;
mod input;
mod interrupt;
mod post;
mod progress;
mod project;
mod provenance;
mod relay;
mod stream;
#[cfg(test)]
mod tests;
mod threads;
mod translator;
mod ui;
mod wire;

pub use dialect::Dialect;
pub(crate) use input::RunAgentInput;
pub(crate) use post::post_run;
pub(crate) use stream::stream_ui;
pub(crate) use threads::Threads;
pub use translator::{Names, Standing, Translator};
