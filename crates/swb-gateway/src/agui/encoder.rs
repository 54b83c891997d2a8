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
//! Invariants: the first event is RUN_STARTED or RUN_ERROR; nothing follows the end; at the end no message, thought, call
//! or subagent is open; ids of subagents are used once; clients before 1.0 see no word of 1.0; no delta is empty and no
//! frame comes near ten mebibytes; what is remembered is bounded. Proof: `tests` holds any sequence of events against a
//! model of the client's verifier; `tests/agui` runs the real clients.

use std::collections::HashSet;

use serde_json::{Value, json};
use swb_proto::EventEnvelope;

use super::dialect::Dialect;
use super::frames::Frames;
use super::wire::{Event, Interrupt, Outcome, SubagentOutcome, Usage};

/// The longest piece of text in one frame; escapes make it six times as long at most.
const LONGEST_PIECE: usize = 256 * 1024;
/// Calls, terminals and subagents that are remembered.
const MOST: usize = 1024;
const TERMINAL: &str = "helios.terminal";
/// The name that AG-UI itself gives such an activity.
const PLAN: &str = "PLAN";

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

/// A call whose arguments are being written.
#[derive(Debug)]
struct Call {
    id: String,
    /// Some were sent already.
    streamed: bool,
}

#[derive(Debug)]
struct Subagent {
    id: String,
    step: String,
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

    /// An earlier stream told of these calls: only their results are left to tell.
    pub(super) fn knows_calls(&mut self, calls: Vec<String>) {
        self.unanswered = calls;
    }

    /// Whether the arguments of a call are not complete.
    pub(super) fn is_writing_a_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Calls that have no result yet.
    pub(super) fn unanswered(&self) -> &[String] {
        &self.unanswered
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

    /// A piece of what the model says. `id` is that of the message, if it begins one.
    pub(super) fn say(&mut self, id: impl FnOnce() -> String, delta: &str) {
        if !self.is_open() || delta.is_empty() {
            return;
        }
        self.end_thought();
        let (message, frames) = (&mut self.message, &mut self.frames);
        let message_id = message.get_or_insert_with(|| {
            let id = id();
            frames.push(&Event::TextMessageStart { message_id: &id, role: "assistant" });
            id
        });
        for delta in pieces(delta) {
            frames.push(&Event::TextMessageContent { message_id, delta });
        }
    }

    /// A piece of what the model thinks.
    pub(super) fn think(&mut self, id: impl FnOnce() -> String, delta: &str) {
        if !self.is_open() || delta.is_empty() {
            return;
        }
        self.end_message();
        self.said = None;
        let (thought, frames) = (&mut self.thought, &mut self.frames);
        let message_id = thought.get_or_insert_with(|| {
            let id = id();
            frames.push(&Event::ReasoningStart { message_id: &id });
            frames.push(&Event::ReasoningMessageStart { message_id: &id, role: "reasoning" });
            id
        });
        for delta in pieces(delta) {
            frames.push(&Event::ReasoningMessageContent { message_id, delta });
        }
    }

    /// Whatever is being said or thought is complete.
    pub(super) fn end_speech(&mut self) {
        self.end_message();
        self.end_thought();
    }

    fn end_message(&mut self) {
        if let Some(message_id) = self.message.take() {
            self.frames.push(&Event::TextMessageEnd { message_id: &message_id });
            self.said = Some(message_id);
        }
    }

    fn end_thought(&mut self) {
        if let Some(message_id) = &self.thought.take() {
            self.frames.push(&Event::ReasoningMessageEnd { message_id });
            self.frames.push(&Event::ReasoningEnd { message_id });
        }
    }

    /// Somebody has said something to the run.
    pub(super) fn hear(&mut self, message_id: &str, text: &str) {
        self.end_speech();
        self.said = None;
        if self.is_open() && !text.is_empty() {
            self.frames.push(&Event::TextMessageStart { message_id, role: "user" });
            for delta in pieces(text) {
                self.frames.push(&Event::TextMessageContent { message_id, delta });
            }
            self.frames.push(&Event::TextMessageEnd { message_id });
        }
    }

    /// The model begins to write a call.
    pub(super) fn call(&mut self, id: &str, name: &str) {
        self.end_speech();
        if !self.is_open() || self.unanswered.iter().any(|told| told == id) {
            return;
        }
        if self.unanswered.len() >= MOST {
            self.unanswered.remove(0);
        }
        self.unanswered.push(id.to_owned());
        if self.calls.len() >= MOST {
            let forgotten = self.calls.remove(0);
            self.frames.push(&Event::ToolCallEnd { tool_call_id: &forgotten.id });
        }
        self.frames.push(&Event::ToolCallStart {
            tool_call_id: id,
            tool_call_name: name,
            parent_message_id: self.said.as_deref(),
        });
        self.calls.push(Call { id: id.to_owned(), streamed: false });
    }

    /// A piece of a call's arguments. One of a call that is not open has nowhere to go.
    pub(super) fn arguments(&mut self, id: &str, delta: &str) {
        self.end_speech();
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            for delta in pieces(delta) {
                call.streamed = true;
                self.frames.push(&Event::ToolCallArgs { tool_call_id: id, delta });
            }
        }
    }

    /// A call's arguments are complete.
    pub(super) fn called(&mut self, id: &str, name: &str, arguments: Option<&str>) {
        self.call(id, name);
        if self.calls.iter().any(|call| call.id == id && !call.streamed) {
            self.arguments(id, arguments.unwrap_or_default());
        }
        self.end_call(id);
    }

    fn end_call(&mut self, id: &str) {
        if let Some(at) = self.calls.iter().position(|call| call.id == id) {
            self.calls.remove(at);
            self.frames.push(&Event::ToolCallEnd { tool_call_id: id });
        }
    }

    /// What came of a call.
    pub(super) fn result(&mut self, id: &str, message_id: &str, content: &str) {
        self.end_speech();
        if self.is_open() {
            self.end_call(id);
            self.unanswered.retain(|told| told != id);
            self.said = None;
            let content = &shortened(content);
            self.frames.push(&Event::ToolCallResult { message_id, tool_call_id: id, content, role: "tool" });
        }
    }

    /// A subagent begins. Its path below the run tells it from others of its name.
    pub(super) fn subagent(&mut self, path: &[u64], name: &str, description: Option<&str>) {
        self.end_speech();
        let id = self.subagent_id(path);
        if !self.is_open() || path.is_empty() || self.known.len() >= MOST || self.known.contains(&id) {
            return;
        }
        let step = format!("{name} {}", dotted(path));
        if self.dialect == Dialect::Older {
            self.frames.push(&Event::StepStarted { step_name: &step });
        } else {
            let parent = Some(self.subagent_id(&path[..path.len() - 1])).filter(|id| self.known.contains(id));
            self.frames.push(&Event::SubagentStarted {
                subagent_run_id: &id,
                name,
                description: description.map(|text| pieces(text).next().unwrap_or_default()),
                parent_subagent_run_id: parent.as_deref(),
            });
        }
        self.known.insert(id.clone());
        self.subagents.push(Subagent { id, step });
    }

    /// A subagent is over: with what, or why not.
    pub(super) fn subagent_over(&mut self, path: &[u64], name: &str, end: Result<Option<&str>, &str>) {
        self.subagent(path, name, None);
        let id = self.subagent_id(path);
        let Some(at) = self.subagents.iter().position(|subagent| subagent.id == id) else { return };
        let Subagent { id, step } = &self.subagents.remove(at);
        match (self.dialect, end) {
            (Dialect::Older, _) => self.frames.push(&Event::StepFinished { step_name: step }),
            (Dialect::One, Ok(result)) => {
                let result = result.map(shortened);
                let (result, outcome) = (result.as_deref(), SubagentOutcome::Success);
                self.frames.push(&Event::SubagentFinished { subagent_run_id: id, result, outcome });
            }
            (Dialect::One, Err(message)) => {
                let message = &shortened(message);
                self.frames.push(&Event::SubagentError { subagent_run_id: id, message });
            }
        }
    }

    fn subagent_id(&self, path: &[u64]) -> String {
        format!("{}:{}", self.run_id, dotted(path))
    }

    /// A terminal of the session has put something out.
    pub(super) fn terminal(&mut self, terminal_id: &str, chunk: &Value) {
        if !self.is_open() || (self.terminals.len() >= MOST && !self.terminals.contains(terminal_id)) {
            return;
        }
        if self.terminals.insert(terminal_id.to_owned()) {
            let content = &json!({ "terminal_id": terminal_id, "chunks": [] });
            self.frames.push(&Event::ActivitySnapshot {
                message_id: terminal_id,
                activity_type: TERMINAL,
                content,
                replace: true,
                subagent_run_id: None,
            });
        }
        let patch = &json!([{ "op": "add", "path": "/chunks/-", "value": chunk }]);
        self.frames.push(&Event::ActivityDelta { message_id: terminal_id, activity_type: TERMINAL, patch });
    }

    /// The run, or an agent below it, has a plan: whole each time, in the place of the last one.
    pub(super) fn plan(&mut self, bus_run_id: &str, path: &[u64], content: &Value) {
        self.end_speech();
        if self.is_open() {
            // The same over all streams of the run, so that the client keeps one list of each agent.
            let message_id =
                &path.iter().fold(format!("{bus_run_id}.plan"), |id, number| format!("{id}.{number}"));
            let agent = Some(self.subagent_id(path)).filter(|id| self.known.contains(id));
            self.frames.push(&Event::ActivitySnapshot {
                message_id,
                activity_type: PLAN,
                content,
                replace: true,
                subagent_run_id: agent.as_deref().filter(|_| self.dialect == Dialect::One),
            });
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
        for Subagent { id, step } in std::mem::take(&mut self.subagents).iter().rev() {
            if self.dialect == Dialect::Older {
                self.frames.push(&Event::StepFinished { step_name: step });
                continue;
            }
            let outcome = match how {
                Close::Done => SubagentOutcome::Success,
                Close::Suspended(interrupt_ids) => SubagentOutcome::Suspended { interrupt_ids },
                Close::Failed(message) => {
                    let message = &shortened(message);
                    self.frames.push(&Event::SubagentError { subagent_run_id: id, message });
                    continue;
                }
            };
            self.frames.push(&Event::SubagentFinished { subagent_run_id: id, result: None, outcome });
        }
        self.stage = Stage::Over;
        true
    }
}

fn dotted(path: &[u64]) -> String {
    path.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
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
