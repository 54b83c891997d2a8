//! The rules in force: read from files, kept while those are broken, read again when they change.
//!
//! ```text
//! <config>/policy/*.cedar            ─┐                 (permit, forbid, ask; beside the rules everyone starts with)
//! <project>/.switchboard/policy/*.cedar ├─ Layer ─► Policy::decide ─► Ruling
//! rules given to a session           ─┘                 (forbid, ask)
//!        ▲ files change: reload, one thread, woken by the system
//! ```
//!
//! What rules mean is `swb-rules::policy`'s; here is only which of them hold. A layer is replaced as a whole: a decision
//! under way goes on with the rules it began with, the next one has the new ones. A file that cannot be used changes
//! nothing: the rules that held go on, and log, event (`policy.rules.rejected`), status and `swb doctor` say so.
//!
//! Invariants: rules that could not be used at the start mean deny, and the reason names the file; a project's or a
//! session's rules that cannot be used deny what is done there; a session's rules hold for every agent below it, and are
//! on disk before they are said to hold.
//! Proof: `tests` beside each file, `tests/policy.rs` through a daemon.

mod decide;
mod layer;
mod memory;
mod projects;
mod reload;
mod ruling;
mod sessions;
mod told;

pub use decide::{Place, Policy};
pub use layer::{Health, Load, load_of};
pub use ruling::Ruling;
pub use sessions::RestrictError;
pub use swb_policy::{Asked, RuleFile, RuleFolder, ToolCall, Workspace, WrongCall};
