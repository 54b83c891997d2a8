//! Approvals as the daemon keeps them: asked, answered once, on disk before anybody is told.
//!
//! The rules are [`swb_rules::approval::Desk`]; here are its file, its clock and those who wait.
//!
//! ```text
//! ask ─► desk ─► events on disk ─► approval.requested ─► Waiting … ─► Outcome
//! resolve, deadline, end of a session ─► desk ─► events on disk ─► approval.resolved ─► whoever waits
//! ```
//!
//! * `asking` – [`Approvals`]: questions, their deadlines, what is covered already, the end of a session.
//! * `answering` – answers, grants taken back, tokens spent.
//! * `kept` – the desk with its file; `waiting` – who waits for which; `telling` – what is said on the bus.
//! * `subject` – what a person is shown: without secrets, and no longer than can be looked at.
//! * `view` – the words of the wire for it.
//!
//! Invariants: what was told is on disk; a question has one `approval.requested` and one `approval.resolved`, also where a
//! crash comes between (what was written and not said is said at the next start); a failing disk means no; nobody waits past
//! the deadline; waiters, questions and the file are bounded. All times are of the wall clock and never go back.
//! Proof: `tests.rs` beside this file, `tests/approvals.rs` through the bus, `swb-cli/tests/approvals/` with the real binary.

mod answering;
mod asking;
mod error;
mod kept;
mod subject;
mod telling;
#[cfg(test)]
mod tests;
mod view;
mod waiting;

pub use answering::{Answer, Answered, SpendError};
pub use asking::{Approvals, Clock};
pub use error::{AnswerError, AskError, WaitError};
pub(crate) use subject::LONGEST_REASON;
pub(crate) use view::{approval_to_wire, grant_to_wire, timestamp, workspace_of};
pub use waiting::Waiting;
