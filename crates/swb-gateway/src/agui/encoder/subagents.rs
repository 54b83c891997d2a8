//! Agents below the run: events of their own in 1.0, steps before. The id of one is used once.

use super::super::dialect::Dialect;
use super::super::wire::{Event, SubagentOutcome};
use super::{Close, Encoder, MOST, pieces, shortened};

#[derive(Debug)]
pub(super) struct Subagent {
    id: String,
    step: String,
}

impl Encoder {
    /// A subagent begins. Its path below the run tells it from others of its name.
    pub(in crate::agui) fn subagent(&mut self, path: &[u64], name: &str, description: Option<&str>) {
        self.end_speech();
        let id = self.subagent_id(path);
        if !self.is_open() || path.is_empty() || self.known.len() >= MOST || self.known.contains(&id) {
            return;
        }
        let step = format!("{name} {}", dotted(path));
        if self.dialect == Dialect::Older {
            self.frames.push(&Event::StepStarted { step_name: &step });
        } else {
            let parent = Some(self.subagent_id(&path[..path.len() - 1])).filter(|id| self.known.contains(id));
            self.frames.push(&Event::SubagentStarted {
                subagent_run_id: &id,
                name,
                description: description.map(|text| pieces(text).next().unwrap_or_default()),
                parent_subagent_run_id: parent.as_deref(),
            });
        }
        self.known.insert(id.clone());
        self.subagents.push(Subagent { id, step });
    }

    /// A subagent is over: with what, or why not.
    pub(in crate::agui) fn subagent_over(
        &mut self,
        path: &[u64],
        name: &str,
        end: Result<Option<&str>, &str>,
    ) {
        self.subagent(path, name, None);
        let id = self.subagent_id(path);
        let Some(at) = self.subagents.iter().position(|subagent| subagent.id == id) else { return };
        let Subagent { id, step } = &self.subagents.remove(at);
        match (self.dialect, end) {
            (Dialect::Older, _) => self.frames.push(&Event::StepFinished { step_name: step }),
            (Dialect::One, Ok(result)) => {
                let result = result.map(shortened);
                let (result, outcome) = (result.as_deref(), SubagentOutcome::Success);
                self.frames.push(&Event::SubagentFinished { subagent_run_id: id, result, outcome });
            }
            (Dialect::One, Err(message)) => {
                let message = &shortened(message);
                self.frames.push(&Event::SubagentError { subagent_run_id: id, message });
            }
        }
    }

    pub(super) fn subagent_id(&self, path: &[u64]) -> String {
        format!("{}:{}", self.run_id, dotted(path))
    }

    /// Ends those that are at work, the innermost first.
    pub(super) fn end_subagents(&mut self, how: Close<'_>) {
        for Subagent { id, step } in std::mem::take(&mut self.subagents).iter().rev() {
            if self.dialect == Dialect::Older {
                self.frames.push(&Event::StepFinished { step_name: step });
                continue;
            }
            let outcome = match how {
                Close::Done => SubagentOutcome::Success,
                Close::Suspended(interrupt_ids) => SubagentOutcome::Suspended { interrupt_ids },
                Close::Failed(message) => {
                    let message = &shortened(message);
                    self.frames.push(&Event::SubagentError { subagent_run_id: id, message });
                    continue;
                }
            };
            self.frames.push(&Event::SubagentFinished { subagent_run_id: id, result: None, outcome });
        }
    }
}

fn dotted(path: &[u64]) -> String {
    path.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}
