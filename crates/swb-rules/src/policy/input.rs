//! All that a decision is made on, in the form in which it is kept.
//!
//! What is written here is enough to decide again, later and with other rules: a dry run over the recorded past needs
//! no file, no clock and no command line. New fields come with a default that means what was so before they existed.

use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::facts::ShellFacts;
use super::resource::Resource;
use crate::shell::Risk;

/// One question to the policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Input {
    /// Who.
    pub actor: Actor,
    /// What: the wire name of a method (`session.create`), or `tool.` and the name of a tool.
    pub action: String,
    /// To what.
    pub resource: Resource,
    /// How bad it could be.
    #[serde(default)]
    pub risk: Risk,
    /// Whether containment holds around the actor.
    #[serde(default)]
    pub contained: bool,
    /// The tool's own name, where one action stands for many tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A keyed hash of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What a command line would do; for `tool.bash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellFacts>,
}

impl Input {
    /// A question about a method or tool without further facts.
    #[must_use]
    pub fn new(actor: Actor, action: impl Into<String>, resource: Resource) -> Self {
        Self {
            actor,
            action: action.into(),
            resource,
            risk: Risk::Low,
            contained: false,
            tool: None,
            arguments: None,
            shell: None,
        }
    }
}
