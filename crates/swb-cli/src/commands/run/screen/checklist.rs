//! The plan of a run as a list of what is done, what is being done and what is still to be done.
//!
//! A plan is told whole each time; what is shown is what has changed, so that fifty steps are fifty lines once.

use anstyle::{AnsiColor, Style};
use swb_proto::agent::plan::LONGEST_TEXT;
use swb_proto::agent::{Plan, PlanStep, StepStatus};

use crate::io::{BOLD, DIM, GOOD};
use crate::plain;
use crate::terminal::line::Line;

const BUSY: Style = AnsiColor::Yellow.on_default();

/// The plan as it was last shown.
#[derive(Debug, Default)]
pub(super) struct Checklist {
    shown: Plan,
}

impl Checklist {
    /// The lines of a plan that were not shown like this before.
    pub(super) fn changes(&mut self, plan: &Plan, columns: usize) -> Vec<Line> {
        let is_new = |step: &&PlanStep| !self.shown.steps.contains(step);
        let mut lines: Vec<_> =
            plan.steps.iter().filter(is_new).map(|step| line(step).cut(columns)).collect();
        if let Some(note) = plan.note.as_deref().filter(|note| self.shown.note.as_deref() != Some(note)) {
            lines.push(Line::of(format!("  {}", plain::line(note, LONGEST_TEXT)), DIM).cut(columns));
        }
        self.shown = plan.clone();
        lines
    }
}

/// How far a plan has come, in a few words.
pub(super) fn in_short(plan: &Plan) -> String {
    match (plan.completed(), plan.steps.len()) {
        (_, 0) => "none any more".to_owned(),
        (done, steps) => format!("{done} of {steps} done"),
    }
}

fn line(step: &PlanStep) -> Line {
    let (sign, of_sign, of_text) = match step.status {
        StepStatus::Completed => ("✔", GOOD, DIM),
        StepStatus::InProgress => ("▸", BUSY, BOLD),
        StepStatus::Pending => ("○", DIM, Style::new()),
    };
    let mut line = Line::of(format!("  {sign} "), of_sign);
    line.push(plain::line(&step.text, LONGEST_TEXT), of_text);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(steps: &[(&str, StepStatus)], note: Option<&str>) -> Plan {
        let step =
            |(text, status): &(&str, StepStatus)| PlanStep { text: (*text).to_owned(), status: *status };
        Plan { steps: steps.iter().map(step).collect(), note: note.map(str::to_owned) }
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.spans.into_iter().map(|span| span.text).collect()).collect()
    }

    #[test]
    fn all_of_a_plan_is_shown_once_and_then_what_has_changed() {
        use StepStatus::{Completed, InProgress, Pending};
        let mut list = Checklist::default();
        let first = plan(&[("look", InProgress), ("fix\u{1b}[2J\nit", Pending), ("test", Pending)], None);
        assert_eq!(texts(list.changes(&first, 80)), ["  ▸ look", "  ○ fix it", "  ○ test"]);
        assert!(list.changes(&first, 80).is_empty(), "the same again is nothing new");
        let second =
            plan(&[("look", Completed), ("fix\u{1b}[2J\nit", InProgress), ("test", Pending)], Some("ok"));
        assert_eq!(texts(list.changes(&second, 80)), ["  ✔ look", "  ▸ fix it", "  ok"]);
        let other = plan(&[("look", Completed), ("ask somebody", InProgress)], Some("ok"));
        assert_eq!(texts(list.changes(&other, 12)), ["  ▸ ask som…"]);
        assert_eq!([in_short(&second), in_short(&Plan::default())], ["1 of 3 done", "none any more"]);
    }
}
