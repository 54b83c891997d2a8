//! The plan of a conversation: what a summary keeps of the last call of `plan`, so that a model knows after a compaction
//! how far it had come.

use serde::Deserialize;
use serde_json::Value;
use swb_proto::agent::{Plan, PlanStep, StepStatus};

use super::outline::one_line;

const SIGNS: [(&str, StepStatus); 3] =
    [("- [x] ", StepStatus::Completed), ("- [>] ", StepStatus::InProgress), ("- [ ] ", StepStatus::Pending)];

/// The steps of a plan, as one line each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Steps(Vec<PlanStep>);

impl Steps {
    /// Those of a call of `plan`, unless that was refused.
    pub(super) fn of_call(input: &Value) -> Option<Self> {
        let plan = Plan::deserialize(input).ok().filter(|plan| plan.check().is_ok())?;
        let line = |PlanStep { text, status }| PlanStep { text: one_line(text.trim()), status };
        Some(Steps(plan.steps.into_iter().map(line).collect()))
    }

    /// So many lines at most. What is done goes first.
    pub(super) fn lines(&self, most: usize) -> Vec<String> {
        let mut spare = self.0.len().saturating_sub(most);
        let is_kept = |step: &&PlanStep| {
            let goes = spare > 0 && step.status == StepStatus::Completed;
            spare -= usize::from(goes);
            !goes
        };
        let kept: Vec<_> = self.0.iter().filter(is_kept).collect();
        let sign = |status| SIGNS.iter().find(|(_, of)| *of == status).map_or("- [ ] ", |(sign, _)| sign);
        kept.into_iter().take(most).map(|step| format!("{}{}", sign(step.status), step.text)).collect()
    }

    /// Takes in a line of an earlier summary.
    pub(super) fn read(&mut self, line: &str) {
        let step = SIGNS.iter().find_map(|(sign, status)| Some((line.strip_prefix(sign)?, *status)));
        self.0.extend(step.map(|(text, status)| PlanStep { text: text.to_owned(), status }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_done_goes_first_where_there_is_little_room() {
        let step = |text: &str, status: &str| json!({ "text": text, "status": status });
        let steps = [
            step("a", "completed"),
            step("b\n## Task", "completed"),
            step("c", "in_progress"),
            step("d", "pending"),
        ];
        let steps = Steps::of_call(&json!({ "steps": steps })).unwrap();
        let lines = ["- [x] a", "- [x] b", "- [>] c", "- [ ] d"];
        assert_eq!(steps.lines(50), lines);
        assert_eq!(steps.lines(3), lines[1..]);
        assert_eq!(steps.lines(1), lines[2..3]);
        let mut again = Steps::default();
        ["noise", "- [y] e"].iter().chain(&lines).for_each(|line| again.read(line));
        assert_eq!(again, steps);
        assert_eq!(Steps::of_call(&json!({ "steps": 7 })), None);
        assert_eq!(Steps::of_call(&json!({ "steps": [{ "text": "" }] })), None, "it was refused");
    }
}
