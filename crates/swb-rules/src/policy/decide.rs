//! The decision: ask as it is, ask as if approved, take the strictest of the line.

use std::sync::Arc;

use cedar_policy::{Authorizer, Decision as CedarDecision, Request};

use super::DEFAULT_RULES;
use super::actor::ActorKind;
use super::decision::{Answer, Decision, Why};
use super::input::Input;
use super::load::{LoadError, Loaded, Source, read};
use super::request::{Prepared, context};
use super::resource::ResourceKind;
use super::rule::{Effect, Layer, Rule, RuleInfo};
use super::slices::{Round, Slice, Slices, rule_of};
use super::vocabulary::{ActionIndex, Vocabulary};

/// Whether somebody has agreed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approved {
    /// Nobody was asked.
    No,
    /// To this very call, or to calls like it for the session.
    Yes,
}

/// The rules of the house and its user: what is permitted, and what is forbidden everywhere.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    slices: Slices,
}

/// Rules that hold in one project or one session beside those of the user, and can only take away.
#[derive(Debug, Default)]
pub struct Restrictions {
    rules: Vec<Rule>,
    slices: Slices,
}

impl Rules {
    /// No rules at all: everything is denied.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The rules everyone starts with, together with the user's own. One of the user's with the `@id` of a default rule
    /// takes its place.
    pub fn load(user: &[Source<'_>]) -> Result<Loaded<Self>, Vec<LoadError>> {
        let defaults = read(Layer::Default, &[Source { file: "default.cedar", text: DEFAULT_RULES }])?;
        let own = read(Layer::User, user)?;
        let mut rules = defaults.rules;
        rules.retain(|rule| own.rules.iter().all(|own| own.info.name != rule.info.name));
        rules.extend(own.rules);
        Ok(Loaded { rules: Self::of(rules)?, warnings: own.warnings })
    }

    /// The user's rules alone, without those everyone starts with.
    pub fn load_without_defaults(user: &[Source<'_>]) -> Result<Loaded<Self>, Vec<LoadError>> {
        let own = read(Layer::User, user)?;
        Ok(Loaded { rules: Self::of(own.rules)?, warnings: own.warnings })
    }

    fn of(rules: Vec<Rule>) -> Result<Self, Vec<LoadError>> {
        let slices = sorted(&rules)?;
        Ok(Self { rules, slices })
    }

    /// The rules, as they are shown.
    pub fn rules(&self) -> impl Iterator<Item = &RuleInfo> {
        self.rules.iter().map(|rule| &*rule.info)
    }

    /// Decides.
    #[must_use]
    pub fn decide(&self, input: &Input, restrictions: &[&Restrictions], approved: Approved) -> Decision {
        if self.rules.is_empty() {
            return Decision::deny(Why::NoRules);
        }
        let Some(action) = Vocabulary::get().action(&input.action) else {
            return Decision::deny(Why::UnknownAction);
        };
        let question = Question::new(self, restrictions, input, action);
        let depth = input.actor.depth();
        // The actor itself first: where all are equally strict, its own rules are the ones to tell.
        let mut strictest = question.judge(depth, approved);
        for level in (0..depth).rev() {
            if strictest.answer == Answer::Deny {
                break;
            }
            let above = question.judge(level, approved);
            if above.answer > strictest.answer {
                strictest = above;
            }
        }
        strictest
    }
}

impl Restrictions {
    /// Rules found in a project.
    pub fn load_project(sources: &[Source<'_>]) -> Result<Loaded<Self>, Vec<LoadError>> {
        Self::load(Layer::Project, sources)
    }

    /// Rules given to a session.
    pub fn load_session(sources: &[Source<'_>]) -> Result<Loaded<Self>, Vec<LoadError>> {
        Self::load(Layer::Session, sources)
    }

    fn load(layer: Layer, sources: &[Source<'_>]) -> Result<Loaded<Self>, Vec<LoadError>> {
        let Loaded { rules, warnings } = read(layer, sources)?;
        let slices = sorted(&rules)?;
        Ok(Loaded { rules: Self { rules, slices }, warnings })
    }

    /// The rules, as they are shown.
    pub fn rules(&self) -> impl Iterator<Item = &RuleInfo> {
        self.rules.iter().map(|rule| &*rule.info)
    }
}

fn sorted(rules: &[Rule]) -> Result<Slices, Vec<LoadError>> {
    Slices::new(rules).map_err(|error| {
        let file = rules.first().map(|rule| rule.info.file.clone()).unwrap_or_default();
        vec![LoadError { file, line: 1, column: 1, reason: error.to_string(), help: None }]
    })
}

/// One layer's rules for one kind of question.
type Part<'a> = (&'a [Rule], &'a Slice);

/// A question with the rules that may speak about it.
struct Question<'a> {
    input: &'a Input,
    action: ActionIndex,
    has_shell: bool,
    /// Rules that permit and forbid.
    main: Option<Part<'a>>,
    /// Rules that only forbid.
    restricting: Vec<Part<'a>>,
}

/// What the rules say with `approved` one way or the other.
struct Spoken {
    permits: Vec<Arc<RuleInfo>>,
    forbids: Vec<Arc<RuleInfo>>,
    /// Some rule that forbids would forbid whether approved or not.
    for_good: bool,
    broken: bool,
}

impl<'a> Question<'a> {
    fn new(
        rules: &'a Rules,
        restrictions: &[&'a Restrictions],
        input: &'a Input,
        action: ActionIndex,
    ) -> Self {
        let (actor, resource): (ActorKind, ResourceKind) = (input.actor.kind(), input.resource.kind());
        let main = rules.slices.get(actor, action, resource).map(|slice| (rules.rules.as_slice(), slice));
        let restricting = restrictions
            .iter()
            .filter_map(|more| Some((more.rules.as_slice(), more.slices.get(actor, action, resource)?)))
            .collect();
        let has_shell = Vocabulary::get().actions[action].has_shell;
        Self { input, action, has_shell, main, restricting }
    }

    /// The decision for the agent `level` steps below the root.
    fn judge(&self, level: usize, approved: Approved) -> Decision {
        let spec = &Vocabulary::get().actions[self.action];
        let fits = spec.resources.contains(&self.input.resource.kind());
        if !fits || (self.has_shell && self.input.shell.is_none()) {
            return Decision::deny(Why::Unfit);
        }
        let mut decision = self.answer(level, approved).unwrap_or_else(|| Decision::deny(Why::Unfit));
        if level < self.input.actor.depth()
            && let super::actor::Actor::Agent { ancestry, .. } = &self.input.actor
        {
            decision.on_behalf_of = ancestry.get(level).map(|agent| agent.id.clone());
        }
        decision
    }

    fn answer(&self, level: usize, approved: Approved) -> Option<Decision> {
        let prepared = Prepared::new(self.input, self.action, level)?;
        let decided =
            |answer, why, rules| Some(Decision { answer, why, rules, on_behalf_of: None, trouble: None });
        let denied = |spoken: Spoken| {
            let why = match (spoken.broken, spoken.forbids.is_empty()) {
                (true, _) => Why::BrokenRule,
                (false, false) => Why::Forbidden,
                (false, true) => Why::NotPermitted,
            };
            decided(Answer::Deny, why, spoken.forbids)
        };
        let round = if approved == Approved::Yes { Round::Approved } else { Round::Unapproved };
        let first = self.ask(&prepared, round)?;
        if first.is_permitted() {
            let why = if approved == Approved::Yes { Why::Approved } else { Why::Permitted };
            return decided(Answer::Allow, why, first.permits);
        }
        if approved == Approved::Yes || first.broken || first.for_good || !self.looks_at_approved() {
            return denied(first);
        }
        let second = self.ask(&prepared, Round::AsIfApproved)?;
        if !second.is_permitted() {
            return denied(second);
        }
        let why = if first.forbids.is_empty() { Why::PermittedIfApproved } else { Why::AskedFor };
        decided(Answer::NeedsApproval, why, [first.forbids, second.permits].concat())
    }

    fn looks_at_approved(&self) -> bool {
        self.main.iter().chain(&self.restricting).any(|(_, slice)| slice.looks_at_approved)
    }

    fn ask(&self, prepared: &Prepared, round: Round) -> Option<Spoken> {
        let request = prepared.request(context(self.input, self.has_shell, round.is_approved())?)?;
        let mut spoken = Spoken { permits: Vec::new(), forbids: Vec::new(), for_good: false, broken: false };
        for part in self.main.iter().chain(&self.restricting) {
            spoken.add(part, round, &request, prepared);
        }
        Some(spoken)
    }
}

impl Spoken {
    fn add(&mut self, (rules, slice): &Part<'_>, round: Round, request: &Request, prepared: &Prepared) {
        let policies = slice.policies(round, rules);
        let response = Authorizer::new().is_authorized(request, policies, &prepared.entities);
        let permits = response.decision() == CedarDecision::Allow;
        for rule in response.diagnostics().reason().filter_map(|id| rule_of(id, rules)) {
            self.for_good |= !permits && !rule.looks_at_approved;
            let spoke = if permits { &mut self.permits } else { &mut self.forbids };
            spoke.push(Arc::clone(&rule.info));
        }
        for error in response.diagnostics().errors() {
            // Cedar leaves a rule that fails aside; for one that forbids that would open the door.
            self.broken = true;
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            self.forbids.extend(rule_of(error.policy_id(), rules).map(|rule| Arc::clone(&rule.info)));
        }
        // Cedar gives no order; people and tests like one.
        self.permits
            .sort_by(|one, other| (one.layer as u8, &one.name).cmp(&(other.layer as u8, &other.name)));
        self.forbids.sort_by_key(|rule| (rule.effect != Effect::Forbid, rule.layer as u8, rule.name.clone()));
    }

    fn is_permitted(&self) -> bool {
        !self.permits.is_empty() && self.forbids.is_empty() && !self.broken
    }
}
