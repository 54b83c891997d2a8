//! What the rules need of the disk: the files they stand in, and where a tool call really leads.
//!
//! * [`rule_folder`] – the rule files of a user or a project, read with limits.
//! * [`tool_call`] – from the call of a tool to the question that rules are asked, links followed.
//!
//! What rules mean is `swb-rules::policy`'s, and which of them hold is for whoever asks: the daemon, or an agent without one.
//! Both look at files and calls with this one pair of eyes. Proof: unit tests beside the code.

pub mod rule_folder;
pub mod tool_call;

pub use rule_folder::{RuleFile, RuleFolder, sources};
pub use tool_call::{Asked, ToolCall, Workspace, WrongCall, real_path};
