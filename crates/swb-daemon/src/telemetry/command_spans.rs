//! Commands as spans: what the gate let through or refused, with what was asked before.

use std::collections::HashMap;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use swb_journal::audit::{Entry, Moment, Status};
use swb_proto::EventEnvelope;

use super::names;
use super::run_spans::{RunSpans, micros, start_span};
use super::span::{Micros, Span, Trace, span_id};

/// Questions that are remembered until what they were about ends.
const MOST_ASKED: usize = 1024;

/// A command that has ended, as far as spans tell of it.
#[derive(Debug, Clone)]
pub(crate) struct CommandEnd {
    method: String,
    actor: Option<(String, String)>,
    session: Option<String>,
    workspace: Option<String>,
    correlation: Option<String>,
    decision: Option<swb_journal::audit::RecordedDecision>,
    status: Status,
    error: Option<(String, String)>,
    at: Moment,
    took_us: u64,
    /// The run that it started.
    run: Option<String>,
}

impl CommandEnd {
    pub(crate) fn new(end: &Entry, run: Option<String>) -> Self {
        let code = end.error_code.clone();
        CommandEnd {
            method: end.method.clone().unwrap_or_default(),
            actor: end.actor.as_ref().map(|actor| (actor.kind.clone(), actor.id.clone())),
            session: end.session_id.clone(),
            workspace: end.workspace_id.clone(),
            correlation: end.correlation_id.clone(),
            decision: end.decision.clone(),
            status: end.status.unwrap_or(Status::Other),
            error: code.map(|code| (code, end.message.clone().unwrap_or_default())),
            at: end.at,
            took_us: end.duration_us.unwrap_or(0),
            run,
        }
    }
}

/// Questions, and when they were put and answered.
#[derive(Debug, Default)]
pub(super) struct CommandSpans {
    asked: HashMap<String, Asked>,
    /// How many commands there were; a span of one that has no other id goes by it.
    count: u64,
}

#[derive(Debug)]
struct Asked {
    at: Micros,
    answer: Option<(Micros, String)>,
}

impl CommandSpans {
    /// Hears of questions.
    pub(super) fn event(&mut self, event: &EventEnvelope) {
        let topic = event.topic.as_str();
        if !matches!(topic, names::ASKED | names::ANSWERED) {
            return;
        }
        let Some(at) = micros(event.ts.as_str()) else { return };
        let payload: serde_json::Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
        let Some(id) = payload["approval_id"].as_str() else { return };
        if topic == names::ANSWERED {
            if let Some(asked) = self.asked.get_mut(id) {
                asked.answer = Some((at, payload["status"].as_str().unwrap_or_default().to_owned()));
            }
            return;
        }
        if self.asked.len() >= MOST_ASKED
            && let Some(oldest) =
                self.asked.iter().min_by_key(|(_, asked)| asked.at).map(|(id, _)| id.clone())
        {
            self.asked.remove(&oldest);
        }
        self.asked.insert(id.to_owned(), Asked { at, answer: None });
    }

    /// The span of a command.
    pub(super) fn ended(&mut self, end: CommandEnd, runs: &RunSpans) -> Span {
        self.count += 1;
        let at = end.at.unix_millis().saturating_mul(1000);
        // The moment is whole milliseconds; the time it took is finer.
        let start = at.saturating_sub(i64::try_from(end.took_us).unwrap_or(0));
        let unique = format!("{}.{at}.{}", std::process::id(), self.count);
        let of_agent = end.actor.as_ref().filter(|(kind, _)| kind == "agent");
        let above = of_agent.and_then(|(_, id)| runs.in_session(end.session.as_deref().unwrap_or(id)));
        let trace = above.map(|(trace, _)| trace).unwrap_or_else(|| {
            Trace::of(end.correlation.as_deref().or(end.run.as_deref()).unwrap_or(&unique))
        });
        let id = end.run.as_deref().map_or_else(|| span_id(&["command", &unique]), start_span);
        let tool = end.method.strip_prefix("tool.");
        let kind = if tool.is_some() { SpanKind::Internal } else { SpanKind::Server };
        let name = tool.map_or_else(|| end.method.clone(), |tool| format!("decide {tool}"));
        let mut span = Span::new(trace, id, kind, name, start);
        if let Some((_, run)) = above {
            span = span.below(run);
        }
        span = match tool {
            Some(tool) => span.with(names::TOOL, tool.to_owned()),
            None => span.with(names::RPC_SYSTEM, names::JSON_RPC).with(names::RPC_METHOD, end.method.clone()),
        };
        if let Some((kind, id)) = end.actor {
            span = span.with(names::ACTOR_KIND, kind).with(names::ACTOR, id);
        }
        span = span
            .with_text(names::CONVERSATION, end.session.as_deref())
            .with_text(names::WORKSPACE, end.workspace.as_deref())
            .with_text(names::CORRELATION, end.correlation.as_deref())
            .with_text(names::RUN, end.run.as_deref())
            .until(at);
        if let Some(decision) = end.decision {
            span = span.with(names::DECISION, decision.outcome).with(names::RULES, decision.rules.join(","));
            if let Some(approval) = decision.approval_id {
                self.was_asked(&mut span, &approval);
                span = span.with(names::APPROVAL, approval);
            }
        }
        match (end.status, end.error) {
            (Status::Ok, _) => span,
            (_, Some((code, message))) => span.failed(&code, &message),
            (_, None) => span.failed("interrupted", "it did not come to an end"),
        }
    }

    /// It began when it was asked for, and a person took their time.
    fn was_asked(&mut self, span: &mut Span, approval: &str) {
        let Some(Asked { at, answer }) = self.asked.remove(approval) else { return };
        span.start = span.start.min(at);
        let which = || KeyValue::new(names::APPROVAL, approval.to_owned());
        span.happened(names::ASKED, at, vec![which()]);
        if let Some((at, status)) = answer {
            span.happened(names::ANSWERED, at, vec![which(), KeyValue::new(names::OUTCOME, status)]);
        }
    }
}
