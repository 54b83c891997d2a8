//! The agent process: a coding agent that any parent can drive over stdin and stdout.
//!
//! * [`start`] – the process: pipes, signals, beginning and end.
//! * `stdio` – the private pipe to the parent: lines in, frames out, both bounded.
//! * `rpc` – the loop that takes commands and answers them, whatever else is going on.
//! * `turn` – one turn: the model streams, tools run, the history grows.
//! * [`model`] – the seam to whatever makes the words, and the offline `demo` model.
//! * `attachments` – files that come with a prompt.
//! * [`completion`] – one question to a model, without a conversation around it.
//! * `compaction` – a long conversation becomes a short one.
//! * `history`, [`sessions`] – the conversation as JSON lines, whole after any crash; all of them at a glance.
//! * `subagent` – other agents, driven over the protocol that our own parent speaks with us.
//! * `lend` – tools that agents of one tree share.
//! * [`mcp`] – servers whose tools the agent can use as its own.
//! * `tools`, [`gate`] – what the model can do, and the one seam that decides whether it may.
//!
//! Nothing here needs the daemon; where the parent names one, it judges the tool calls. Proof: unit tests beside the code; the conformance suite `crates/swb-cli/tests/rpc/`
//! drives the real binary over pipes.

mod attachments;
mod cancel;
mod compaction;
pub mod completion;
pub mod gate;
mod history;
mod lend;
pub mod mcp;
pub mod model;
mod regular_file;
mod rpc;
pub mod sessions {
    //! The sessions of a folder, for lists of them.
    pub use crate::history::{Glance, Known, LastTurn, Listed, newest_first};
}
pub mod start;
mod stdio;
mod subagent;
mod tools;
mod turn;

pub use gate::Mode;
pub use gate::control::{Control, ControlError};
pub use gate::local_rules::{RulePlaces, project_around};
pub use history::OpenError;
pub use start::{Offer, Options, StartError, describe_models, describe_tools, run};
pub use subagent::Launch;
pub use tools::ToolSettings;
