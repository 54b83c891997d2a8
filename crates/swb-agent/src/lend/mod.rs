//! Lending: tools of this agent that its subagents can use, and tools that its own parent has lent to it.
//!
//! A lent tool runs where it belongs to, once, however many agents use it. The borrower's model calls it like its own; the
//! call goes up as a frame, is judged there as the borrower's (with its name, and with at most its mode and at most the
//! lender's), and its result comes down. What was borrowed can be lent on, so that this works at any depth.
//!
//! ```text
//!  root: tool ◄─ judged, run ── lender ◄─ lent_call ── borrower: Borrowed ── (lender ◄─ lent_call ── borrower …)
//! ```
//!
//! * `borrowed` – the borrower's end. * `lender` – the other one.
//!
//! Invariants: each call has one result, or was cancelled aloud; a borrower has no tool of the name of its own; what is
//! lent and what is under way is bounded. Proof: unit tests beside both ends, and the conformance suite over two levels.

pub(crate) mod borrowed;
pub(crate) mod lender;

pub(crate) use borrowed::Borrowed;
