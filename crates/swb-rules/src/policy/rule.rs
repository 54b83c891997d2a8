//! One rule: what it is called, where it stands, what it can apply to.

use std::sync::{Arc, OnceLock};

use cedar_policy::{
    ActionConstraint, EntityTypeName, EntityUid, Policy, PrincipalConstraint, ResourceConstraint,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::actor::ActorKind;
use super::resource::ResourceKind;
use super::vocabulary::{ActionIndex, Vocabulary};

/// Whose rule it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// It comes with Switchboard.
    Default,
    /// The user's.
    User,
    /// Found in a project: it may only forbid or ask.
    Project,
    /// Given to a session: it may only forbid or ask.
    Session,
}

/// What a rule does when it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It permits.
    Permit,
    /// It forbids.
    Forbid,
    /// It forbids unless somebody agrees (`@ask`).
    Ask,
}

/// A rule as it is shown and cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleInfo {
    /// Its `@id`, else its file and line.
    pub name: String,
    /// Whose it is.
    pub layer: Layer,
    /// The file it stands in.
    pub file: String,
    /// Its first line, from 1.
    pub line: u32,
    /// What it does.
    pub effect: Effect,
    /// Its `@reason`, or the text of its `@ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A rule that was checked and can be evaluated.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) info: Arc<RuleInfo>,
    pub(super) policy: Policy,
    /// Its answer may change with `context.approved`.
    pub(super) looks_at_approved: bool,
    /// It says nothing unless `context.approved`.
    pub(super) waits_for_approval: bool,
    /// Made when it is first needed, because it takes as long as ten decisions.
    pub(super) bare: OnceLock<Policy>,
}

impl Rule {
    /// The rule as it stands in a slice, without what being in there says already: Cedar would look at it each time.
    pub(super) fn bare(&self) -> &Policy {
        self.bare.get_or_init(|| self.without_scope())
    }

    fn without_scope(&self) -> Policy {
        let Ok(mut json) = self.policy.to_json() else { return self.policy.clone() };
        json["action"] = json!({ "op": "All" });
        if let PrincipalConstraint::Is(_) = self.policy.principal_constraint() {
            json["principal"] = json!({ "op": "All" });
        }
        if let ResourceConstraint::Is(_) = self.policy.resource_constraint() {
            json["resource"] = json!({ "op": "All" });
        }
        Policy::from_json(None, json).unwrap_or_else(|_| self.policy.clone())
    }

    /// Whether it may speak when nobody has approved.
    pub(super) fn may_speak_unapproved(&self) -> bool {
        !self.waits_for_approval
    }

    /// Whether it may change the answer when asked again as if approved. One that forbids whether approved or not has had
    /// its say by then: had it spoken, nobody would ask again.
    pub(super) fn may_speak_again(&self) -> bool {
        self.looks_at_approved || self.info.effect == Effect::Permit
    }
}

impl Rule {
    /// Whether its scope leaves room for an actor of this kind.
    pub(super) fn may_concern_actor(&self, kind: ActorKind) -> bool {
        let is = |type_name: &EntityTypeName| type_name.basename() == kind.name();
        match self.policy.principal_constraint() {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Is(type_name) => is(&type_name),
            // Nothing is in a person, a service or an agent but one of the same kind.
            PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) => is(uid.type_name()),
            PrincipalConstraint::IsIn(type_name, uid) => is(&type_name) && is(uid.type_name()),
        }
    }

    pub(super) fn may_concern_action(&self, action: ActionIndex, vocabulary: &Vocabulary) -> bool {
        let spec = &vocabulary.actions[action];
        let is_in = |uid: &EntityUid| spec.uid == *uid || spec.groups.contains(uid);
        match self.policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(uid) => spec.uid == uid,
            ActionConstraint::In(uids) => uids.iter().any(is_in),
        }
    }

    pub(super) fn may_concern_resource(&self, kind: ResourceKind) -> bool {
        let is = |type_name: &EntityTypeName| type_name.basename() == kind.name();
        // Whether something of this kind can lie in something of that type.
        let lies_in = |uid: &EntityUid| {
            let outer = uid.type_name().basename();
            outer == kind.name()
                || match kind {
                    ResourceKind::House | ResourceKind::Workspace => false,
                    ResourceKind::Project | ResourceKind::Path => outer == "Workspace",
                    ResourceKind::Session => matches!(outer, "Workspace" | "Project"),
                    ResourceKind::Terminal => matches!(outer, "Session" | "Workspace" | "Project"),
                }
        };
        match self.policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Is(type_name) => is(&type_name),
            ResourceConstraint::Eq(uid) => is(uid.type_name()),
            ResourceConstraint::In(uid) => lies_in(&uid),
            ResourceConstraint::IsIn(type_name, uid) => is(&type_name) && lies_in(&uid),
        }
    }
}
