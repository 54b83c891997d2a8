//! What there is to say against a command line or a path, sorted into kinds that rules can name.
//!
//! A kind is what a rule is about ("nothing that reaches the network"); the text of a finding is what a person reads.
//! The names are part of what is written in policy files and kept in records: a name is never given another meaning.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of objection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Concern {
    /// Was not understood in whole, or is known only when it runs.
    Unclear,
    /// Runs a program that is in no table.
    Unknown,
    /// Runs code that the line itself has written.
    BringsCode,
    /// Removes files.
    Deletes,
    /// Loses what cannot be brought back: history, uncommitted work, whole trees, disks.
    Destroys,
    /// Sends work to others: `git push`, publishing a package.
    Pushes,
    /// Installs software or fetches dependencies.
    Installs,
    /// Reaches other machines.
    Network,
    /// Reads, writes or runs outside the workspace.
    Leaves,
    /// Touches a file that holds secrets.
    Secrets,
    /// May show secrets: the environment, keys, a pattern that may match them.
    Exposes,
    /// Touches files of another user.
    Foreign,
    /// Acts as another user, or changes rights.
    Privilege,
    /// Makes other programs run something: start files, hooks, variables, options.
    Steers,
    /// Touches Switchboard itself: its files, or the commands that govern it.
    Governs,
    /// Goes on beside or after the line: `at`, `cron`, `tmux`.
    Outlasts,
    /// Ends, changes or looks into other processes.
    Processes,
    /// Changes how the machine runs.
    System,
    /// Acts on services: containers, databases, clouds.
    Services,
}

impl Concern {
    /// All of them.
    pub const ALL: [Concern; 19] = [
        Self::Unclear,
        Self::Unknown,
        Self::BringsCode,
        Self::Deletes,
        Self::Destroys,
        Self::Pushes,
        Self::Installs,
        Self::Network,
        Self::Leaves,
        Self::Secrets,
        Self::Exposes,
        Self::Foreign,
        Self::Privilege,
        Self::Steers,
        Self::Governs,
        Self::Outlasts,
        Self::Processes,
        Self::System,
        Self::Services,
    ];

    /// Its name in rules and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unclear => "unclear",
            Self::Unknown => "unknown",
            Self::BringsCode => "brings_code",
            Self::Deletes => "deletes",
            Self::Destroys => "destroys",
            Self::Pushes => "pushes",
            Self::Installs => "installs",
            Self::Network => "network",
            Self::Leaves => "leaves",
            Self::Secrets => "secrets",
            Self::Exposes => "exposes",
            Self::Foreign => "foreign",
            Self::Privilege => "privilege",
            Self::Steers => "steers",
            Self::Governs => "governs",
            Self::Outlasts => "outlasts",
            Self::Processes => "processes",
            Self::System => "system",
            Self::Services => "services",
        }
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_by_its_name() {
        for concern in Concern::ALL {
            assert_eq!(serde_json::to_value(concern).unwrap(), concern.name());
        }
        let names: std::collections::BTreeSet<_> =
            Concern::ALL.iter().map(|concern| concern.name()).collect();
        assert_eq!(names.len(), Concern::ALL.len());
    }
}
