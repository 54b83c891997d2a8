//! The words between an agent process and the parent that drives it over stdin and stdout (seed 002, protocol 1).
//!
//! One JSON object per line. The parent writes commands, the child writes events; an id ties an answer to its command.
//! [`command::Command`], [`event::Event`] and [`event::AssistantEvent`] are the contract's own words and never change
//! shape; [`added`] holds what this agent says and understands beyond them, which a parent of the contract may ignore.
//! [`frame`] turns a line into a command without losing an id that can be read, and an event into a line of pure ASCII.
//!
//! Proof: golden bytes in `fixtures/agent-rpc/`, property tests beside the decoder.

pub mod added;
pub mod command;
pub mod completion;
pub mod event;
pub mod frame;
pub mod lend;
pub mod mcp;
pub mod message;
pub mod plan;
mod readable_id;
pub mod task;

pub use added::{AddedCommand, AddedEvent};
pub use command::{Attachment, Command};
pub use completion::{Completion, Question};
pub use event::{AssistantEvent, Event, TurnUsage};
pub use frame::{BadFrame, Frame, Request, decode, decode_event, encode};
pub use lend::{LentCall, LentTool};
pub use mcp::{McpCall, McpCallError, McpOutcome, McpServer, McpState};
pub use message::{Block, Content, Message, Role, Source};
pub use plan::{Plan, PlanStep, PlanUpdate, StepStatus, WrongPlan};
pub use task::{TaskState, TaskUpdate};

/// What `ready` announces.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest line a parent may send, its newline not counted. Exactly this many bytes pass.
pub const MAX_FRAME_BYTES: usize = 1_048_576;
