//! What a command line would do: programs, paths, risks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::concern::Concern;
use super::place::Place;
use super::programs::lists;
use super::unclear::Unclear;

/// A command line, understood as far as it can be without running it.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Every program that could run, in the order of the text.
    pub invocations: Vec<Invocation>,
    /// What the line as a whole does.
    pub flags: Flags,
    /// The worst of `reasons`.
    pub risk: Risk,
    /// What is risky about it wherever it runs.
    pub reasons: Vec<Reason>,
    /// What was not understood.
    pub unclear: Vec<Unclear>,
}

/// One program that would run.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// Its name without folders.
    pub program: String,
    /// The file, if it was named by a path that is not one of the system's own folders.
    pub file: Option<Place>,
    /// Its arguments as far as they are known.
    pub arguments: Vec<Argument>,
    /// Files it would read, redirections included.
    pub reads: Vec<Place>,
    /// Files it would create, change or remove, redirections included.
    pub writes: Vec<Place>,
    /// Directories it may run in: more than one after a `cd` that may have failed.
    pub places: Vec<Place>,
    /// What leads to it, outermost first.
    pub via: Vec<Via>,
    /// What kind of program it is.
    pub nature: Nature,
    /// It removes whole folders.
    pub removes_trees: bool,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The text; parts known only at run time are shown as `$NAME`, `$…` or `$(…)`.
    pub text: String,
    /// The whole text is known.
    pub known: bool,
}

/// How a program comes to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Via {
    /// Another program runs it: `sudo`, `xargs`, `bash -c` …
    Program(String),
    /// It stands in `$(…)`, backquotes or `<(…)`.
    Substitution,
    /// It stands in the body of a function.
    Function(String),
    /// It is given to a shell as input.
    Input,
}

/// What a program is known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nature {
    /// Touches nothing.
    Idle,
    /// Reads files.
    Reads,
    /// Changes the files it is told to change.
    Writes,
    /// Runs code of the project: builds, tests, scripts.
    Runs,
    /// Reaches beyond files and the project; `Command::reasons` says how.
    Reaches,
    /// Not in any table.
    Unknown,
}

/// What a line does as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// Reaches other machines.
    pub network: bool,
    /// Runs as another user.
    pub privilege: bool,
    /// Destroys what cannot be brought back.
    pub destructive: bool,
    /// Leaves something running.
    pub background: bool,
    /// Was not understood in whole.
    pub unclear: bool,
}

/// How bad it could be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing is lost.
    #[default]
    Low,
    /// Work in the project may be lost, or something leaves the machine.
    Medium,
    /// The account, other projects or other people may be harmed.
    High,
    /// The machine may be.
    Critical,
}

/// One reason to look twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Which kind of thing it is.
    pub concern: Concern,
    /// How bad.
    pub risk: Risk,
    /// What, in words for a person and a model.
    pub text: String,
}

/// Programs whose first operand says what they do.
const SUBCOMMANDED: &str = "\
    apk apt apt-get aws az brew bun bundle cargo composer conda dnf docker docker-compose flatpak gcloud gem gh git \
    glab go helm kubectl nix npm pip pip3 pnpm podman poetry rustup snap swb systemctl terraform tofu uv yarn yum";

impl Invocation {
    /// The program with what it is told to do, where its first operand says that: `git push`.
    #[must_use]
    pub fn act(&self) -> Option<String> {
        lists(SUBCOMMANDED, &self.program).then_some(())?;
        let plain = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':'))
        };
        let first = self.arguments.iter().find(|argument| !argument.text.starts_with(['-', '+']))?;
        (first.known && plain(&first.text)).then(|| format!("{} {}", self.program, first.text))
    }
}

impl Command {
    /// Adds a reason once.
    pub(super) fn blame(&mut self, concern: Concern, risk: Risk, text: impl Into<String>) {
        let reason = Reason { concern, risk, text: text.into() };
        self.risk = self.risk.max(risk);
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Notes what was not understood.
    pub(super) fn doubt(&mut self, unclear: Unclear) {
        self.flags.unclear = true;
        self.risk = self.risk.max(Risk::High);
        if !self.unclear.contains(&unclear) {
            self.unclear.push(unclear);
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.text))
    }
}
