//! Rules sorted by what they can apply to, so that a question meets only those that may speak.
//!
//! The key is the kind of actor, the action and the kind of resource: all that a rule's scope can tell without looking
//! at attributes. Keys with the same rules share one slice. A slice also knows whether any of its rules looks at
//! `context.approved`, since only then a second question can have another answer, and which of them can say something
//! new in either question: those that cannot are not evaluated.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cedar_policy::{PolicyId, PolicySet, PolicySetError};

use super::actor::ActorKind;
use super::resource::ResourceKind;
use super::rule::Rule;
use super::vocabulary::{ActionIndex, Vocabulary};

/// In which round a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// As it is, and nobody has approved.
    Unapproved,
    /// Once more after that, as if somebody had.
    AsIfApproved,
    /// As it is, and somebody has approved.
    Approved,
}

impl Round {
    pub(super) fn is_approved(self) -> bool {
        self != Round::Unapproved
    }
}

/// Rules that may speak about one kind of question.
#[derive(Debug, Default)]
pub(super) struct Slice {
    all: PolicySet,
    /// Made when they are first needed: most slices never are.
    unapproved: OnceLock<PolicySet>,
    again: OnceLock<PolicySet>,
    pub(super) looks_at_approved: bool,
}

impl Slice {
    /// Those that can say something in this round.
    pub(super) fn policies(&self, round: Round, rules: &[Rule]) -> &PolicySet {
        match round {
            Round::Approved => &self.all,
            Round::Unapproved => self.unapproved.get_or_init(|| self.only(rules, Rule::may_speak_unapproved)),
            Round::AsIfApproved => self.again.get_or_init(|| self.only(rules, Rule::may_speak_again)),
        }
    }

    fn only(&self, rules: &[Rule], may_speak: fn(&Rule) -> bool) -> PolicySet {
        let kept = self.all.policies().filter_map(|policy| match rule_of(policy.id(), rules) {
            Some(rule) => may_speak(rule).then(|| rule.bare().new_id(policy.id().clone())),
            None => Some(policy.clone()),
        });
        // Part of a set is a set.
        PolicySet::from_policies(kept).unwrap_or_else(|_| self.all.clone())
    }
}

/// All rules of a layer, sorted.
#[derive(Debug, Default)]
pub(super) struct Slices {
    by_question: HashMap<(ActorKind, ActionIndex, ResourceKind), Arc<Slice>>,
}

impl Slices {
    /// Sorts rules. Each policy gets the number of its rule as its id.
    pub(super) fn new(rules: &[Rule]) -> Result<Self, Box<PolicySetError>> {
        let words = Vocabulary::get();
        let policies: Vec<_> =
            rules.iter().enumerate().map(|(at, rule)| rule.policy.new_id(policy_id(at))).collect();
        let mut shared: HashMap<Vec<usize>, Arc<Slice>> = HashMap::new();
        let mut by_question = HashMap::new();
        for (action, spec) in words.actions.iter().enumerate() {
            let of_action: Vec<usize> =
                (0..rules.len()).filter(|at| rules[*at].may_concern_action(action, words)).collect();
            for actor in ActorKind::ALL {
                for &resource in &spec.resources {
                    let members: Vec<usize> = of_action
                        .iter()
                        .copied()
                        .filter(|at| {
                            rules[*at].may_concern_actor(actor) && rules[*at].may_concern_resource(resource)
                        })
                        .collect();
                    if members.is_empty() {
                        continue;
                    }
                    let slice = match shared.get(&members) {
                        Some(slice) => Arc::clone(slice),
                        None => {
                            let all =
                                PolicySet::from_policies(members.iter().map(|at| policies[*at].clone()))?;
                            let looks_at_approved = members.iter().any(|at| rules[*at].looks_at_approved);
                            let slice = Arc::new(Slice { all, looks_at_approved, ..Slice::default() });
                            shared.insert(members, Arc::clone(&slice));
                            slice
                        }
                    };
                    by_question.insert((actor, action, resource), slice);
                }
            }
        }
        Ok(Self { by_question })
    }

    pub(super) fn get(
        &self,
        actor: ActorKind,
        action: ActionIndex,
        resource: ResourceKind,
    ) -> Option<&Slice> {
        self.by_question.get(&(actor, action, resource)).map(AsRef::as_ref)
    }
}

fn policy_id(at: usize) -> PolicyId {
    PolicyId::new(at.to_string())
}

/// The rule that a policy was made of.
pub(super) fn rule_of<'a>(id: &PolicyId, rules: &'a [Rule]) -> Option<&'a Rule> {
    let text: &str = id.as_ref();
    rules.get(text.parse::<usize>().ok()?)
}
