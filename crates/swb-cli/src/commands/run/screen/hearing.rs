//! What an agent says, on its way to the screen: each frame changes what is to be shown.

use std::time::Instant;

use swb_proto::agent::{AddedEvent, AssistantEvent, Event, Frame, McpServer, PlanUpdate, TaskUpdate};

use super::{Kind, Screen};
use crate::io::{DIM, WARN};
use crate::plain;

impl Screen {
    pub(in crate::commands::run) fn frame(&mut self, frame: &Frame) {
        match frame {
            Frame::Contract(event) => self.event(event),
            Frame::Added(event) => self.added(event),
            Frame::Unknown => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::MessageUpdate { event } => self.piece(event),
            Event::Ready { model, .. } => self.status.model = plain::line(model, 40),
            Event::SubagentStart { subagent_id, agent_name, task_preview } => {
                self.end_words();
                self.tools.subagent(*subagent_id, agent_name, task_preview);
            }
            Event::SubagentUpdate { subagent_id, status, .. } => {
                self.tools.subagent_status(*subagent_id, status);
            }
            Event::SubagentDone { subagent_id, result_preview, duration_secs, .. } => {
                let lines = self.tools.subagent_done(*subagent_id, result_preview, *duration_secs);
                self.settle(Kind::Tool, lines);
            }
            Event::AgentEnd { usage } => self.status.used(usage),
            Event::Error { id: None, message } => self.note(WARN, message),
            Event::Error { .. } | Event::Response { .. } => {}
        }
    }

    fn added(&mut self, event: &AddedEvent) {
        match event {
            AddedEvent::ToolOutput { tool_id, delta } => self.tools.output(tool_id, delta),
            AddedEvent::Ask { ask_id, subject, risk, options, free_text, reason, .. } => {
                self.end_words();
                self.questions.ask(ask_id, subject, risk, options, *free_text, reason);
            }
            AddedEvent::AskClosed { ask_id, outcome } => {
                if self.questions.close(ask_id) {
                    self.note(DIM, &format!("the question is closed: {outcome}"));
                }
            }
            AddedEvent::ModelRetry { reason, wait_ms, .. } => {
                self.end_words();
                let seconds = wait_ms.div_ceil(1000);
                self.note(WARN, &format!("{reason}; trying again in {seconds} s"));
            }
            AddedEvent::CompactionStart { .. } => {
                self.end_words();
                self.status.doing = Some("making room in the conversation");
            }
            AddedEvent::CompactionEnd { context_tokens, cancelled, .. } => {
                self.status.doing = None;
                if let Some(tokens) = context_tokens.filter(|_| !cancelled) {
                    self.note(DIM, &format!("the conversation was made shorter, to about {tokens} tokens"));
                }
            }
            // Those of our own subagents are shown by the contract's events; this is about theirs.
            AddedEvent::TaskUpdate(TaskUpdate { path, agents, status: Some(status), .. })
                if path.len() > 1 =>
            {
                self.tools.subagent_status(
                    path[0],
                    &format!("{}: {status}", agents.get(1..).unwrap_or_default().join(" › ")),
                );
            }
            AddedEvent::Plan(PlanUpdate { tool_id, path, plan, .. }) if path.is_empty() => {
                self.end_words();
                let changes = self.checklist.changes(plan, self.size.columns);
                let lines = self.tools.plan(tool_id, plan, changes, self.size.columns);
                self.settle(Kind::Tool, lines);
            }
            // A subagent says in its status what it is at.
            AddedEvent::Plan(_) => {}
            AddedEvent::McpServer(McpServer { server, message: Some(message), .. }) => {
                self.end_words();
                self.note(WARN, &format!("MCP server {server}: {message}"));
            }
            // What is called is shown as a tool, and a server that is well need not be mentioned.
            AddedEvent::TaskUpdate(_) | AddedEvent::McpServer(_) | AddedEvent::McpCall(_) => {}
            // Between an agent and those below it; a person lends nothing.
            AddedEvent::LentCall(_) | AddedEvent::LentCancel { .. } => {}
        }
    }

    fn piece(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::TextDelta { delta } => {
                self.end_thinking();
                self.status.said(delta.len());
                let mut text = String::new();
                self.text_plain.push(delta, &mut text);
                self.text.push(&text);
            }
            AssistantEvent::ThinkingDelta { delta } => {
                self.end_text();
                self.status.said(delta.len());
                let mut text = String::new();
                self.thinking_plain.push(delta, &mut text);
                self.thinking.push(&text);
            }
            AssistantEvent::ToolcallStart { tool_id, tool_name } => {
                self.end_words();
                self.tools.start(tool_id, tool_name, Instant::now());
            }
            AssistantEvent::ToolcallInputDelta { delta, .. } => self.status.said(delta.len()),
            AssistantEvent::ToolcallInput { tool_id, input } => self.tools.input(tool_id, input),
            AssistantEvent::ToolcallResult { tool_id, result } => {
                let lines = self.tools.result(tool_id, result, self.size.columns);
                self.settle(Kind::Tool, lines);
            }
        }
    }
}
