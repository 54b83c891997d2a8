//! Rules sorted by what they can apply to, so that a question meets only those that may speak.
//!
//! The key is the kind of actor, the action and the kind of resource: all that a rule's scope can tell without looking
//! at attributes. Keys with the same rules share one set. A set also knows whether any of its rules looks at
//! `context.approved`, since only then a second question can have another answer.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::{PolicyId, PolicySet, PolicySetError};

use super::actor::ActorKind;
use super::resource::ResourceKind;
use super::rule::Rule;
use super::vocabulary::{ActionIndex, Vocabulary};

/// Rules that may speak about one kind of question.
#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) policies: PolicySet,
    pub(super) looks_at_approved: bool,
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
                            let slice = Arc::new(Slice {
                                policies: PolicySet::from_policies(
                                    members.iter().map(|at| policies[*at].clone()),
                                )?,
                                looks_at_approved: members.iter().any(|at| rules[*at].looks_at_approved),
                            });
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
