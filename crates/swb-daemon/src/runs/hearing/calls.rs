//! Calls of tools as they are heard: their arguments, their output, their results.

use swb_proto::agent::AssistantEvent;
use swb_proto::run::{Progress, ToolProgress, ToolStatus};
use swb_rules::redact::{RedactedArguments, RedactedStream, redact, redact_json};

use super::{Ear, Heard, Voice};

/// A call of a tool that is not over.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    /// The keyed hash of its arguments, once they are whole.
    pub(super) args_hash: Option<String>,
    arguments: Option<RedactedArguments>,
    pub(super) output: Option<RedactedStream>,
}

impl Ear {
    pub(super) fn piece(
        &mut self,
        event: AssistantEvent,
        hash: impl Fn(&[u8]) -> String,
        out: &mut Vec<Heard>,
    ) {
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
}

impl Call {
    pub(super) fn say(&self, status: ToolStatus, delta: String, out: &mut Vec<Heard>) {
        if !delta.is_empty() {
            out.push(tool(&self.name, &self.id, status, |tool| tool.delta = Some(delta)));
        }
    }
}

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
