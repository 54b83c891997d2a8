//! What a client may be sent next: the rules of its verifier, kept on this side.
//!
//! ```text
//! fresh ─ RUN_STARTED ─► open ─ RUN_FINISHED | RUN_ERROR ─► over
//!   └──────────────────── RUN_ERROR ─────────────────────────┘
//! ```
//!
//! Callers say what happened; the encoder opens what must be open, closes what must be closed, and says nothing that the
//! client would not take. A client that is sent one event out of order drops the whole run, so no method here can be
//! called at a wrong time.
//!
//! `speech`, `calls`, `subagents` and `activities` know what may be open of each; here is what holds for the whole stream.
//!
//! Invariants: the first event is RUN_STARTED or RUN_ERROR; nothing follows the end; at the end no message, thought, call
//! or subagent is open; ids of subagents are used once; clients before 1.0 see no word of 1.0; no delta is empty and no
//! frame comes near ten mebibytes; what is remembered is bounded. Proof: `tests` holds any sequence of events against a
//! model of the client's verifier; `tests/agui` runs the real clients.

mod activities;
mod calls;
mod speech;
mod subagents;

use std::collections::HashSet;

use serde_json::Value;
use swb_proto::EventEnvelope;

use super::dialect::Dialect;
use super::frames::Frames;
use super::wire::{Event, Interrupt, Outcome, Usage};
use calls::Call;
use subagents::Subagent;

/// The longest piece of text in one frame; escapes make it six times as long at most.
const LONGEST_PIECE: usize = 256 * 1024;
/// Calls, terminals and subagents that are remembered.
const MOST: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    Open,
    Over,
}

/// One run's stream.
#[derive(Debug)]
pub(super) struct Encoder {
    pub(super) frames: Frames,
    dialect: Dialect,
    thread_id: String,
    run_id: String,
    stage: Stage,
    /// What is being said, and what is being thought: one of them at most.
    message: Option<String>,
    thought: Option<String>,
    /// The message that calls belong to.
    said: Option<String>,
    calls: Vec<Call>,
    /// Calls that were told of and have no result yet, also those that an earlier stream of this run told of.
    unanswered: Vec<String>,
    subagents: Vec<Subagent>,
    /// Subagents that were told of, also those that are over.
    known: HashSet<String>,
    terminals: HashSet<String>,
}

/// How those end who are still at work.
#[derive(Debug, Clone, Copy)]
enum Close<'a> {
    Done,
    Suspended(&'a [&'a str]),
    Failed(&'a str),
}

impl Encoder {
    pub(super) fn new(dialect: Dialect, thread_id: &str, run_id: &str) -> Self {
        Encoder {
            frames: Frames::default(),
            dialect,
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            stage: Stage::Fresh,
            message: None,
            thought: None,
            said: None,
            calls: Vec::new(),
            unanswered: Vec::new(),
            subagents: Vec::new(),
            known: HashSet::new(),
            terminals: HashSet::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the client knows that word of usage.
    pub(super) fn knows_cache_writes(&self) -> bool {
        self.dialect == Dialect::One
    }

    pub(super) fn start(&mut self) {
        if self.stage == Stage::Fresh {
            self.stage = Stage::Open;
            let protocol_version = (self.dialect == Dialect::One).then_some("1.0");
            let Encoder { thread_id, run_id, .. } = self;
            self.frames.push(&Event::RunStarted { thread_id, run_id, protocol_version });
        }
    }

    fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    pub(super) fn custom(&mut self, name: &str, event: &EventEnvelope) {
        if self.is_open() {
            self.frames.custom(name, event);
        }
    }

    pub(super) fn custom_with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        if self.is_open() {
            self.frames.custom_with(name, value);
        }
    }

    pub(super) fn snapshot(&mut self, snapshot: &Value) {
        if self.is_open() {
            self.frames.push(&Event::StateSnapshot { snapshot });
        }
    }

    /// It came to its end.
    pub(super) fn finish(&mut self, result: &str, usage: Usage<'_>) {
        if self.close(Close::Done) {
            let Encoder { thread_id, run_id, .. } = self;
            let (result, outcome) = (Some(&*shortened(result)), Outcome::Success);
            self.frames.push(&Event::RunFinished {
                thread_id,
                run_id,
                result,
                outcome,
                usage: Some([usage]),
            });
        }
    }

    /// It waits for answers.
    pub(super) fn interrupt(&mut self, interrupts: &[Interrupt<'_>]) {
        let ids: Vec<_> = interrupts.iter().map(|interrupt| interrupt.id).collect();
        if !ids.is_empty() && self.close(Close::Suspended(&ids)) {
            let Encoder { thread_id, run_id, .. } = self;
            let outcome = Outcome::Interrupt { interrupts };
            self.frames.push(&Event::RunFinished { thread_id, run_id, result: None, outcome, usage: None });
        }
    }

    /// Somebody wanted its end. A client before 1.0 knows no such outcome, and would take an unknown one for success.
    pub(super) fn cancel(&mut self, message: &str, usage: Usage<'_>) {
        if self.dialect == Dialect::Older {
            return self.fail(message, "cancelled", Some(usage));
        }
        if self.close(Close::Failed("cancelled")) {
            let Encoder { thread_id, run_id, .. } = self;
            let outcome = Outcome::Cancelled;
            let usage = Some([usage]);
            self.frames.push(&Event::RunFinished { thread_id, run_id, result: None, outcome, usage });
        }
    }

    /// It went wrong. This can be said before the run has begun.
    pub(super) fn fail(&mut self, message: &str, code: &str, usage: Option<Usage<'_>>) {
        if self.close(Close::Failed(message)) || self.stage == Stage::Fresh {
            self.stage = Stage::Over;
            let (message, usage) = (&*shortened(message), usage.map(|usage| [usage]));
            self.frames.push(&Event::RunError { message, code, usage });
        }
    }

    /// Closes what is open, the innermost first. False if there is no run to close.
    fn close(&mut self, how: Close<'_>) -> bool {
        if !self.is_open() {
            return false;
        }
        self.end_speech();
        for call in std::mem::take(&mut self.calls) {
            self.frames.push(&Event::ToolCallEnd { tool_call_id: &call.id });
        }
        self.end_subagents(how);
        self.stage = Stage::Over;
        true
    }
}

/// A text in pieces that fit into a frame; none of an empty text.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(LONGEST_PIECE));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A text that must be in one frame. What is cut off is counted.
fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= LONGEST_PIECE {
        return text.into();
    }
    let head = &text[..text.floor_char_boundary(LONGEST_PIECE)];
    format!("{head}\n[… {} bytes are not shown …]", text.len() - head.len()).into()
}
