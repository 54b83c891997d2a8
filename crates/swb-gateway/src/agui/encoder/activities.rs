//! What is beside the conversation: the output of terminals, which grows, and plans, which are replaced.

use serde_json::{Value, json};

use super::super::dialect::Dialect;
use super::super::wire::Event;
use super::{Encoder, MOST};

const TERMINAL: &str = "helios.terminal";
/// The name that AG-UI itself gives such an activity.
const PLAN: &str = "PLAN";

impl Encoder {
    /// A terminal of the session has put something out.
    pub(in crate::agui) fn terminal(&mut self, terminal_id: &str, chunk: &Value) {
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
    pub(in crate::agui) fn plan(&mut self, bus_run_id: &str, path: &[u64], content: &Value) {
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
}
