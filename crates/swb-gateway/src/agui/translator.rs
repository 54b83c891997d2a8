//! From events of the bus to a run as AG-UI knows it. Pure: the same events give the same bytes.
//!
//! Every event that concerns the run is sent as `CUSTOM` under its name for front ends, and as genuine AG-UI where there
//! is a word for it. Events of other runs and other sessions are none of its business.

mod pieces;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use swb_proto::EventEnvelope;
use swb_proto::approval::Approval;
use swb_proto::run::{RunCompleted, RunFailed, RunStarted, RunUsage};

use super::dialect::Dialect;
use super::encoder::Encoder;
use super::interrupt;
use super::progress::{OfRun, Progress};
use super::ui;
use super::wire::{NAMESPACE, Usage};

/// A larger state of the client's is left alone.
const LARGEST_STATE: usize = 1024 * 1024;

/// Whose stream it is, in the words of both sides.
#[derive(Debug, Clone)]
pub struct Names {
    /// The client's thread.
    pub thread_id: String,
    /// The client's run.
    pub run_id: String,
    /// The session that the thread is.
    pub session_id: String,
    /// The run of the bus that is told of.
    pub bus_run_id: String,
}

/// How a run stands after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It goes on.
    Going,
    /// It waits for answers: [`Translator::interrupt`] ends this stream of it.
    Asking,
    /// Its end was said. Nothing follows.
    Over,
}

/// One run's stream.
#[derive(Debug)]
pub struct Translator {
    encoder: Encoder,
    names: Names,
    model: Option<String>,
    usage: RunUsage,
    /// The number of the last piece of progress; none before the first one of a stream that goes on.
    step: Option<u64>,
    /// Questions without an answer, the oldest first.
    asked: Vec<Approval>,
    /// What the client keeps as its state, if something can be added to it.
    state: Option<Map<String, Value>>,
}

impl Translator {
    /// A stream for a client of this dialect, whose state is `state`.
    pub fn new(dialect: Dialect, names: Names, state: Option<Value>) -> Self {
        let state = match state.unwrap_or_default() {
            Value::Null => Some(Map::new()),
            Value::Object(state) => Some(state),
            _ => None,
        };
        let state =
            state.filter(|state| serde_json::to_string(state).is_ok_and(|text| text.len() <= LARGEST_STATE));
        let mut encoder = Encoder::new(dialect, &names.thread_id, &names.run_id);
        encoder.frames.provenance.of_run(&names.session_id, &names.bus_run_id);
        let usage = RunUsage::default();
        Translator { encoder, names, model: None, usage, step: Some(0), asked: Vec::new(), state }
    }

    /// The same run goes on, with a model and calls that were told before.
    #[must_use]
    pub fn going_on(mut self, model: Option<String>, calls: Vec<String>) -> Self {
        self.encoder.knows_calls(calls);
        Translator { model, step: None, ..self }
    }

    /// Whether the arguments of a call are not complete.
    pub fn is_writing_a_call(&self) -> bool {
        self.encoder.is_writing_a_call()
    }

    /// Calls that were told of and have no result yet.
    pub fn unanswered(&self) -> &[String] {
        self.encoder.unanswered()
    }

    /// Says that the run began. What the client's state holds of an earlier run's questions is taken back.
    pub fn start(&mut self) {
        self.encoder.start();
        if self.state.as_ref().is_some_and(|state| state.contains_key(NAMESPACE)) {
            self.snapshot();
        }
    }

    /// Says what an event means for this run.
    pub fn translate(&mut self, event: &EventEnvelope) -> Standing {
        if !self.encoder.is_over() {
            self.tell(event);
        }
        self.standing()
    }

    /// How the run stands.
    pub fn standing(&self) -> Standing {
        match (self.encoder.is_over(), self.asked.is_empty()) {
            (true, _) => Standing::Over,
            (false, true) => Standing::Going,
            (false, false) => Standing::Asking,
        }
    }

    fn tell(&mut self, event: &EventEnvelope) {
        let (topic, payload) = (event.topic.as_str(), event.payload.get());
        match topic {
            // Before anything is read: there may be many runs, and each stream sees the events of all.
            _ if topic.starts_with("agent.run.") && !self.is_here(event) => {}
            "agent.run.progress"
                if let Ok(progress) = serde_json::from_str::<Progress<'_>>(payload)
                    && *progress.run_id == *self.names.bus_run_id =>
            {
                self.custom(event);
                self.progress(&progress, payload);
            }
            "approval.requested" => match serde_json::from_str::<Approval>(payload) {
                Ok(approval) if self.may_answer(&approval) => {
                    self.custom(event);
                    self.asks(approval);
                }
                _ => {}
            },
            "approval.resolved" => self.answered(event),
            _ if topic.starts_with("agent.run.") => {
                let of = serde_json::from_str::<OfRun<'_>>(payload);
                if of.is_ok_and(|of| *of.run_id == *self.names.bus_run_id) {
                    self.custom(event);
                    self.run(topic, payload);
                }
            }
            _ if self.is_here(event) => {
                self.custom(event);
                if topic == "terminal.output" {
                    self.terminal(event);
                }
            }
            _ => {}
        }
    }

    fn custom(&mut self, event: &EventEnvelope) {
        self.encoder.frames.provenance.of(event);
        if let Some(name) = ui::name_of(event) {
            self.encoder.custom(name, event);
        }
    }

    fn is_here(&self, event: &EventEnvelope) -> bool {
        event.session_id.as_ref().is_some_and(|id| id.as_str() == self.names.session_id)
    }

    fn run(&mut self, topic: &str, payload: &str) {
        match topic {
            "agent.run.started" => {
                let started = serde_json::from_str::<RunStarted>(payload);
                self.model = started.ok().and_then(|started| started.model).or(self.model.take());
            }
            "agent.run.completed" => self.completed(payload),
            "agent.run.failed" => self.failed(payload),
            // It was taken back while it waited.
            "agent.run.dropped" => {
                let usage = Usage::new(&self.usage, None, self.encoder.knows_cache_writes());
                self.encoder.cancel("the run was taken back before it began", usage);
            }
            _ => {}
        }
    }

    fn completed(&mut self, payload: &str) {
        let (result, usage) = match serde_json::from_str::<RunCompleted>(payload) {
            Ok(completed) => (completed.result, completed.usage),
            Err(_) => (String::new(), self.usage.clone()),
        };
        let usage = Usage::new(&usage, self.model.as_deref(), self.encoder.knows_cache_writes());
        self.encoder.finish(&result, usage);
    }

    fn failed(&mut self, payload: &str) {
        let Ok(failed) = serde_json::from_str::<RunFailed>(payload) else {
            return self.fail("INTERNAL_ERROR", "the run failed");
        };
        let usage = Usage::new(&failed.usage, self.model.as_deref(), self.encoder.knows_cache_writes());
        if failed.cancelled {
            self.encoder.cancel(&failed.error.message, usage);
        } else {
            let code = serde_json::to_value(failed.error.code).unwrap_or_default();
            self.encoder.fail(&failed.error.message, code.as_str().unwrap_or_default(), Some(usage));
        }
    }

    /// Whether a question was put by the run's agent, or by one below it.
    pub fn may_answer(&self, approval: &Approval) -> bool {
        let session_id = &self.names.session_id;
        approval.session_id.as_ref().is_some_and(|id| id.as_str() == session_id)
            || approval.audience.iter().any(|agent| agent == session_id)
    }

    /// A question without an answer that was put before.
    pub fn asks(&mut self, approval: Approval) {
        if !self.asked.iter().any(|asked| asked.approval_id == approval.approval_id) {
            self.asked.push(approval);
        }
    }

    fn answered(&mut self, event: &EventEnvelope) {
        #[derive(serde::Deserialize)]
        struct Answered {
            approval_id: String,
        }
        let Ok(answered) = serde_json::from_str::<Answered>(event.payload.get()) else { return };
        let before = self.asked.len();
        self.asked.retain(|asked| asked.approval_id.as_str() != answered.approval_id);
        if self.is_here(event) || before != self.asked.len() {
            self.custom(event);
        }
    }

    /// The questions that wait.
    pub fn asked(&self) -> &[Approval] {
        &self.asked
    }

    /// Ends this stream of the run with the questions that wait. It says nothing if none does.
    pub fn interrupt(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        self.snapshot();
        let calls = self.encoder.unanswered().to_vec();
        interrupt::with(&self.asked, &calls, |interrupts| self.encoder.interrupt(interrupts));
    }

    fn snapshot(&mut self) {
        let Some(state) = &mut self.state else { return };
        let Names { session_id, bus_run_id, .. } = &self.names;
        let ours = json!({ "session_id": session_id, "run_id": bus_run_id, "approvals": self.asked });
        state.insert(NAMESPACE.to_owned(), ours);
        self.encoder.snapshot(&Value::Object(state.clone()));
    }

    /// Ends the stream with an error of the endpoint's own.
    pub fn fail(&mut self, code: &str, message: &str) {
        self.encoder.fail(message, code, None);
    }

    /// What follows is said by the endpoint itself.
    pub fn of_itself(&mut self) {
        self.encoder.frames.provenance.of_run(&self.names.session_id, &self.names.bus_run_id);
    }

    /// Whether the end was said.
    pub fn is_over(&self) -> bool {
        self.encoder.is_over()
    }

    /// How many bytes wait to be taken.
    pub fn waiting(&self) -> usize {
        self.encoder.frames.len()
    }

    /// The frames since the last time.
    pub fn take(&mut self) -> Bytes {
        self.encoder.frames.take().into()
    }
}
