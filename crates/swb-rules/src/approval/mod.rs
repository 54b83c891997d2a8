//! Approvals: questions that a person answers once, with a deadline, and what their answers leave behind.
//!
//! [`Desk`] is the one place where approvals, standing grants and tokens are kept. A command applies the events it causes
//! ([`Desk::apply`] is the only thing that changes state) and returns them: they are to be written before anyone is told.
//! So the desk is what its events make of it, also after a crash.
//!
//! ```text
//! request ─► Pending ─ resolve (the first answer) ─► Approved | Denied
//!                    └ deadline, or the asker ends ─► TimedOut | Denied
//! Approved for the session ─► Grant (narrow, expires, revocable)       Approved share ─► Token (bound, hashed, once)
//! ```
//!
//! Invariants: every approval gets exactly one outcome and never another; nothing is approved at or past its deadline;
//! no answer means no; an agent never answers; replaying the events gives the same state; memory is bounded.
//! Deadlines: 15 minutes, 24 hours for detached and AG-UI runs, at once where nobody can be asked. After a restart the
//! remaining time runs on, with at least 30 seconds left, so that a person who was cut off can still answer.
//! Time is milliseconds since 1970, handed in; a clock that goes backwards is not followed.
//! Proof: `tests/approval.rs`, `tests/approval_properties.rs`.

mod answering;
mod deadline;
mod desk;
mod event;
mod outcome;
mod request;
mod standing;
mod token;

pub use answering::{RequestError, Requested, Resolution, Resolve, ResolveError};
pub use deadline::{AT_LEAST_AFTER_RESTART, DETACHED, INTERACTIVE, LONGEST_GRANT, Patience};
pub use desk::{Desk, MAX_PENDING, MAX_RESOLVED};
pub use event::ApprovalEvent;
pub use outcome::{Choice, Outcome, Status};
pub use request::{Announced, Approval, ApprovalRequest};
pub use standing::{IssueError, RevokeError};
pub use token::{Binding, TOKEN_LIFE, TokenError, token_text};
