//! The recorded past under other rules: which calls would have been decided differently?

use serde::{Deserialize, Serialize};

use super::decide::{Approved, Restrictions, Rules};
use super::decision::{Answer, Spoke};
use super::input::Input;

/// Most differences that are spelled out; all are counted.
const MAX_DIFFERENCES: usize = 1_000;

/// A decision as it is kept: all it was made on, and what came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its id.
    pub decision_id: String,
    /// What it was made on.
    pub input: Input,
    /// Whether somebody had agreed before it was made.
    #[serde(default)]
    pub approved: bool,
    /// What came out.
    pub spoke: Spoke,
}

/// One call that would be decided differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The decision as it was made.
    pub decision_id: String,
    /// What was done.
    pub action: String,
    /// By whom.
    pub actor: String,
    /// What came out then.
    pub before: Spoke,
    /// What would come out now.
    pub after: Spoke,
}

/// What a dry run has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// Decisions looked at.
    pub decided: u64,
    /// Of these, milder now.
    pub milder: u64,
    /// Of these, stricter now.
    pub stricter: u64,
    /// The first of those that differ.
    pub differences: Vec<Difference>,
}

/// Decides the past again with `rules`. `restrictions` says which rules of projects and sessions held for an input.
pub fn dry_run<'r>(
    past: impl IntoIterator<Item = Recorded>,
    rules: &Rules,
    mut restrictions: impl FnMut(&Input) -> Vec<&'r Restrictions>,
) -> DryRun {
    let mut found = DryRun::default();
    for record in past {
        let approved = if record.approved { Approved::Yes } else { Approved::No };
        let after = rules.decide(&record.input, &restrictions(&record.input), approved).spoke();
        found.decided += 1;
        let before: Answer = record.spoke.answer;
        match after.answer.cmp(&before) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Less => found.milder += 1,
            std::cmp::Ordering::Greater => found.stricter += 1,
        }
        if found.differences.len() < MAX_DIFFERENCES {
            found.differences.push(Difference {
                decision_id: record.decision_id,
                actor: record.input.actor.id().to_owned(),
                action: record.input.action,
                before: record.spoke,
                after,
            });
        }
    }
    found
}
