//! What is said about rules: into the log, and as events.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use swb_bus::topics::Topics;
use swb_proto::{Actor, Meta};
use swb_rules::policy::LoadError;

/// Whose rules changed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose<'a> {
    User,
    Project(&'a Path),
}

/// Where events go, once there is somewhere.
#[derive(Debug, Default)]
pub(super) struct Told {
    topics: OnceLock<Arc<Topics>>,
}

impl Told {
    pub(super) fn to(&self, topics: Arc<Topics>) {
        let _ = self.topics.set(topics);
    }

    pub(super) fn updated(&self, whose: Whose<'_>, rules: usize, warnings: &[LoadError]) {
        tracing::info!(?whose, rules, "other rules are in force");
        for warning in warnings {
            tracing::warn!(?whose, %warning, "a rule looks wrong");
        }
        self.say("policy.rules.updated", whose, json!({ "rules": rules, "warnings": listed(warnings) }));
    }

    /// `in_force`: the rules that hold meanwhile; none if there are none and everything is denied.
    pub(super) fn rejected(&self, whose: Whose<'_>, in_force: Option<usize>, problems: &[LoadError]) {
        let meanwhile = if in_force.is_some() { "the old ones still hold" } else { "everything is denied" };
        for problem in problems {
            tracing::error!(?whose, %problem, meanwhile, "rules cannot be used");
        }
        let payload = json!({ "rules": in_force, "problems": listed(problems), "meanwhile": meanwhile });
        self.say("policy.rules.rejected", whose, payload);
    }

    fn say(&self, topic: &str, whose: Whose<'_>, mut payload: Value) {
        let Some(topics) = self.topics.get() else { return };
        match whose {
            Whose::User => payload["layer"] = json!("user"),
            Whose::Project(root) => {
                payload["layer"] = json!("project");
                payload["project_root"] = json!(root.to_string_lossy());
            }
        }
        if let Err(error) = topics.publish(topic, &Meta::default(), Some(&Actor::system()), &payload) {
            tracing::warn!(%error, topic, "not published");
        }
    }
}

fn listed(errors: &[LoadError]) -> Vec<Value> {
    let one = |error: &LoadError| {
        let LoadError { file, line, column, reason, help } = error;
        json!({ "file": file, "line": line, "column": column, "reason": reason, "help": help })
    };
    errors.iter().map(one).collect()
}
