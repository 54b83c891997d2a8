//! What something is done to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::shell::{Concern, Scope, Touch, findings_of_path, is_common_path};

/// The thing a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Resource {
    /// The daemon and what belongs to no workspace.
    House,
    /// A workspace.
    Workspace {
        /// Its id.
        id: String,
    },
    /// A project.
    Project {
        /// Its id.
        id: String,
        /// Where it is.
        workspace: String,
    },
    /// A session.
    Session {
        /// Its id.
        id: String,
        /// Where it is.
        workspace: String,
        /// The project it works on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
    },
    /// A terminal.
    Terminal {
        /// Its id.
        id: String,
        /// The session it belongs to.
        session: String,
        /// Where it is.
        workspace: String,
    },
    /// A file or a folder.
    Path {
        /// Absolute, with every link on the way followed.
        path: String,
        /// The workspace it lies in, if it lies in one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// What speaks against touching it.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        concerns: BTreeSet<Concern>,
        /// Lies outside every workspace and is meant to be read by all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        common: bool,
    },
}

/// The kinds, without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ResourceKind {
    House,
    Workspace,
    Project,
    Session,
    Terminal,
    Path,
}

impl ResourceKind {
    pub(super) const ALL: [ResourceKind; 6] =
        [Self::House, Self::Workspace, Self::Project, Self::Session, Self::Terminal, Self::Path];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::House => "House",
            Self::Workspace => "Workspace",
            Self::Project => "Project",
            Self::Session => "Session",
            Self::Terminal => "Terminal",
            Self::Path => "Path",
        }
    }
}

impl Resource {
    /// A file that is read or written. `path` is absolute and real (links followed by whoever can look); `workspace` is
    /// the id of the workspace it lies in.
    #[must_use]
    pub fn path(path: impl Into<String>, workspace: Option<String>, touch: Touch, scope: &Scope) -> Self {
        let path = path.into();
        // Whether it lies in the actor's workspace is for the rules to compare, for each agent of the line.
        let concerns = findings_of_path(&path, touch, scope)
            .into_iter()
            .map(|finding| finding.concern)
            .filter(|concern| *concern != Concern::Leaves)
            .collect();
        Self::Path { common: is_common_path(&path, scope), path, workspace, concerns }
    }

    /// The folder in which a command line would run.
    #[must_use]
    pub fn folder(path: impl Into<String>, workspace: Option<String>) -> Self {
        Self::Path { path: path.into(), workspace, concerns: BTreeSet::new(), common: false }
    }

    pub(super) fn kind(&self) -> ResourceKind {
        match self {
            Self::House => ResourceKind::House,
            Self::Workspace { .. } => ResourceKind::Workspace,
            Self::Project { .. } => ResourceKind::Project,
            Self::Session { .. } => ResourceKind::Session,
            Self::Terminal { .. } => ResourceKind::Terminal,
            Self::Path { .. } => ResourceKind::Path,
        }
    }

    /// Its name in rules and listings.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::House => "house",
            Self::Workspace { id }
            | Self::Project { id, .. }
            | Self::Session { id, .. }
            | Self::Terminal { id, .. } => id,
            Self::Path { path, .. } => path,
        }
    }

    /// The workspace it is, or lies in.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        match self {
            Self::House => None,
            Self::Workspace { id } => Some(id),
            Self::Project { workspace, .. }
            | Self::Session { workspace, .. }
            | Self::Terminal { workspace, .. } => Some(workspace),
            Self::Path { workspace, .. } => workspace.as_deref(),
        }
    }
}
