//! Asking the rules that hold in a place.

use std::path::Path;
use std::sync::Arc;

use swb_bus::topics::Topics;
use swb_journal::watch::Signal;
use swb_policy::RuleFolder;
use swb_rules::policy::{
    Actor, Approved, Decision, Explanation, Input, LoadError, Restrictions, RuleInfo, Rules,
};

use super::layer::{Health, Kept, Layer, Reading, RuleSet, load_of};
use super::memory::Memory;
use super::projects::Projects;
use super::reload;
use super::ruling::Ruling;
use super::sessions::{RestrictError, Sessions};
use super::told::{Told, Whose};
use crate::config::Config;
use crate::paths::Paths;

/// Where something is done: which rules hold beside the user's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'a> {
    /// The root of the project, absolute and real.
    pub project_root: Option<&'a Path>,
    /// The session.
    pub session_id: Option<&'a str>,
}

/// The rules in force. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Policy {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    own: Layer<Rules>,
    projects: Projects,
    sessions: Sessions,
    memory: Memory,
    bell: Arc<Signal>,
    told: Told,
}

/// The rules of a moment: what they were stays what it is while a decision is made.
pub(super) struct InForce {
    pub(super) rules: Arc<Rules>,
    pub(super) restrictions: Vec<Arc<Restrictions>>,
}

impl InForce {
    pub(super) fn decide(&self, input: &Input, approved: Approved) -> Decision {
        self.rules.decide(input, &borrowed(&self.restrictions), approved)
    }
}

impl Policy {
    /// Reads the user's rules, and begins to watch them. Rules that cannot be used are no error here: everything is
    /// denied until they can, and the denial says why.
    #[must_use]
    pub fn open(paths: &Paths, config: &Config) -> Self {
        let bell = Arc::new(Signal::default());
        let own = Layer::open(RuleFolder::of_user(&paths.config), load_of(config.policy.defaults), &bell);
        let shared = Arc::new(Shared {
            own,
            projects: Projects::default(),
            sessions: Sessions::open(&paths.session_rules()),
            memory: Memory::default(),
            bell: Arc::clone(&bell),
            told: Told::default(),
        });
        let kept = shared.own.kept();
        if !kept.problems.is_empty() {
            shared.told.rejected(Whose::User, None, &kept.problems);
        }
        if let Err(error) = reload::start(&shared, &bell) {
            tracing::error!(%error, "changed rules will not be noticed before the next start");
        }
        Policy { shared }
    }

    /// Says as events what becomes of rules from now on, and what is wrong with them already.
    pub fn announce_to(&self, topics: Arc<Topics>) {
        self.shared.told.to(topics);
        let kept = self.shared.own.kept();
        if !kept.problems.is_empty() {
            self.shared.told.rejected(Whose::User, kept.count(), &kept.problems);
        }
    }

    /// Decides. The first question about a project reads its rules, so this may touch the disk.
    #[must_use]
    pub fn decide(&self, input: &Input, place: &Place<'_>, approved: Approved) -> Arc<Ruling> {
        match self.in_force(input, place) {
            Ok(in_force) => self.shared.memory.decide(input, &in_force, approved),
            Err(denied) => Arc::new(Ruling::new(*denied, input)),
        }
    }

    /// Decides, and says what would change the answer.
    #[must_use]
    pub fn explain(&self, input: &Input, place: &Place<'_>, approved: Approved) -> Explanation {
        match self.in_force(input, place) {
            Ok(InForce { rules, restrictions }) => rules.explain(input, &borrowed(&restrictions), approved),
            Err(denied) => Explanation { decision: *denied, remedies: Vec::new() },
        }
    }

    /// Gives a session rules that hold beside all others, for every agent in it and below it, also after a restart; in
    /// the place of those it had. Returns how many they are.
    pub fn restrict_session(&self, session_id: &str, text: &str) -> Result<usize, RestrictError> {
        self.shared.sessions.give(session_id, text)
    }

    /// Forgets the rules of a session that has ended.
    pub fn forget_session(&self, session_id: &str) {
        self.shared.sessions.forget(session_id);
    }

    /// The rules that hold in a place, the user's first.
    #[must_use]
    pub fn rules(&self, place: &Place<'_>) -> Vec<RuleInfo> {
        let mut rules: Vec<RuleInfo> = Vec::new();
        if let Some(own) = &self.shared.own.kept().rules {
            rules.extend(own.rules().cloned());
        }
        let project = place.project_root.map(|root| self.shared.projects.kept(root, &self.shared.bell));
        let session = place.session_id.and_then(|id| self.shared.sessions.kept(id));
        for kept in [project, session].into_iter().flatten() {
            rules.extend(kept.rules.iter().flat_map(|rules| rules.rules().cloned().collect::<Vec<_>>()));
        }
        rules
    }

    /// How the user's rules stand, with what is wrong with those of projects that were met.
    #[must_use]
    pub fn health(&self) -> Health {
        let kept = self.shared.own.kept();
        let mut health = Health {
            rules: kept.count().unwrap_or_default(),
            problems: kept.problems.clone(),
            warnings: kept.warnings.clone(),
            denies_everything: kept.rules.is_none(),
        };
        for (_, layer) in self.shared.projects.all() {
            health
                .problems
                .extend(layer.get().map(|layer| layer.kept().problems.clone()).unwrap_or_default());
        }
        health
    }

    fn in_force(&self, input: &Input, place: &Place<'_>) -> Result<InForce, Box<Decision>> {
        let Shared { own, projects, sessions, bell, .. } = &*self.shared;
        let rules = usable(&own.kept())?;
        let mut restrictions = Vec::new();
        if let Some(root) = place.project_root {
            restrictions.push(usable(&projects.kept(root, bell))?);
        }
        if !sessions.is_empty() {
            let mut ids: Vec<&str> = place.session_id.into_iter().collect();
            if let Actor::Agent { id, ancestry, .. } = &input.actor {
                ids.push(id);
                ids.extend(ancestry.iter().map(|above| above.id.as_str()));
            }
            ids.sort_unstable();
            ids.dedup();
            for kept in ids.into_iter().filter_map(|id| sessions.kept(id)) {
                restrictions.push(usable(&kept)?);
            }
        }
        Ok(InForce { rules, restrictions })
    }
}

impl Shared {
    /// Looks at all files again.
    pub(super) fn read_again(&self) {
        self.tell(Whose::User, &self.own);
        for (root, layer) in self.projects.all() {
            if let Some(layer) = layer.get() {
                self.tell(Whose::Project(&root), layer);
            }
        }
    }

    /// Whether some change may go unnoticed.
    pub(super) fn is_deaf(&self) -> bool {
        let deaf = |layer: &Layer<Restrictions>| layer.is_deaf();
        self.own.is_deaf() || self.projects.all().iter().any(|(_, layer)| layer.get().is_some_and(deaf))
    }

    fn tell<T: RuleSet>(&self, whose: Whose<'_>, layer: &Layer<T>) {
        let reading = layer.read_again();
        let kept = layer.kept();
        let count = kept.count();
        match reading {
            Reading::Same => {}
            Reading::Updated => self.told.updated(whose, count.unwrap_or_default(), &kept.warnings),
            Reading::Rejected => self.told.rejected(whose, count, &kept.problems),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.bell.stop();
    }
}

/// The rules of a layer, or the denial that says what is wrong with them.
fn usable<T>(kept: &Kept<T>) -> Result<Arc<T>, Box<Decision>> {
    kept.rules.clone().ok_or_else(|| Box::new(Decision::without_rules(trouble(&kept.problems))))
}

/// The first thing that is wrong, and how many more there are.
fn trouble(problems: &[LoadError]) -> String {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        more => format!("{first} (and {} more)", more - 1),
    }
}

fn borrowed(restrictions: &[Arc<Restrictions>]) -> Vec<&Restrictions> {
    restrictions.iter().map(AsRef::as_ref).collect()
}

#[cfg(test)]
mod tests;
