//! What the rules have said to a question, and the question as the record shows it.
//!
//! How something is shown is the record's business ([`Shown`]); here it is made once for an answer that is remembered and
//! recorded many times.

use std::ops::Deref;

use swb_rules::policy::{Decision, Input};

use crate::record::Shown;

/// A decision, ready to be recorded.
#[derive(Debug)]
pub struct Ruling {
    decision: Decision,
    question: Shown,
}

impl Ruling {
    pub(super) fn new(decision: Decision, input: &Input) -> Self {
        Ruling { decision, question: Shown::of(input) }
    }

    /// What it was made on.
    #[must_use]
    pub fn question(&self) -> &Shown {
        &self.question
    }
}

impl Deref for Ruling {
    type Target = Decision;

    fn deref(&self) -> &Decision {
        &self.decision
    }
}
