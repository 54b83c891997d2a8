//! "Allow for this session": a narrow, expiring standing approval.
//!
//! A grant is not a `permit`: it only answers beforehand the question that the rules would ask, so it can never let
//! through what the rules forbid. It covers the agent that asked and those below it, the same action, and calls that are
//! no worse than the one that was approved. What cannot be compared (an unclear line, a network address, a path
//! outside) is covered only when it is exactly the same again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::input::Input;
use super::resource::Resource;
use crate::shell::{Concern, Risk};

/// Kinds of objections that do not depend on the arguments of a line: if one `git push` is fine, so is the next.
const COMPARABLE: [Concern; 3] = [Concern::Deletes, Concern::Pushes, Concern::Installs];

/// A standing approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id.
    pub id: String,
    /// The agent it was given to; it holds for those below it too.
    pub agent: String,
    /// What may be done.
    pub action: String,
    /// How far it goes.
    pub scope: GrantScope,
    /// Nothing worse than this.
    pub risk: Risk,
    /// Who gave it.
    pub granted_by: String,
    /// When it was given, in milliseconds since 1970.
    pub granted_at: u64,
    /// When it ends.
    pub expires_at: u64,
}

/// How far a grant goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantScope {
    /// These arguments exactly, by their hash, on this resource.
    Exactly {
        /// The hash.
        arguments: String,
        /// The resource.
        resource: String,
    },
    /// Command lines that run no other programs, in this workspace, with no other objections.
    Commands {
        /// The workspace.
        workspace: String,
        /// The programs.
        programs: BTreeSet<String>,
        /// With what they are told to do.
        commands: BTreeSet<String>,
        /// The objections.
        concerns: BTreeSet<Concern>,
    },
    /// This file.
    Path {
        /// The path.
        path: String,
    },
    /// This tool of somebody else.
    Tool {
        /// Its name.
        tool: String,
        /// The resource.
        resource: String,
    },
    /// This action on this thing.
    Thing {
        /// The resource.
        resource: String,
    },
}

impl GrantScope {
    /// The scope that an approval of `input` for the session would have; `None` if there is none that is narrow enough.
    #[must_use]
    pub fn of(input: &Input) -> Option<Self> {
        let resource = input.resource.id().to_owned();
        if let Some(shell) = &input.shell {
            let comparable = shell.concerns.iter().all(|concern| COMPARABLE.contains(concern));
            if let (true, Some(workspace)) =
                (comparable && !shell.programs.is_empty(), input.resource.workspace())
            {
                return Some(Self::Commands {
                    workspace: workspace.to_owned(),
                    programs: shell.programs.clone(),
                    commands: shell.commands.clone(),
                    concerns: shell.concerns.clone(),
                });
            }
            let arguments = input.arguments.clone()?;
            return Some(Self::Exactly { arguments, resource });
        }
        if let Some(tool) = &input.tool {
            return Some(Self::Tool { tool: tool.clone(), resource });
        }
        match &input.resource {
            Resource::Path { path, .. } => Some(Self::Path { path: path.clone() }),
            _ if input.action.starts_with("share.") => None,
            _ => Some(Self::Thing { resource }),
        }
    }
}

impl Grant {
    /// Whether it answers the question about this call, now.
    #[must_use]
    pub fn covers(&self, input: &Input, now: u64) -> bool {
        self.granted_at <= now
            && now < self.expires_at
            && self.action == input.action
            && input.risk <= self.risk
            && self.covers_actor(&input.actor)
            && self.covers_what(input)
    }

    fn covers_actor(&self, actor: &Actor) -> bool {
        match actor {
            Actor::Agent { id, ancestry, .. } => {
                *id == self.agent || ancestry.iter().any(|above| above.id == self.agent)
            }
            _ => false,
        }
    }

    fn covers_what(&self, input: &Input) -> bool {
        let same_resource = |resource: &str| input.resource.id() == resource;
        match &self.scope {
            GrantScope::Exactly { arguments, resource } => {
                input.arguments.as_ref() == Some(arguments) && same_resource(resource)
            }
            GrantScope::Commands { workspace, programs, commands, concerns } => {
                input.shell.as_ref().is_some_and(|shell| {
                    shell.programs.is_subset(programs)
                        && shell.commands.is_subset(commands)
                        && shell.concerns.is_subset(concerns)
                }) && input.resource.workspace() == Some(workspace)
            }
            GrantScope::Path { path } => input.shell.is_none() && same_resource(path),
            GrantScope::Tool { tool, resource } => {
                input.tool.as_ref() == Some(tool) && same_resource(resource)
            }
            GrantScope::Thing { resource } => {
                input.shell.is_none() && input.tool.is_none() && same_resource(resource)
            }
        }
    }
}
