//! What an agent says, understood: lines of its output become progress of a run, and answers to what it was told.
//!
//! Pure: the same lines give the same words, however they were cut into pieces and whatever time it is. So a daemon that
//! comes after a crash reads the output again from a place at which nothing was open, leaves out what was told before, and
//! goes on. Secrets do not come through, not even in two pieces. Proof: the tests below, and `tests/runs/` of the command
//! line with the real agent.

use std::borrow::Cow;

use serde_json::Value;
use swb_proto::agent::{AddedEvent, AssistantEvent, Event, Frame, TaskUpdate, TurnUsage, decode_event};
use swb_proto::run::{Progress, Question, SubagentProgress, ToolProgress, ToolStatus};
use swb_rules::redact::{RedactedArguments, RedactedStream, redact, redact_json, without_paths};

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

/// A call of a tool that is not over.
#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    /// The keyed hash of its arguments, once they are whole.
    args_hash: Option<String>,
    arguments: Option<RedactedArguments>,
    output: Option<RedactedStream>,
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

    fn piece(&mut self, event: AssistantEvent, hash: impl Fn(&[u8]) -> String, out: &mut Vec<Heard>) {
        match event {
            AssistantEvent::TextDelta { delta } => self.speak(Voice::Text, &delta, out),
            AssistantEvent::ThinkingDelta { delta } => self.speak(Voice::Thinking, &delta, out),
            AssistantEvent::ToolcallStart { tool_id, tool_name } => {
                self.fall_silent(out);
                // Words before a call are thoughts on the way, not the answer.
                self.said.clear();
                out.push(tool(&tool_name, &tool_id, ToolStatus::Started, |_| {}));
                self.calls.push(Call {
                    id: tool_id,
                    name: tool_name,
                    args_hash: None,
                    arguments: None,
                    output: None,
                });
            }
            AssistantEvent::ToolcallInputDelta { tool_id, delta } => {
                self.fall_silent(out);
                let Some(call) = self.calls.iter_mut().find(|call| call.id == tool_id) else { return };
                let shown = call.arguments.get_or_insert_default().push(&delta);
                call.say(ToolStatus::Arguments, shown, out);
            }
            AssistantEvent::ToolcallInput { tool_id, mut input } => {
                self.fall_silent(out);
                let args_hash = hash(input.to_string().as_bytes());
                let call = self.calls.iter_mut().find(|call| call.id == tool_id);
                let name = call.as_ref().map_or_else(String::new, |call| call.name.clone());
                if let Some(call) = call {
                    call.args_hash = Some(args_hash.clone());
                    if let Some(arguments) = call.arguments.take() {
                        call.say(ToolStatus::Arguments, arguments.finish(), out);
                    }
                }
                redact_json(&mut input);
                out.push(tool(&name, &tool_id, ToolStatus::Called, |tool| {
                    tool.args = Some(input);
                    tool.args_hash = Some(args_hash);
                }));
            }
            AssistantEvent::ToolcallResult { tool_id, result } => {
                self.fall_silent(out);
                let at = self.calls.iter().position(|call| call.id == tool_id);
                let call = at.map(|at| self.calls.remove(at));
                let name = call.as_ref().map_or("", |call| call.name.as_str()).to_owned();
                if let Some(mut call) = call
                    && let Some(output) = call.output.take()
                {
                    call.say(ToolStatus::Output, output.finish().0, out);
                }
                let result = redact(&result).text;
                out.push(tool(&name, &tool_id, ToolStatus::Done, |tool| tool.result = Some(result)));
            }
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

impl Call {
    fn say(&self, status: ToolStatus, delta: String, out: &mut Vec<Heard>) {
        if !delta.is_empty() {
            out.push(tool(&self.name, &self.id, status, |tool| tool.delta = Some(delta)));
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

fn tool(name: &str, call_id: &str, status: ToolStatus, fill: impl FnOnce(&mut ToolProgress)) -> Heard {
    let mut tool = ToolProgress {
        name: name.to_owned(),
        call_id: call_id.to_owned(),
        status,
        delta: None,
        args: None,
        args_hash: None,
        result: None,
    };
    fill(&mut tool);
    Heard::Progress(Progress::Tool { tool })
}

fn notice(name: &str, message: String) -> Heard {
    Heard::Progress(Progress::Notice { name: name.to_owned(), message })
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
