//! Decisions that were made before: the same question to the same rules has the same answer.
//!
//! That is so because deciding is pure: no clock, no disk, nothing but the rules and the question
//! (`swb_rules::policy::Input`). Most questions of a day are the same few. What each call has of its own, the hash of its
//! arguments or the facts about a command line, makes a question that will not come again; it is not kept.
//!
//! With each answer the question is kept as the record shows it: that is the same every time, too.
//!
//! Invariants: an answer is given only for the very rules that gave it, compared by identity, and those are kept alive so
//! that no others can take their place; memory is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swb_rules::policy::{Approved, Input, Restrictions, Rules};

use super::decide::InForce;
use super::ruling::Ruling;

/// Questions kept. Whoever asks more different ones than this in a row gains nothing from a memory.
const MOST: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    rules: Option<Arc<Rules>>,
    known: HashMap<Input, Known>,
}

/// The answers to one question, if nobody agreed and if somebody did.
#[derive(Debug, Default)]
struct Known {
    restrictions: Vec<Arc<Restrictions>>,
    answers: [Option<Arc<Ruling>>; 2],
}

impl Memory {
    /// What these rules say, as they said before or by asking them.
    pub(super) fn decide(&self, input: &Input, in_force: &InForce, approved: Approved) -> Arc<Ruling> {
        let decided = || Arc::new(Ruling::new(in_force.decide(input, approved), input));
        if input.arguments.is_some() || input.shell.is_some() {
            return decided();
        }
        if let Some(ruling) = self.state().recall(input, in_force, approved) {
            return ruling;
        }
        let ruling = decided();
        self.state().keep(input, in_force, approved, &ruling);
        ruling
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn recall(&self, input: &Input, in_force: &InForce, approved: Approved) -> Option<Arc<Ruling>> {
        let rules = self.rules.as_ref().filter(|rules| Arc::ptr_eq(rules, &in_force.rules));
        let known = rules.and_then(|_| self.known.get(input)).filter(|known| known.is_of(in_force))?;
        known.answers[usize::from(approved == Approved::Yes)].clone()
    }

    fn keep(&mut self, input: &Input, in_force: &InForce, approved: Approved, ruling: &Arc<Ruling>) {
        let same = self.rules.as_ref().is_some_and(|rules| Arc::ptr_eq(rules, &in_force.rules));
        if !same || self.known.len() >= MOST {
            self.known.clear();
            self.rules = Some(Arc::clone(&in_force.rules));
        }
        let known = self.known.entry(input.clone()).or_default();
        if !known.is_of(in_force) {
            *known = Known { restrictions: in_force.restrictions.clone(), ..Known::default() };
        }
        known.answers[usize::from(approved == Approved::Yes)] = Some(Arc::clone(ruling));
    }
}

impl Known {
    fn is_of(&self, in_force: &InForce) -> bool {
        let (ours, theirs) = (&self.restrictions, &in_force.restrictions);
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

#[cfg(test)]
mod tests {
    use swb_rules::policy::{Actor, Answer, Resource, Source};

    use super::*;
    use crate::record::Shown;

    fn input(action: &str) -> Input {
        Input::new(Actor::User { id: "ada".to_owned() }, action, Resource::House)
    }

    fn in_force(text: &str, session: Option<&str>) -> InForce {
        let of = |text| [Source { file: "test.cedar", text }];
        let rules = Arc::new(Rules::load(&of(text)).unwrap().rules);
        let restricting = |text| Arc::new(Restrictions::load_session(&of(text)).unwrap().rules);
        InForce { rules, restrictions: session.map(restricting).into_iter().collect() }
    }

    const FORBID: &str = "@id(\"x\") forbid (principal, action == Action::\"workspace.list\", resource);";

    #[test]
    fn an_answer_is_of_the_rules_that_gave_it_and_of_no_others() {
        let memory = Memory::default();
        let (open, shut) = (in_force("", None), in_force(FORBID, None));
        let restricted =
            InForce { rules: Arc::clone(&open.rules), restrictions: in_force("", Some(FORBID)).restrictions };
        let input = input("workspace.list");
        for _ in 0..2 {
            for (rules, answer) in
                [(&open, Answer::Allow), (&shut, Answer::Deny), (&restricted, Answer::Deny)]
            {
                for _ in 0..2 {
                    assert_eq!(memory.decide(&input, rules, Approved::No).answer, answer);
                }
                let other = Input { contained: true, ..input.clone() };
                for input in [&input, &other, &input] {
                    let ruling = memory.decide(input, rules, Approved::No);
                    assert_eq!(ruling.question(), &Shown::of(input), "each answer has its own question");
                }
            }
        }
    }

    #[test]
    fn an_approval_is_not_remembered_for_a_question_without_one() {
        let memory = Memory::default();
        let ask = "@id(\"x\") @ask forbid (principal, action == Action::\"workspace.list\", resource) \
                   unless { context.approved };";
        let rules = in_force(ask, None);
        let input = input("workspace.list");
        for _ in 0..2 {
            assert_eq!(memory.decide(&input, &rules, Approved::Yes).answer, Answer::Allow);
            assert_eq!(memory.decide(&input, &rules, Approved::No).answer, Answer::NeedsApproval);
        }
    }

    #[test]
    fn a_question_of_its_own_is_not_kept_and_the_rest_is_bounded() {
        let memory = Memory::default();
        let rules = in_force("", None);
        let one = Input { arguments: Some("hash".to_owned()), ..input("workspace.list") };
        memory.decide(&one, &rules, Approved::No);
        assert!(memory.state().known.is_empty());
        for number in 0..2 * MOST {
            memory.decide(&input(&format!("a.b{number}")), &rules, Approved::No);
        }
        assert!((1..=MOST).contains(&memory.state().known.len()));
    }
}
