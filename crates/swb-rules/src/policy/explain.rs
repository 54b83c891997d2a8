//! Why, and what would change the answer.
//!
//! Mechanism: the question is asked again with one thing changed at a time (an approval, another actor, a concern less,
//! containment, the workspace, the risk), and every change that leads to a milder answer is told. If no single concern
//! makes the difference, the smallest group of them that does is looked for. Tried, not derived: so it is true for any rule.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::actor::{Actor, ActorKind};
use super::decide::{Approved, Restrictions, Rules};
use super::decision::{Answer, Decision};
use super::input::Input;
use super::resource::Resource;
use crate::shell::{Concern, Risk};

/// A decision and what would change it.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Changes that lead to a milder answer, the mildest first.
    pub remedies: Vec<Remedy>,
}

/// A change and the answer it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// What would be different.
    pub change: Change,
    /// The answer then.
    pub answer: Answer,
}

/// Something that could be different about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Somebody agrees.
    Approval,
    /// Another kind of actor does it.
    Actor(ActorKind),
    /// The agent does it for itself, with no agents above it.
    NoAncestors,
    /// Containment holds.
    Containment,
    /// It happens in the actor's own workspace.
    OwnWorkspace,
    /// The risk is no higher than this.
    Risk(Risk),
    /// Nothing of these kinds speaks against it.
    Without(BTreeSet<Concern>),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval => f.write_str("if somebody agrees"),
            Self::Actor(ActorKind::User) => f.write_str("if a person does it"),
            Self::Actor(ActorKind::Agent) => f.write_str("if an agent does it"),
            Self::Actor(ActorKind::Service) => f.write_str("if a service does it"),
            Self::NoAncestors => f.write_str("if no agent stood above this one"),
            Self::Containment => f.write_str("if containment held"),
            Self::OwnWorkspace => f.write_str("if it were in the agent's own workspace"),
            Self::Risk(risk) => write!(f, "if its risk were {risk}"),
            Self::Without(concerns) => {
                let names: Vec<_> = concerns.iter().map(|concern| concern.name()).collect();
                write!(f, "if nothing of this kind spoke against it: {}", names.join(", "))
            }
        }
    }
}

impl Rules {
    /// Decides, and says what would change the answer.
    #[must_use]
    pub fn explain(&self, input: &Input, restrictions: &[&Restrictions], approved: Approved) -> Explanation {
        let decision = self.decide(input, restrictions, approved);
        let mut remedies = Vec::new();
        if decision.answer != Answer::Allow {
            let answer = |input: &Input| self.decide(input, restrictions, approved).answer;
            let mut try_out = |change: Change, answer: Answer| {
                if answer < decision.answer {
                    remedies.push(Remedy { change, answer });
                }
            };
            if approved == Approved::No {
                try_out(Change::Approval, self.decide(input, restrictions, Approved::Yes).answer);
            }
            for change in changes(input) {
                if let Some(changed) = change.applied(input) {
                    try_out(change, answer(&changed));
                }
            }
            let without = smallest_group(input, decision.answer, answer);
            if let Some((concerns, answer)) = without {
                try_out(Change::Without(concerns), answer);
            }
            remedies.sort_by_key(|remedy| remedy.answer);
        }
        Explanation { decision, remedies }
    }
}

/// Single changes that are worth trying.
fn changes(input: &Input) -> Vec<Change> {
    let mut changes = Vec::new();
    if input.actor.kind() != ActorKind::User {
        changes.push(Change::Actor(ActorKind::User));
    }
    if input.actor.depth() > 0 {
        changes.push(Change::NoAncestors);
    }
    if !input.contained {
        changes.push(Change::Containment);
    }
    changes.push(Change::OwnWorkspace);
    changes.extend(
        [Risk::Low, Risk::Medium, Risk::High].into_iter().filter(|risk| *risk < input.risk).map(Change::Risk),
    );
    changes.extend(concerns_of(input).into_iter().map(|concern| Change::Without(BTreeSet::from([concern]))));
    changes
}

impl Change {
    /// The question with this change; `None` if it changes nothing.
    fn applied(&self, input: &Input) -> Option<Input> {
        let mut changed = input.clone();
        match self {
            Self::Approval => return None,
            Self::Actor(kind) => {
                let id = input.actor.id().to_owned();
                changed.actor = match kind {
                    ActorKind::User => Actor::User { id },
                    ActorKind::Service => Actor::Service { id },
                    ActorKind::Agent => {
                        let workspace = input.resource.workspace()?.to_owned();
                        Actor::Agent { id, workspace, ancestry: Vec::new() }
                    }
                };
            }
            Self::NoAncestors => match &mut changed.actor {
                Actor::Agent { ancestry, .. } => ancestry.clear(),
                _ => return None,
            },
            Self::Containment => changed.contained = true,
            Self::OwnWorkspace => {
                let Actor::Agent { workspace: own, .. } = &input.actor else { return None };
                if input.resource.workspace() == Some(own) {
                    return None;
                }
                match &mut changed.resource {
                    Resource::Path { workspace, .. } => *workspace = Some(own.clone()),
                    Resource::Project { workspace, .. }
                    | Resource::Session { workspace, .. }
                    | Resource::Terminal { workspace, .. } => own.clone_into(workspace),
                    Resource::Workspace { id } => own.clone_into(id),
                    Resource::House => return None,
                }
            }
            Self::Risk(risk) => changed.risk = *risk,
            Self::Without(concerns) => {
                if let Some(shell) = &mut changed.shell {
                    shell.concerns.retain(|concern| !concerns.contains(concern));
                }
                if let Resource::Path { concerns: against, .. } = &mut changed.resource {
                    against.retain(|concern| !concerns.contains(concern));
                }
            }
        }
        (changed != *input).then_some(changed)
    }
}

fn concerns_of(input: &Input) -> BTreeSet<Concern> {
    let mut concerns = input.shell.as_ref().map(|shell| shell.concerns.clone()).unwrap_or_default();
    if let Resource::Path { concerns: against, .. } = &input.resource {
        concerns.extend(against);
    }
    concerns
}

/// Concerns of which each alone changes nothing, but all together do.
fn smallest_group(
    input: &Input,
    now: Answer,
    answer: impl Fn(&Input) -> Answer,
) -> Option<(BTreeSet<Concern>, Answer)> {
    let without = |concerns: &BTreeSet<Concern>| {
        Change::Without(concerns.clone()).applied(input).map_or(now, |changed| answer(&changed))
    };
    let mut group = concerns_of(input);
    if group.len() < 2 {
        return None;
    }
    let best = without(&group);
    if best >= now {
        return None;
    }
    for concern in group.clone() {
        let mut smaller = group.clone();
        smaller.remove(&concern);
        if without(&smaller) == best {
            group = smaller;
        }
    }
    (group.len() > 1).then_some((group, best))
}
