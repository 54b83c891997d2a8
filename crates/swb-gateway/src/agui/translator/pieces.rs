//! What a run does, piece by piece: words, calls, subagents, plans, and what its terminals put out.

use serde_json::{Value, json};
use swb_proto::EventEnvelope;
use swb_proto::run::{PlanProgress, SubagentState, ToolStatus};

use super::super::progress::{Progress, Subagent, Tool};
use super::super::ui;
use super::Translator;

impl Translator {
    /// `payload` is what `progress` was read from.
    pub(super) fn progress(&mut self, progress: &Progress<'_>, payload: &str) {
        // Pieces are numbered without a hole, so whoever misses one can tell.
        if let Some(last) = self.step.replace(progress.step)
            && progress.step > last.saturating_add(1)
        {
            self.encoder.end_speech();
            let missing = (last + 1, progress.step - 1);
            self.encoder.custom_with(ui::SYSTEM_NOTICE, |out| ui::write_lost(out, &progress.run_id, missing));
        }
        let encoder = &mut self.encoder;
        // Unique within the thread, and the same whenever the event is told again.
        let id = || format!("{}.{}", &*progress.run_id, progress.step);
        match (&*progress.kind, &progress.delta) {
            ("text", Some(delta)) => encoder.say(id, delta),
            ("thinking", Some(delta)) => encoder.think(id, delta),
            ("input", _) => encoder.hear(&id(), progress.text.as_deref().unwrap_or_default()),
            _ => encoder.end_speech(),
        }
        if let Some(tool) = &progress.tool {
            self.tool(tool, &id());
        }
        if let Some(subagent) = &progress.subagent {
            self.subagent(subagent);
        }
        if &*progress.kind == "plan" {
            self.plan(payload);
        }
        if let Some(usage) = &progress.usage {
            self.usage = usage.clone();
        }
    }

    fn tool(&mut self, tool: &Tool<'_>, message_id: &str) {
        let Tool { name, call_id, status, delta, args, result } = tool;
        match status {
            ToolStatus::Started => self.encoder.call(call_id, name),
            ToolStatus::Arguments => {
                self.encoder.arguments(call_id, delta.as_deref().unwrap_or_default());
            }
            ToolStatus::Called => self.encoder.called(call_id, name, args.map(|args| args.get())),
            // Nothing in AG-UI: front ends that show it have it under its name.
            ToolStatus::Output => {}
            ToolStatus::Done => {
                self.encoder.result(call_id, message_id, result.as_deref().unwrap_or_default());
            }
        }
    }

    fn subagent(&mut self, subagent: &Subagent<'_>) {
        let Subagent { path, name, state, preview } = subagent;
        let preview = preview.as_deref();
        match state {
            SubagentState::Started | SubagentState::Working => self.encoder.subagent(path, name, preview),
            SubagentState::Done => self.encoder.subagent_over(path, name, Ok(preview)),
            SubagentState::Failed => {
                self.encoder.subagent_over(path, name, Err(preview.unwrap_or("it failed")));
            }
            SubagentState::Cancelled => {
                self.encoder.subagent_over(path, name, Err(preview.unwrap_or("it was cancelled")));
            }
        }
    }

    fn plan(&mut self, payload: &str) {
        if payload.len() <= ui::LARGEST_PAYLOAD
            && let Ok(PlanProgress { path, name, plan, percent, .. }) = serde_json::from_str(payload)
        {
            let mut content = json!({ "steps": plan.steps });
            let more = [("note", plan.note.into()), ("name", name.into()), ("percent", percent.into())];
            for (key, value) in more.into_iter().filter(|(_, value): &(_, Value)| !value.is_null()) {
                content[key] = value;
            }
            self.encoder.plan(&self.names.bus_run_id, &path, &content);
        }
    }

    pub(super) fn terminal(&mut self, event: &EventEnvelope) {
        if let Some(id) = &event.terminal_id
            && event.payload.get().len() <= ui::LARGEST_PAYLOAD
            && let Ok(chunk) = serde_json::from_str(event.payload.get())
        {
            self.encoder.terminal(id.as_str(), &chunk);
        }
    }
}
