//! What rules may know about a command line.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::shell::{Command, Concern, Risk, Scope, findings};

/// Most programs that are kept; a line with more is unclear.
const MAX_PROGRAMS: usize = 64;

/// A command line as rules see it: kinds of things, never the line itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShellFacts {
    /// Every program that could start, by name.
    #[serde(default)]
    pub programs: BTreeSet<String>,
    /// Programs with what they are told to do: `git push`.
    #[serde(default)]
    pub commands: BTreeSet<String>,
    /// What speaks against it.
    #[serde(default)]
    pub concerns: BTreeSet<Concern>,
}

impl ShellFacts {
    /// The facts about a command line in a place, how bad it could be, and why in words.
    #[must_use]
    pub fn of(command: &Command, scope: &Scope) -> (Self, Risk, Vec<String>) {
        let mut findings = findings(command, scope);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.risk));
        let mut facts = Self {
            concerns: findings.iter().map(|finding| finding.concern).collect(),
            programs: command.invocations.iter().map(|invocation| invocation.program.clone()).collect(),
            commands: command.invocations.iter().filter_map(|invocation| invocation.act()).collect(),
        };
        if facts.programs.len() > MAX_PROGRAMS {
            facts.concerns.insert(Concern::Unclear);
            facts.programs = facts.programs.into_iter().take(MAX_PROGRAMS).collect();
            facts.commands = facts.commands.into_iter().take(MAX_PROGRAMS).collect();
        }
        let risk = findings.iter().map(|finding| finding.risk).max().unwrap_or_default();
        let mut reasons: Vec<String> = Vec::new();
        for finding in findings {
            if !reasons.contains(&finding.text) {
                reasons.push(finding.text);
            }
        }
        (facts, risk, reasons)
    }
}
