//! The verdict: may this command line run here, must someone be asked, or not at all?
//!
//! Mechanism: everything that could be wrong is collected first (`findings`); the mode then decides what the collection
//! means. For agents that run under no daemon; with one, policy rules decide over the same findings.
//! Invariants: what was not understood is never allowed outside `Full`; a stricter mode never allows what a wider one asks
//! about.

use std::collections::BTreeSet;

use super::findings::{Weight, findings};
use super::invocation::{Command, Nature, Risk};
use super::protected::{OWN, is_device};

/// How much is allowed without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only programs that are known to read.
    ReadOnly,
    /// Read anywhere but secrets; write and run inside the working directory; nothing destructive.
    Workspace,
    /// Everything but what may harm the machine, or Switchboard itself.
    Full,
}

/// Where a command line would run.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How much is allowed.
    pub mode: Mode,
    /// The working directory, absolute.
    pub directory: String,
    /// The home directory, if it is known; without it paths below `~` are asked about.
    pub home: Option<String>,
    /// Further folders that may be written, absolute: a folder for temporary files, for example.
    pub writable: Vec<String>,
}

/// What is to be done with a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Ask first.
    Ask {
        /// Why, for a person and a model.
        reason: String,
        /// How bad it could be.
        risk: Risk,
    },
    /// Do not run it.
    Deny {
        /// Why, for a person and a model.
        reason: String,
    },
}

/// Most reasons that a verdict spells out.
const MAX_REASONS: usize = 6;

/// Judges a command line.
#[must_use]
pub fn judge(command: &Command, scope: &Scope) -> Verdict {
    let (mut asks, mut denials) = (Vec::new(), Vec::new());
    for finding in findings(command, scope) {
        match finding.weight {
            Weight::Note => {}
            Weight::Ask => asks.push((finding.risk, finding.text)),
            Weight::Deny => denials.push(finding.text),
        }
    }
    match scope.mode {
        Mode::ReadOnly => denials.extend(more_than_reading(command, scope)),
        Mode::Workspace => {}
        Mode::Full => {
            // A person who chose this mode is asked only before something that cannot be undone.
            asks.retain(|(risk, text)| *risk == Risk::Critical || text.contains(OWN));
            denials.clear();
        }
    }
    if !denials.is_empty() {
        return Verdict::Deny { reason: joined(denials) };
    }
    let Some(risk) = asks.iter().map(|(risk, _)| *risk).max() else { return Verdict::Allow };
    asks.sort_by_key(|(risk, _)| std::cmp::Reverse(*risk));
    Verdict::Ask { reason: joined(asks.into_iter().map(|(_, text)| text).collect()), risk }
}

/// Why a line is not only a look.
fn more_than_reading(command: &Command, scope: &Scope) -> Vec<String> {
    let mut denials = Vec::new();
    for invocation in &command.invocations {
        let program = &invocation.program;
        for place in &invocation.writes {
            let parts = place.absolute(&scope.directory, scope.home.as_deref());
            if parts.is_some_and(|parts| !is_device(&parts)) {
                denials.push(format!("`{program}` would write `{place}`"));
            }
        }
        if !matches!(invocation.nature, Nature::Idle | Nature::Reads) {
            denials.push(format!("`{program}` is not known to only read"));
        }
    }
    if command.flags.network || command.flags.privilege || command.flags.destructive {
        denials.push("does more than read".to_owned());
    }
    denials
}

fn joined(mut texts: Vec<String>) -> String {
    let mut seen = BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    let more = texts.len().saturating_sub(MAX_REASONS);
    texts.truncate(MAX_REASONS);
    let mut text = texts.join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}
