//! The events of a run as the frames that its agent had said: what is shown of a run is the same, wherever it works.
//!
//! Pure: an event goes in, frames come out. Events of other runs and sessions give none. Approvals become questions; how
//! many were denied because nobody could be asked is counted.

mod approvals;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use swb_journal::audit::Moment;
use swb_proto::EventEnvelope;
use swb_proto::agent::{AddedEvent, AssistantEvent, Event, Frame, PROTOCOL_VERSION, TurnUsage};
use swb_proto::error::ErrorEnvelope;
use swb_proto::id::{ApprovalId, RunId, SessionId};
use swb_proto::run::{
    Attended, Progress, Run, RunCompleted, RunFailed, RunProgress, RunStarted, RunState, RunUsage,
    SubagentProgress, SubagentState, ToolProgress, ToolStatus,
};

use super::super::drive::DENIED;
use super::super::prompt::ID;

/// What an event is to whoever looks on.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    /// It is about this run.
    pub(super) is_ours: bool,
    pub(super) frames: Vec<Frame>,
    pub(super) aside: Option<String>,
}

/// Tells of one run.
#[derive(Debug)]
pub(super) struct Teller {
    pub(super) run: RunId,
    pub(super) session: SessionId,
    attended: Attended,
    denied: u64,
    /// The number of the last piece of progress.
    step: u64,
    usage: RunUsage,
    /// When the agents that it has started began, in milliseconds.
    subagents: HashMap<u64, i64>,
    /// What was asked.
    asked: HashSet<ApprovalId>,
    /// Calls of tools that are under way.
    calls: HashSet<String>,
    is_over: bool,
}

#[derive(Deserialize)]
struct OfRun {
    run_id: RunId,
}

#[derive(Deserialize)]
struct Dropped {
    #[serde(default)]
    error: Option<ErrorEnvelope>,
}

impl Teller {
    pub(super) fn new(run: RunId, session: SessionId, attended: Attended) -> Self {
        Teller {
            run,
            session,
            attended,
            denied: 0,
            step: 0,
            usage: RunUsage::default(),
            subagents: HashMap::new(),
            asked: HashSet::new(),
            calls: HashSet::new(),
            is_over: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What the first frame of an agent says, before anything is known of it.
    pub(super) fn ready(&self, model: &str) -> Frame {
        Frame::Contract(Event::Ready {
            session_id: self.session.as_str().to_owned(),
            model: model.to_owned(),
            protocol_version: PROTOCOL_VERSION,
        })
    }

    /// The figures that are asked for at the end.
    pub(super) fn stats(&self, id: String) -> Frame {
        let mut body = BTreeMap::from([("session_id".to_owned(), json!(self.session))]);
        if let Some(cost) = self.usage.cost_usd {
            body.insert("cost".to_owned(), json!(cost));
        }
        Frame::Contract(Event::Response { id, command: "get_session_stats".to_owned(), body })
    }

    pub(super) fn tell(&mut self, event: &EventEnvelope) -> Told {
        let topic = event.topic.as_str();
        let of_session = event.session_id.as_ref() == Some(&self.session);
        if let Some(what) = topic.strip_prefix("approval.") {
            return if of_session { self.approval(what, event) } else { Told::default() };
        }
        let Some(what) = topic.strip_prefix("agent.run.") else { return Told::default() };
        if self.is_over || payload::<OfRun>(event).is_none_or(|of| of.run_id != self.run) {
            return Told::default();
        }
        let mut told = Told { is_ours: true, ..Told::default() };
        match what {
            "queued" => told.aside = Some("it waits for its turn; `swb why` tells what for".to_owned()),
            "started" => {
                let model = payload::<RunStarted>(event).and_then(|started| started.model);
                told.frames.push(self.ready(&model.unwrap_or_default()));
            }
            "progress" => {
                if let Some(RunProgress { progress, step, .. }) = payload(event) {
                    // They are numbered without a hole, so one that is missing is noticed.
                    if self.step > 0 && step > self.step + 1 {
                        let missing = step - self.step - 1;
                        told.aside = Some(format!("{missing} pieces of what it did before this are missing"));
                    }
                    self.step = step;
                    self.progress(progress, event, &mut told);
                }
            }
            "completed" => {
                let usage = payload::<RunCompleted>(event).map(|end| end.usage).unwrap_or_default();
                told.frames = self.end(usage, None, false);
            }
            "failed" => {
                let end = payload::<RunFailed>(event);
                let (usage, cancelled) =
                    end.as_ref().map(|end| (end.usage.clone(), end.cancelled)).unwrap_or_default();
                told.frames = self.end(usage, Some(message(end.map(|end| end.error))), cancelled);
            }
            "dropped" => {
                let error = payload::<Dropped>(event).and_then(|dropped| dropped.error);
                told.frames = self.end(RunUsage::default(), Some(message(error)), false);
            }
            _ => {}
        }
        told
    }

    /// The end of a run whose last event was not seen.
    pub(super) fn looked_up(&mut self, run: Run) -> Vec<Frame> {
        match run.state {
            RunState::Queued | RunState::Running => Vec::new(),
            RunState::Completed => self.end(run.usage, None, false),
            RunState::Failed => self.end(run.usage, Some(message(run.error)), false),
            RunState::Cancelled => self.end(run.usage, Some(message(run.error)), true),
        }
    }

    fn end(&mut self, usage: RunUsage, error: Option<String>, cancelled: bool) -> Vec<Frame> {
        self.is_over = true;
        let of_turn = TurnUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_input_tokens: usage.cache_read_tokens,
            cache_creation_input_tokens: usage.cache_write_tokens,
            estimated: usage.estimated,
            ..TurnUsage::default()
        };
        self.usage = usage;
        let mut body = BTreeMap::from([
            ("ok".to_owned(), json!(error.is_none())),
            ("cancelled".to_owned(), json!(cancelled)),
            (DENIED.to_owned(), json!(self.denied)),
        ]);
        if let Some(error) = error {
            body.insert("error".to_owned(), json!(error));
        }
        let answer = Event::Response { id: ID.to_owned(), command: "prompt".to_owned(), body };
        vec![Frame::Contract(Event::AgentEnd { usage: of_turn }), Frame::Contract(answer)]
    }

    fn progress(&mut self, progress: Progress, event: &EventEnvelope, told: &mut Told) {
        let piece = |event| Frame::Contract(Event::MessageUpdate { event });
        let frame = match progress {
            Progress::Text { delta } => piece(AssistantEvent::TextDelta { delta }),
            Progress::Thinking { delta } => piece(AssistantEvent::ThinkingDelta { delta }),
            Progress::Tool { tool } => {
                told.frames.extend(self.call(&tool));
                tool_frame(tool)
            }
            Progress::Subagent { subagent } => self.subagent(subagent, millis(event)),
            Progress::Plan(plan) => Frame::Added(AddedEvent::Plan(plan.into())),
            Progress::Mcp { call } => Frame::Added(AddedEvent::McpCall(*call)),
            Progress::Question { question } => Frame::Added(AddedEvent::Ask {
                ask_id: question.ask_id,
                subject: serde_json::json!({ "tool": "ask_user" }),
                risk: "low".to_owned(),
                options: question.options,
                free_text: question.free_text,
                deadline: question.deadline,
                reason: question.text,
            }),
            Progress::Answered { ask_id, outcome } => Frame::Added(AddedEvent::AskClosed { ask_id, outcome }),
            Progress::Notice { message, .. } => Frame::Contract(Event::Error { id: None, message }),
            Progress::Input { text, from, .. } => {
                told.aside = Some(format!("{from}: {text}"));
                return;
            }
            Progress::Usage { usage } => {
                self.usage = usage;
                return;
            }
            Progress::Other => return,
        };
        told.frames.push(frame);
    }

    /// The beginning of a call that was under way before we came.
    fn call(&mut self, tool: &ToolProgress) -> Option<Frame> {
        let is_new = match tool.status {
            ToolStatus::Done => !self.calls.remove(&tool.call_id),
            _ => self.calls.insert(tool.call_id.clone()),
        };
        let (tool_id, tool_name) = (tool.call_id.clone(), tool.name.clone());
        let event = AssistantEvent::ToolcallStart { tool_id, tool_name };
        (is_new && tool.status != ToolStatus::Started)
            .then_some(Frame::Contract(Event::MessageUpdate { event }))
    }

    fn subagent(&mut self, subagent: SubagentProgress, now: i64) -> Frame {
        let SubagentProgress { path, name, state, preview, .. } = subagent;
        let subagent_id = path.first().copied().unwrap_or_default();
        let preview = preview.unwrap_or_default();
        let event = match state {
            // Those of subagents are shown at the one that has started them.
            _ if path.len() > 1 => {
                let status = format!("{name}: {preview}");
                Event::SubagentUpdate { subagent_id, agent_name: name, status }
            }
            SubagentState::Started => {
                self.subagents.insert(subagent_id, now);
                Event::SubagentStart { subagent_id, agent_name: name, task_preview: preview }
            }
            SubagentState::Working => {
                Event::SubagentUpdate { subagent_id, agent_name: name, status: preview }
            }
            SubagentState::Done | SubagentState::Failed | SubagentState::Cancelled => {
                let began = self.subagents.remove(&subagent_id).unwrap_or(now);
                let took = u32::try_from(now - began).unwrap_or(0);
                let result_preview = match state {
                    SubagentState::Done => preview,
                    SubagentState::Cancelled => "ERROR: cancelled".to_owned(),
                    _ => format!("ERROR: {preview}"),
                };
                let duration_secs = f64::from(took) / 1000.0;
                Event::SubagentDone { subagent_id, agent_name: name, result_preview, duration_secs }
            }
        };
        Frame::Contract(event)
    }
}

fn tool_frame(tool: ToolProgress) -> Frame {
    let ToolProgress { name, call_id: tool_id, status, delta, args, result, .. } = tool;
    let delta = delta.unwrap_or_default();
    let event = match status {
        ToolStatus::Started => AssistantEvent::ToolcallStart { tool_id, tool_name: name },
        ToolStatus::Arguments => AssistantEvent::ToolcallInputDelta { tool_id, delta },
        ToolStatus::Called => AssistantEvent::ToolcallInput { tool_id, input: args.unwrap_or_default() },
        ToolStatus::Output => return Frame::Added(AddedEvent::ToolOutput { tool_id, delta }),
        ToolStatus::Done => AssistantEvent::ToolcallResult { tool_id, result: result.unwrap_or_default() },
    };
    Frame::Contract(Event::MessageUpdate { event })
}

fn payload<T: DeserializeOwned>(event: &EventEnvelope) -> Option<T> {
    serde_json::from_str(event.payload.get()).ok()
}

fn millis(event: &EventEnvelope) -> i64 {
    Moment::parse(event.ts.as_str()).map(Moment::unix_millis).unwrap_or_default()
}

fn message(error: Option<ErrorEnvelope>) -> String {
    error.map_or_else(|| "the daemon does not say why".to_owned(), |error| error.message)
}

#[cfg(test)]
mod tests;
