//! The words of the schema, prepared once: types, actions with their groups, concerns.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use cedar_policy::{
    Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression, Schema, ValidationMode,
    Validator,
};

use super::SCHEMA;
use super::actor::ActorKind;
use super::resource::ResourceKind;
use crate::shell::Concern;

/// A place in [`Vocabulary::actions`].
pub(super) type ActionIndex = usize;

/// One action of the schema.
#[derive(Debug)]
pub(super) struct ActionSpec {
    pub(super) name: String,
    pub(super) uid: EntityUid,
    /// Every group it is in, at any remove.
    pub(super) groups: HashSet<EntityUid>,
    /// The action with its groups, as Cedar wants to see it.
    pub(super) entity: Entity,
    pub(super) resources: Vec<ResourceKind>,
    /// Rules about it may look at `context.shell`.
    pub(super) has_shell: bool,
}

/// The schema and what is made of it.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) validator: Validator,
    pub(super) actions: Vec<ActionSpec>,
    by_name: HashMap<String, ActionIndex>,
    types: HashMap<&'static str, EntityTypeName>,
    concerns: HashMap<Concern, RestrictedExpression>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    // Committed beside this file and loaded by every test: it cannot be missing or wrong in a program that was built.
    Vocabulary::of(SCHEMA).unwrap_or_else(|error| panic!("the committed schema is broken: {error}"))
});

/// The names of all actions that rules can speak of.
pub fn actions() -> impl Iterator<Item = &'static str> {
    VOCABULARY.actions.iter().map(|action| action.name.as_str())
}

/// Whether rules can speak of an action of this name.
#[must_use]
pub fn is_action(name: &str) -> bool {
    VOCABULARY.action(name).is_some()
}

/// Whether an action can be done to such a thing.
#[must_use]
pub fn fits(action: &str, resource: &super::Resource) -> bool {
    let words = Vocabulary::get();
    words.action(action).is_some_and(|action| words.actions[action].resources.contains(&resource.kind()))
}

impl Vocabulary {
    pub(super) fn get() -> &'static Self {
        &VOCABULARY
    }

    fn of(text: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let (schema, _warnings) = Schema::from_cedarschema_str(text)?;
        let mut types = HashMap::new();
        for name in
            ActorKind::ALL.map(ActorKind::name).into_iter().chain(ResourceKind::ALL.map(ResourceKind::name))
        {
            types.insert(name, name.parse::<EntityTypeName>()?);
        }
        let concern_type: EntityTypeName = "Concern".parse()?;
        let concerns = Concern::ALL
            .into_iter()
            .map(|concern| {
                let uid =
                    EntityUid::from_type_name_and_id(concern_type.clone(), EntityId::new(concern.name()));
                (concern, RestrictedExpression::new_entity_uid(uid))
            })
            .collect();
        let actions = actions_of(&schema)?;
        let by_name = actions.iter().enumerate().map(|(at, action)| (action.name.clone(), at)).collect();
        Ok(Self { validator: Validator::new(schema), actions, by_name, types, concerns })
    }

    pub(super) fn action(&self, name: &str) -> Option<ActionIndex> {
        self.by_name.get(name).copied()
    }

    pub(super) fn uid(&self, type_name: &'static str, id: &str) -> EntityUid {
        // Every name that is asked for was put in above.
        EntityUid::from_type_name_and_id(self.types[type_name].clone(), EntityId::new(id))
    }

    pub(super) fn concern(&self, concern: Concern) -> RestrictedExpression {
        self.concerns[&concern].clone()
    }

    /// Strict: a rule that could meet a wrong type when it runs is refused when it is loaded.
    pub(super) const MODE: ValidationMode = ValidationMode::Strict;
}

fn actions_of(schema: &Schema) -> Result<Vec<ActionSpec>, Box<dyn std::error::Error>> {
    let hierarchy: Entities = schema.action_entities()?;
    let mut actions = Vec::new();
    for uid in schema.actions() {
        let applies_to: HashSet<String> =
            schema.resources_for_action(uid).into_iter().flatten().map(ToString::to_string).collect();
        // Groups apply to nothing themselves.
        if applies_to.is_empty() {
            continue;
        }
        let groups: HashSet<EntityUid> = hierarchy.ancestors(uid).into_iter().flatten().cloned().collect();
        let resources =
            ResourceKind::ALL.into_iter().filter(|kind| applies_to.contains(kind.name())).collect();
        let name = uid.id().unescaped().to_owned();
        let entity = Entity::new_no_attrs(uid.clone(), groups.clone());
        let has_shell = groups.iter().any(|group| group.id().unescaped() == "run");
        actions.push(ActionSpec { name, uid: uid.clone(), groups, entity, resources, has_shell });
    }
    actions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(actions)
}
