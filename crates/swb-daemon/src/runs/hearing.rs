//! What an agent says, understood: lines of its output become progress of a run, and answers to what it was told.
//!
//! Pure: the same lines give the same words, however they were cut into pieces and whatever time it is. So a daemon that
//! comes after a crash reads the output again from a place at which nothing was open, leaves out what was told before, and
//! goes on. Secrets do not come through, not even in two pieces. Proof: the tests below, and `tests/runs/` of the command
//! line with the real agent.

mod calls;

use std::borrow::Cow;

use serde_json::Value;
use swb_proto::agent::{AddedEvent, Event, Frame, PlanUpdate, TaskUpdate, TurnUsage, decode_event};
use swb_proto::run::{Progress, Question, SubagentProgress, ToolStatus};
use swb_rules::redact::{RedactedStream, redact, without_paths};

use calls::Call;

/// How much is remembered of what an agent has said since its last call of a tool.
const LONGEST_ANSWER: usize = 256 * 1024;
/// What our own agents begin a piece of text with; other ways to say the same take the long way.
const TEXT: &[u8] = br#"{"type":"message_update","event":{"type":"text_delta","delta":"#;

/// What was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// The agent does something.
    Progress(Progress),
    /// It is there.
    Ready { model: String },
    /// What it was told under this id is done.
    Answered { id: String, body: Answer },
    /// It did not understand, or could not do, what it was told.
    Refused { id: Option<String>, message: String },
    /// A turn is over.
    Turn(TurnUsage),
    /// An agent below it is done.
    Below(TurnUsage),
    /// The end of the line that all this was heard in, and whether what comes does not depend on what was.
    Place { end: u64, at_rest: bool },
}

/// What an answer says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) cancelled: bool,
    pub(super) error: Option<String>,
    /// Whether the agent works or has something to do, if that was asked.
    pub(super) is_busy: Option<bool>,
    /// What the session has used, if that was asked.
    pub(super) totals: Option<(TurnUsage, Option<f64>)>,
}

/// Whose words a stream of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Text,
    Thinking,
}

/// Listens to one agent.
#[derive(Debug, Default)]
pub(super) struct Ear {
    open: Option<(Voice, RedactedStream)>,
    calls: Vec<Call>,
    said: String,
}

impl Ear {
    /// Whether what was heard so far has no bearing on what comes.
    pub(super) fn is_at_rest(&self) -> bool {
        self.open.is_none() && self.calls.is_empty() && self.said.is_empty()
    }

    /// What the agent has said since its last call of a tool.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Forgets what was said: a run is over.
    pub(super) fn clear(&mut self) {
        *self = Ear::default();
    }

    /// Understands a line, without its end. `hash` is the keyed hash of arguments.
    pub(super) fn hear(&mut self, line: &[u8], hash: impl Fn(&[u8]) -> String, out: &mut Vec<Heard>) {
        if let Some(delta) = plain_text(line) {
            return self.speak(Voice::Text, &delta, out);
        }
        let frame = match decode_event(line) {
            Ok(frame) => frame,
            // Programs that are not ours may say what they like.
            Err(_) => return,
        };
        match frame {
            Frame::Contract(Event::MessageUpdate { event }) => self.piece(event, hash, out),
            Frame::Contract(event) => {
                self.fall_silent(out);
                self.event(event, out);
            }
            Frame::Added(event) => self.added(event, out),
            Frame::Unknown => {}
        }
    }

    fn speak(&mut self, voice: Voice, delta: &str, out: &mut Vec<Heard>) {
        if self.open.as_ref().is_some_and(|(open, _)| *open != voice) {
            self.fall_silent(out);
        }
        let (_, stream) = self.open.get_or_insert_with(|| (voice, RedactedStream::new()));
        let delta = stream.push(delta);
        self.spoken(voice, delta, out);
    }

    fn spoken(&mut self, voice: Voice, delta: String, out: &mut Vec<Heard>) {
        if delta.is_empty() {
            return;
        }
        out.push(Heard::Progress(match voice {
            Voice::Text => {
                if self.said.len() + delta.len() <= LONGEST_ANSWER {
                    self.said.push_str(&delta);
                }
                Progress::Text { delta }
            }
            Voice::Thinking => Progress::Thinking { delta },
        }));
    }

    /// Something else comes: what was held back of the text leaves.
    fn fall_silent(&mut self, out: &mut Vec<Heard>) {
        if let Some((voice, stream)) = self.open.take() {
            self.spoken(voice, stream.finish().0, out);
        }
    }

    fn event(&mut self, event: Event, out: &mut Vec<Heard>) {
        match event {
            Event::Ready { model, .. } => out.push(Heard::Ready { model }),
            Event::AgentEnd { usage } => out.push(Heard::Turn(usage)),
            Event::Response { id, command, body } => {
                let text = |key: &str| body.get(key).and_then(Value::as_str).map(presentable);
                let totals = (command == "get_session_stats").then(|| totals(&body));
                let is_busy = (command == "get_state").then(|| {
                    body.get("streaming").and_then(Value::as_bool) == Some(true)
                        || body.get("queued").and_then(Value::as_u64).is_some_and(|queued| queued > 0)
                });
                let cancelled = body.get("cancelled").and_then(Value::as_bool).unwrap_or(false);
                let failed = body.get("ok").and_then(Value::as_bool) == Some(false);
                let error = text("error").or_else(|| failed.then(|| "its turn failed".to_owned()));
                out.push(Heard::Answered { id, body: Answer { cancelled, error, is_busy, totals } });
            }
            Event::Error { id, message } => out.push(Heard::Refused { id, message: presentable(&message) }),
            // Our own agents say the same, and more, in `task_update`.
            Event::SubagentStart { .. } | Event::SubagentUpdate { .. } | Event::SubagentDone { .. } => {}
            Event::MessageUpdate { .. } => {}
        }
    }

    fn added(&mut self, event: AddedEvent, out: &mut Vec<Heard>) {
        match event {
            AddedEvent::ToolOutput { tool_id, delta } => {
                self.fall_silent(out);
                let Some(call) = self.calls.iter_mut().find(|call| call.id == tool_id) else { return };
                let shown = call.output.get_or_insert_default().push(&delta);
                call.say(ToolStatus::Output, shown, out);
            }
            AddedEvent::TaskUpdate(update) => {
                self.fall_silent(out);
                if let Some(usage) = &update.usage {
                    out.push(Heard::Below(usage.clone()));
                }
                out.push(Heard::Progress(Progress::Subagent { subagent: subagent(update) }));
            }
            AddedEvent::Plan(update) => {
                self.fall_silent(out);
                out.extend(plan(update));
            }
            AddedEvent::McpCall(mut call) => {
                // An agent within walls does not see the key of this installation: its hash is good for itself alone.
                let known = self.calls.iter().find(|open| open.id == call.tool_id && call.agents.is_empty());
                if let Some(args_hash) = known.and_then(|open| open.args_hash.clone()) {
                    call.args_hash = args_hash;
                }
                out.push(Heard::Progress(Progress::Mcp { call: Box::new(call) }));
            }
            AddedEvent::McpServer(server) => {
                let how = serde_json::to_value(server.state).unwrap_or_default();
                let how = how.as_str().unwrap_or_default();
                let message = server.message.map(|message| format!(": {}", presentable(&message)));
                let message = format!("{} is {how}{}", server.server, message.unwrap_or_default());
                out.push(notice("mcp_server", message));
            }
            AddedEvent::ModelRetry { attempt, retries, wait_ms, reason } => {
                let message =
                    format!("attempt {attempt} of {retries} in {wait_ms} ms: {}", presentable(&reason));
                out.push(notice("model_retry", message));
            }
            AddedEvent::CompactionStart { reason, .. } => {
                out.push(notice("compaction", presentable(&reason)));
            }
            AddedEvent::CompactionEnd { error: Some(error), .. } => {
                out.push(notice("compaction", presentable(&error)));
            }
            AddedEvent::Ask { ask_id, options, free_text, deadline, reason, .. } => {
                self.fall_silent(out);
                let text = redact(&reason).text;
                let question = Question { ask_id, text, options, free_text, deadline };
                out.push(Heard::Progress(Progress::Question { question }));
            }
            AddedEvent::AskClosed { ask_id, outcome } => {
                self.fall_silent(out);
                out.push(Heard::Progress(Progress::Answered { ask_id, outcome }));
            }
            AddedEvent::CompactionEnd { .. } | AddedEvent::LentCall(_) | AddedEvent::LentCancel { .. } => {}
        }
    }
}

/// The text of a piece of text as our own agents write it.
fn plain_text(line: &[u8]) -> Option<Cow<'_, str>> {
    let string = line.strip_prefix(TEXT)?.strip_suffix(b"}}")?;
    serde_json::from_slice::<Piece<'_>>(string).ok().map(|piece| piece.0)
}

#[derive(serde::Deserialize)]
struct Piece<'a>(#[serde(borrow)] Cow<'a, str>);

fn notice(name: &str, message: String) -> Heard {
    Heard::Progress(Progress::Notice { name: name.to_owned(), message })
}

/// A plan as it is told, without secrets. What is too large for one, or says two things at once, is none: programs that are
/// not ours say it as our own do, or not at all.
fn plan(mut update: PlanUpdate) -> Option<Heard> {
    update.plan.check().ok()?;
    let texts = update.plan.steps.iter_mut().map(|step| &mut step.text);
    for text in texts.chain(&mut update.plan.note) {
        *text = redact(text).text;
    }
    Some(Heard::Progress(Progress::Plan(update.into())))
}

fn subagent(update: TaskUpdate) -> SubagentProgress {
    let preview = update.status.or(update.preview);
    SubagentProgress {
        path: update.path,
        name: update.agents.last().cloned().unwrap_or_default(),
        state: update.state.into(),
        session_id: update.session_id,
        preview: preview.map(|text| redact(&text).text),
    }
}

fn totals(body: &std::collections::BTreeMap<String, Value>) -> (TurnUsage, Option<f64>) {
    let number = |key: &str| body.get(key).and_then(Value::as_u64).unwrap_or(0);
    let usage = TurnUsage {
        input_tokens: number("input_tokens"),
        output_tokens: number("output_tokens"),
        cache_read_input_tokens: number("cache_read_input_tokens"),
        cache_creation_input_tokens: number("cache_creation_input_tokens"),
        estimated: body.get("estimated").and_then(Value::as_bool).unwrap_or(false),
        ..TurnUsage::default()
    };
    (usage, body.get("cost").and_then(Value::as_f64))
}

/// What went wrong, as others may see it.
fn presentable(message: &str) -> String {
    without_paths(&redact(message).text).into_owned()
}

#[cfg(test)]
mod tests;
