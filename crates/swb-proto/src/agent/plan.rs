//! A plan: what an agent means to do, and how far it has come.
//!
//! An agent gives its plan whole each time, so the latest one is all there is to know. A plan is small ([`Plan::check`]),
//! whoever says it: it is shown as it is, and kept with everything else that a run tells.

use serde::{Deserialize, Serialize};

/// How many steps there may be.
pub const MOST_STEPS: usize = 50;
/// How many characters a step, or the note, may have.
pub const LONGEST_TEXT: usize = 300;

/// How far a step has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It is still to be done.
    #[default]
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What, for people.
    pub text: String,
    /// How far it has come; not begun if nothing is said.
    #[serde(default)]
    pub status: StepStatus,
}

/// What an agent means to do, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps. None at all: there is no plan any more.
    pub steps: Vec<PlanStep>,
    /// What there is to say about it, such as why it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Why something is no plan. Steps are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongPlan {
    /// There are too many steps.
    #[error("a plan has at most {MOST_STEPS} steps; this one has {0}: say more with each")]
    Steps(usize),
    /// A step says nothing.
    #[error("step {0} says nothing")]
    Empty(usize),
    /// A step says too much.
    #[error("step {step} has {characters} characters; the most is {LONGEST_TEXT}")]
    Long {
        /// Which one.
        step: usize,
        /// How many it has.
        characters: usize,
    },
    /// The note says too much.
    #[error("the note has {0} characters; the most is {LONGEST_TEXT}")]
    Note(usize),
    /// More than one step is being done.
    #[error("steps {0} and {1} are both in progress; only one may be")]
    Busy(usize, usize),
}

impl Plan {
    /// Whether it is one that may be told.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), WrongPlan> {
        if self.steps.len() > MOST_STEPS {
            return Err(WrongPlan::Steps(self.steps.len()));
        }
        let mut busy = None;
        for (step, PlanStep { text, status }) in (1..).zip(&self.steps) {
            if text.trim().is_empty() {
                return Err(WrongPlan::Empty(step));
            }
            let characters = text.chars().count();
            if characters > LONGEST_TEXT {
                return Err(WrongPlan::Long { step, characters });
            }
            if *status == StepStatus::InProgress
                && let Some(other) = busy.replace(step)
            {
                return Err(WrongPlan::Busy(other, step));
            }
        }
        let note = self.note.as_deref().map_or(0, |note| note.chars().count());
        if note > LONGEST_TEXT { Err(WrongPlan::Note(note)) } else { Ok(()) }
    }

    /// How many steps are done.
    pub fn completed(&self) -> usize {
        self.steps.iter().filter(|step| step.status == StepStatus::Completed).count()
    }

    /// The step that is being done.
    pub fn current(&self) -> Option<&PlanStep> {
        self.steps.iter().find(|step| step.status == StepStatus::InProgress)
    }

    /// How much of it is done, in whole percent; nothing if there is nothing to do.
    pub fn percent(&self) -> Option<u8> {
        let percent = (self.completed() * 100).checked_div(self.steps.len())?;
        u8::try_from(percent).ok()
    }
}

/// An agent has a plan, or has come further with it. It takes the place of the last plan of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUpdate {
    /// The `tool_id` of the call that said so.
    pub tool_id: String,
    /// The `subagent_id`s that lead to the agent whose plan it is; absent if that is the agent itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u64>,
    /// The names that belong to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The plan, whole.
    #[serde(flatten)]
    pub plan: Plan,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(steps: &[(&str, StepStatus)]) -> Plan {
        let step =
            |(text, status): &(&str, StepStatus)| PlanStep { text: (*text).to_owned(), status: *status };
        Plan { steps: steps.iter().map(step).collect(), note: None }
    }

    #[test]
    fn a_plan_is_bounded_and_one_step_is_done_at_a_time() {
        use StepStatus::{Completed, InProgress, Pending};
        assert_eq!(Plan::default().check(), Ok(()), "none is a plan, too");
        assert_eq!(plan(&[("a", Completed), ("b", InProgress), ("c", Pending)]).check(), Ok(()));
        assert_eq!(plan(&[("a", InProgress), ("b", InProgress)]).check(), Err(WrongPlan::Busy(1, 2)));
        assert_eq!(plan(&[("a", Pending), (" \n", Pending)]).check(), Err(WrongPlan::Empty(2)));
        assert_eq!(plan(&[("a", Pending); MOST_STEPS]).check(), Ok(()));
        assert_eq!(plan(&[("a", Pending); MOST_STEPS + 1]).check(), Err(WrongPlan::Steps(MOST_STEPS + 1)));
        let (longest, longer) = ("é".repeat(LONGEST_TEXT), "é".repeat(LONGEST_TEXT + 1));
        let characters = LONGEST_TEXT + 1;
        assert_eq!(plan(&[(&longest, Pending)]).check(), Ok(()), "characters, not bytes");
        assert_eq!(plan(&[(&longer, Pending)]).check(), Err(WrongPlan::Long { step: 1, characters }));
        assert_eq!(Plan { note: Some(longest), ..Plan::default() }.check(), Ok(()));
        assert_eq!(Plan { note: Some(longer), ..Plan::default() }.check(), Err(WrongPlan::Note(characters)));
    }

    #[test]
    fn percent_is_rounded_down_and_absent_where_there_is_nothing_to_do() {
        use StepStatus::{Completed, InProgress, Pending};
        assert_eq!(Plan::default().percent(), None);
        assert_eq!(plan(&[("a", InProgress)]).percent(), Some(0));
        assert_eq!(plan(&[("a", Completed), ("b", Completed), ("c", Pending)]).percent(), Some(66));
        assert_eq!(plan(&[("a", Completed)]).percent(), Some(100));
    }
}
