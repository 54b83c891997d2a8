//! Runs as spans: what a run tells of itself, put together to what took how long.
//!
//! ```text
//! invoke_agent AGENT   from agent.run.started to its end
//! ├ chat MODEL         from when the model has everything it needs to its last word of that answer
//! ├ execute_tool TOOL  from its call to its result
//! └ invoke_agent NAME  a subagent, from its start to its end
//! ```
//!
//! Pure: the same events give the same spans, with the same ids. A daemon that comes after a crash reads the events of runs
//! under way again, and goes on. Memory: what is open in runs at work, each bounded.

use std::collections::{BTreeMap, HashMap};

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, SpanKind};
use swb_journal::audit::Moment;
use swb_proto::EventEnvelope;
use swb_proto::agent::{McpCall, McpOutcome};
use swb_proto::run::{
    Progress, RunCompleted, RunFailed, RunProgress, RunStarted, RunUsage, SubagentProgress, SubagentState,
    ToolProgress, ToolStatus,
};

use super::counts::tool_outcome;
use super::names;
use super::span::{Micros, Span, Trace, span_id};

/// Calls and subagents of one run that may be open at once; more are not told of.
const MOST_OPEN: usize = 256;

/// Runs at work.
#[derive(Debug, Default)]
pub(super) struct RunSpans {
    open: HashMap<String, OpenRun>,
    /// Whether what was said and done goes along.
    capture: bool,
}

#[derive(Debug)]
struct OpenRun {
    trace: Trace,
    session: Option<String>,
    workspace: Option<String>,
    start: Micros,
    agent: Option<String>,
    model: Option<String>,
    calls: BTreeMap<String, Span>,
    below: BTreeMap<Vec<u64>, Span>,
    /// The answer of the model that is under way: when it began, and its last word.
    answer: Option<(Micros, Option<Micros>)>,
    /// An answer whose use is not known yet.
    answered: Option<Span>,
    answers: u64,
    used: RunUsage,
}

/// The span of a run.
pub(super) fn run_span(run: &str) -> SpanId {
    span_id(&["run", run])
}

/// The span of the command that started a run: what the run is below of.
pub(super) fn start_span(run: &str) -> SpanId {
    span_id(&["start", run])
}

impl RunSpans {
    pub(super) fn new(capture: bool) -> Self {
        RunSpans { open: HashMap::new(), capture }
    }

    /// The run under way in a session: its trace and its span.
    pub(super) fn in_session(&self, session: &str) -> Option<(Trace, SpanId)> {
        let found = self.open.iter().find(|(_, run)| run.session.as_deref() == Some(session));
        found.map(|(id, run)| (run.trace, run_span(id)))
    }

    /// What an event of a run completes.
    pub(super) fn event(&mut self, event: &EventEnvelope, out: &mut Vec<Span>) {
        let Some(at) = micros(event.ts.as_str()) else { return };
        let payload = event.payload.get();
        match event.topic.as_str() {
            "agent.run.started" => {
                let Ok(started) = serde_json::from_str::<RunStarted>(payload) else { return };
                let mut run = OpenRun::new(event, started.run_id.as_str(), at);
                (run.agent, run.model) = (Some(started.agent), started.model);
                self.open.insert(started.run_id.as_str().to_owned(), run);
            }
            "agent.run.progress" => {
                let Ok(told) = serde_json::from_str::<RunProgress>(payload) else { return };
                let capture = self.capture;
                if let Some(run) = self.open.get_mut(told.run_id.as_str()) {
                    run.told(told.run_id.as_str(), at, &told.progress, capture, out);
                }
            }
            "agent.run.completed" => {
                let Ok(end) = serde_json::from_str::<RunCompleted>(payload) else { return };
                let result = self.capture.then_some(end.result.as_str());
                let run = self.take(event, end.run_id.as_str(), at, end.duration_ms);
                out.extend(run.end(end.run_id.as_str(), at, &end.usage, "completed", out_of(result)));
            }
            "agent.run.failed" => {
                let Ok(end) = serde_json::from_str::<RunFailed>(payload) else { return };
                let run = self.take(event, end.run_id.as_str(), at, end.duration_ms);
                let reason = end.error.details.as_ref().and_then(|details| details.get("reason")?.as_str());
                let code = serde_json::to_value(end.error.code).unwrap_or_default();
                let kind = reason.or(code.as_str()).unwrap_or("_OTHER").to_owned();
                let outcome = if end.cancelled { "cancelled" } else { "failed" };
                let how = |span: Span| span.failed(&kind, &end.error.message);
                out.extend(run.end(end.run_id.as_str(), at, &end.usage, outcome, how));
            }
            "agent.run.dropped" => {
                let payload: serde_json::Value = serde_json::from_str(payload).unwrap_or_default();
                self.open.remove(payload["run_id"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// A run that ends; one whose beginning nobody has seen began as long ago as it says.
    fn take(&mut self, event: &EventEnvelope, run: &str, at: Micros, duration_ms: u64) -> OpenRun {
        self.open.remove(run).unwrap_or_else(|| {
            let duration = i64::try_from(duration_ms.saturating_mul(1000)).unwrap_or(0);
            OpenRun::new(event, run, at.saturating_sub(duration))
        })
    }
}

fn out_of(result: Option<&str>) -> impl FnOnce(Span) -> Span {
    move |span| span.with_text(names::RESULT, result)
}

impl OpenRun {
    fn new(event: &EventEnvelope, run: &str, start: Micros) -> Self {
        let correlation = event.correlation_id.as_ref().map_or(run, |id| id.as_str());
        OpenRun {
            trace: Trace::of(correlation),
            session: event.session_id.as_ref().map(|id| id.as_str().to_owned()),
            workspace: event.workspace_id.as_ref().map(|id| id.as_str().to_owned()),
            start,
            agent: None,
            model: None,
            calls: BTreeMap::new(),
            below: BTreeMap::new(),
            answer: Some((start, None)),
            answered: None,
            answers: 0,
            used: RunUsage::default(),
        }
    }

    fn told(&mut self, run: &str, at: Micros, progress: &Progress, capture: bool, out: &mut Vec<Span>) {
        match progress {
            Progress::Text { .. } | Progress::Thinking { .. } => self.speaks(at),
            Progress::Tool { tool } => self.tool(run, at, tool, capture, out),
            Progress::Mcp { call } => self.mcp(run, call, out),
            Progress::Subagent { subagent } => self.subagent(run, at, subagent, out),
            Progress::Usage { usage } => {
                self.uses(usage);
                out.extend(self.answered.take());
            }
            // Its process was started again: what was open is lost.
            Progress::Notice { name, .. } if name == "restarted" => {
                out.extend(self.abandon(at));
                self.answer = Some((at, None));
            }
            _ => {}
        }
    }

    /// The model says something.
    fn speaks(&mut self, at: Micros) {
        self.answer.get_or_insert((at, None)).1 = Some(at);
    }

    /// The model has said what it had to.
    fn is_answered(&mut self, run: &str, out: &mut Vec<Span>) {
        let Some((start, Some(end))) = self.answer else { return };
        self.answer = None;
        self.answers += 1;
        let model = self.model.as_deref().unwrap_or("unknown");
        let id = span_id(&["chat", run, &self.answers.to_string()]);
        let span = Span::new(self.trace, id, SpanKind::Client, format!("{} {model}", names::CHAT), start)
            .below(run_span(run))
            .with(names::OPERATION, names::CHAT);
        out.extend(self.answered.replace(self.about(span).until(end)));
    }

    /// What the run has used so far; what is new is that of the last answer.
    fn uses(&mut self, usage: &RunUsage) {
        let before = std::mem::replace(&mut self.used, usage.clone());
        if let Some(answered) = self.answered.take() {
            let since = RunUsage {
                input_tokens: usage.input_tokens.saturating_sub(before.input_tokens),
                output_tokens: usage.output_tokens.saturating_sub(before.output_tokens),
                cache_read_tokens: usage.cache_read_tokens.saturating_sub(before.cache_read_tokens),
                cache_write_tokens: usage.cache_write_tokens.saturating_sub(before.cache_write_tokens),
                ..RunUsage::default()
            };
            self.answered = Some(with_usage(answered, &since));
        }
    }

    fn tool(&mut self, run: &str, at: Micros, tool: &ToolProgress, capture: bool, out: &mut Vec<Span>) {
        match tool.status {
            ToolStatus::Started | ToolStatus::Arguments => self.speaks(at),
            ToolStatus::Called => {
                self.speaks(at);
                let arguments = tool.args.as_ref().filter(|_| capture).map(ToString::to_string);
                let span = self
                    .call(run, &tool.name, &tool.call_id, at)
                    .with_text(names::TOOL_ARGUMENTS, arguments.as_deref());
                if self.calls.len() < MOST_OPEN {
                    self.calls.insert(tool.call_id.clone(), span);
                }
            }
            ToolStatus::Output => self.is_answered(run, out),
            ToolStatus::Done => {
                self.is_answered(run, out);
                let result = tool.result.as_deref().unwrap_or_default();
                if let Some(span) = self.calls.remove(&tool.call_id) {
                    let span = span.with_text(names::TOOL_RESULT, capture.then_some(result)).until(at);
                    out.push(with_outcome(span, tool_outcome(result)));
                }
                if self.calls.is_empty() {
                    self.answer = Some((at, None));
                }
            }
        }
    }

    fn call(&self, run: &str, tool: &str, call: &str, start: Micros) -> Span {
        let name = format!("{} {tool}", names::EXECUTE_TOOL);
        let id = span_id(&["tool", run, call]);
        let span = Span::new(self.trace, id, SpanKind::Internal, name, start).below(run_span(run));
        span.with(names::OPERATION, names::EXECUTE_TOOL)
            .with_text(names::CONVERSATION, self.session.as_deref())
            .with(names::TOOL, tool.to_owned())
            .with(names::TOOL_CALL, call.to_owned())
    }

    /// A call of an MCP server is over: that of the agent itself ends soon after, that of a subagent is a span of its own.
    fn mcp(&mut self, run: &str, call: &McpCall, out: &mut Vec<Span>) {
        let mcp = |span: Span| {
            let span =
                span.with(names::MCP_METHOD, names::MCP_CALL).with(names::MCP_SERVER, call.server.clone());
            span.with(names::OUTCOME, outcome_word(call.outcome))
        };
        if call.agents.is_empty()
            && let Some(span) = self.calls.remove(&call.tool_id)
        {
            self.calls.insert(call.tool_id.clone(), mcp(span));
            return;
        }
        let Some(start) = micros(&call.started_at) else { return };
        let took = i64::try_from(call.duration_ms.saturating_mul(1000)).unwrap_or(0);
        let by = call.agents.join("/");
        let mut span = self.call(run, &call.tool, &format!("{by}:{}", call.tool_id), start);
        span = mcp(span.with(names::AGENT, by)).until(start.saturating_add(took));
        out.push(with_error(span, call.outcome));
    }

    fn subagent(&mut self, run: &str, at: Micros, told: &SubagentProgress, out: &mut Vec<Span>) {
        let path = |path: &[u64]| path.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
        let span_of = |places: &[u64]| match places {
            [] => run_span(run),
            places => span_id(&["subagent", run, &path(places)]),
        };
        let above = &told.path[..told.path.len().saturating_sub(1)];
        let begin = || {
            let name = format!("{} {}", names::INVOKE_AGENT, told.name);
            let span = Span::new(self.trace, span_of(&told.path), SpanKind::Internal, name, at);
            span.below(span_of(above))
                .with(names::OPERATION, names::INVOKE_AGENT)
                .with(names::AGENT, told.name.clone())
                .with_text(names::CONVERSATION, told.session_id.as_deref())
                .with(names::RUN, run.to_owned())
        };
        let outcome = match told.state {
            SubagentState::Started | SubagentState::Working => {
                if !self.below.contains_key(&told.path) && self.below.len() < MOST_OPEN {
                    let span = begin();
                    self.below.insert(told.path.clone(), span);
                }
                return;
            }
            SubagentState::Done => McpOutcome::Ok,
            SubagentState::Failed => McpOutcome::Failed,
            SubagentState::Cancelled => McpOutcome::Cancelled,
        };
        if let Some(span) = self.below.remove(&told.path) {
            out.push(with_outcome(span.until(at), outcome));
        }
    }

    /// What is open and will not end any more.
    fn abandon(&mut self, at: Micros) -> Vec<Span> {
        let calls = std::mem::take(&mut self.calls).into_values();
        let below = std::mem::take(&mut self.below).into_values();
        let open =
            calls.chain(below).map(|span| span.until(at).failed("interrupted", "it did not come to an end"));
        self.answered.take().into_iter().chain(open).collect()
    }

    /// The run is over.
    fn end(
        mut self,
        run: &str,
        at: Micros,
        usage: &RunUsage,
        outcome: &'static str,
        how: impl FnOnce(Span) -> Span,
    ) -> Vec<Span> {
        let mut out = Vec::new();
        self.is_answered(run, &mut out);
        self.uses(usage);
        out.extend(self.abandon(at));
        let agent = self.agent.as_deref().unwrap_or("unknown");
        let name = format!("{} {agent}", names::INVOKE_AGENT);
        let span = Span::new(self.trace, run_span(run), SpanKind::Internal, name, self.start)
            .below(start_span(run))
            .with(names::OPERATION, names::INVOKE_AGENT)
            .with(names::AGENT, agent.to_owned())
            .with(names::RUN, run.to_owned())
            .with_text(names::WORKSPACE, self.workspace.as_deref())
            .with(names::OUTCOME, outcome)
            .with_count(names::TURNS, usage.turns);
        let mut span = with_usage(self.about(span), usage);
        if let Some(cost) = usage.cost_usd {
            span = span.with(names::COST, cost);
        }
        out.push(how(span).until(at));
        out
    }

    /// With which model, and in which session.
    fn about(&self, span: Span) -> Span {
        let provider = self.model.as_deref().map(|model| model.split('/').next().unwrap_or(model));
        span.with_text(names::PROVIDER, provider)
            .with_text(names::REQUEST_MODEL, self.model.as_deref())
            .with_text(names::CONVERSATION, self.session.as_deref())
    }
}

fn with_usage(span: Span, usage: &RunUsage) -> Span {
    span.with_count(names::INPUT_TOKENS, usage.input_tokens)
        .with_count(names::OUTPUT_TOKENS, usage.output_tokens)
        .with_count(names::CACHE_READ_TOKENS, usage.cache_read_tokens)
        .with_count(names::CACHE_WRITE_TOKENS, usage.cache_write_tokens)
}

fn outcome_word(outcome: McpOutcome) -> &'static str {
    match outcome {
        McpOutcome::Ok => "ok",
        McpOutcome::Failed => "failed",
        McpOutcome::Denied => "denied",
        McpOutcome::Cancelled => "cancelled",
    }
}

fn with_outcome(span: Span, outcome: McpOutcome) -> Span {
    // That of an MCP call is known better than its result tells.
    let told = span.attributes.iter().find(|attribute| attribute.key.as_str() == names::OUTCOME);
    let Some(KeyValue { value, .. }) = told else {
        return with_error(span.with(names::OUTCOME, outcome_word(outcome)), outcome);
    };
    let known = [McpOutcome::Ok, McpOutcome::Failed, McpOutcome::Denied, McpOutcome::Cancelled]
        .into_iter()
        .find(|known| value.as_str() == outcome_word(*known));
    with_error(span, known.unwrap_or(outcome))
}

fn with_error(span: Span, outcome: McpOutcome) -> Span {
    match outcome {
        McpOutcome::Ok => span,
        other => span.failed(outcome_word(other), "the call did not work"),
    }
}

/// A stamp of the wire as a moment.
pub(super) fn micros(stamp: &str) -> Option<Micros> {
    Some(Moment::parse(stamp)?.unix_millis().saturating_mul(1000))
}

#[cfg(test)]
mod tests;
