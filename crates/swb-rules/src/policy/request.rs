//! From a question to what Cedar evaluates: a request and the few entities it speaks of.
//!
//! Only what the rules can see is built, with every ancestor named directly, so that nothing has to be looked up or
//! closed over. One request is built for each agent of the line, and each is evaluated at most twice.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression};

use super::actor::Actor;
use super::input::Input;
use super::resource::Resource;
use super::vocabulary::{ActionIndex, Vocabulary};
use crate::shell::{Concern, Risk};

/// A question in Cedar's terms, for one of the agents of the line.
pub(super) struct Prepared {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    pub(super) entities: Entities,
}

impl Prepared {
    /// The question as asked by the agent that stands `level` steps below the root; `None` if Cedar refuses it.
    pub(super) fn new(input: &Input, action: ActionIndex, level: usize) -> Option<Self> {
        let words = Vocabulary::get();
        let spec = &words.actions[action];
        let principal = actor_entity(&input.actor, level, words)?;
        let resource = resource_entity(&input.resource, words)?;
        let (principal_uid, resource_uid) = (principal.uid(), resource.uid());
        let entities = [spec.entity.clone(), principal, resource];
        Some(Self {
            principal: principal_uid,
            action: spec.uid.clone(),
            resource: resource_uid,
            entities: Entities::from_entities(entities, None).ok()?,
        })
    }

    /// The request with its context.
    pub(super) fn request(&self, context: Context) -> Option<Request> {
        Request::new(self.principal.clone(), self.action.clone(), self.resource.clone(), context, None).ok()
    }
}

/// What is known about how it is done.
pub(super) fn context(input: &Input, has_shell: bool, approved: bool) -> Option<Context> {
    let words = Vocabulary::get();
    let text = |text: Option<&String>| RestrictedExpression::new_string(text.cloned().unwrap_or_default());
    let mut pairs = vec![
        ("approved".to_owned(), RestrictedExpression::new_bool(approved)),
        ("risk".to_owned(), RestrictedExpression::new_long(risk_level(input.risk))),
        ("contained".to_owned(), RestrictedExpression::new_bool(input.contained)),
        ("tool".to_owned(), text(input.tool.as_ref())),
        ("arguments".to_owned(), text(input.arguments.as_ref())),
    ];
    if has_shell {
        let shell = input.shell.as_ref()?;
        let record = RestrictedExpression::new_record([
            ("programs".to_owned(), texts(&shell.programs)),
            ("commands".to_owned(), texts(&shell.commands)),
            ("concerns".to_owned(), concerns(&shell.concerns, words)),
        ]);
        pairs.push(("shell".to_owned(), record.ok()?));
    }
    Context::from_pairs(pairs).ok()
}

fn risk_level(risk: Risk) -> i64 {
    match risk {
        Risk::Low => 0,
        Risk::Medium => 1,
        Risk::High => 2,
        Risk::Critical => 3,
    }
}

fn texts(texts: &BTreeSet<String>) -> RestrictedExpression {
    RestrictedExpression::new_set(texts.iter().map(|text| RestrictedExpression::new_string(text.clone())))
}

fn concerns(concerns: &BTreeSet<Concern>, words: &Vocabulary) -> RestrictedExpression {
    RestrictedExpression::new_set(concerns.iter().map(|concern| words.concern(*concern)))
}

fn actor_entity(actor: &Actor, level: usize, words: &Vocabulary) -> Option<Entity> {
    match actor {
        Actor::User { id } => Some(Entity::with_uid(words.uid("User", id))),
        Actor::Service { id } => Some(Entity::with_uid(words.uid("Service", id))),
        Actor::Agent { id, workspace, ancestry } => {
            let (id, workspace) =
                ancestry.get(level).map_or((id, workspace), |above| (&above.id, &above.workspace));
            let above = &ancestry[..level.min(ancestry.len())];
            let parents = above.iter().map(|agent| words.uid("Agent", &agent.id)).collect();
            let home = RestrictedExpression::new_entity_uid(words.uid("Workspace", workspace));
            let attributes = HashMap::from([("workspace".to_owned(), home)]);
            Entity::new(words.uid("Agent", id), attributes, parents).ok()
        }
    }
}

fn resource_entity(resource: &Resource, words: &Vocabulary) -> Option<Entity> {
    let uid = words.uid(resource.kind().name(), resource.id());
    let mut parents = HashSet::new();
    if let Some(workspace) = resource.workspace()
        && !matches!(resource, Resource::Workspace { .. })
    {
        parents.insert(words.uid("Workspace", workspace));
    }
    match resource {
        Resource::Session { project: Some(project), .. } => {
            parents.insert(words.uid("Project", project));
        }
        Resource::Terminal { session, .. } => {
            parents.insert(words.uid("Session", session));
        }
        Resource::Path { path, concerns: against, common, .. } => {
            let attributes = HashMap::from([
                ("path".to_owned(), RestrictedExpression::new_string(path.clone())),
                ("concerns".to_owned(), concerns(against, words)),
                ("common".to_owned(), RestrictedExpression::new_bool(*common)),
            ]);
            return Entity::new(uid, attributes, parents).ok();
        }
        _ => {}
    }
    Some(Entity::new_no_attrs(uid, parents))
}
