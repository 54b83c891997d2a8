//! The verdict: may this command line run here, must someone be asked, or not at all?
//!
//! Mechanism: everything that could be wrong is collected first, each thing with its risk; the mode then decides what
//! the collection means. So the reason names all that is wrong, not only the first thing met.
//! Invariants: what was not understood is never allowed outside `Full`; a stricter mode never allows what a wider one asks
//! about; nothing here looks at the disk, so a symbolic link is not seen (containment is there for that).

use std::collections::BTreeSet;

use super::invocation::{Command, Invocation, Nature, Risk};
use super::place::Place;
use super::protected::{OWN, Secrecy, is_device, is_socket, secrecy, sensitive_write};

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
    let mut findings = Findings { scope, asks: Vec::new(), denials: Vec::new(), own: false };
    for unclear in &command.unclear {
        findings.ask(Risk::High, unclear.to_string());
    }
    for reason in &command.reasons {
        findings.ask(reason.risk, reason.text.clone());
    }
    if !scope.directory.starts_with('/') {
        findings.ask(Risk::High, "the working directory is not known".to_owned());
    }
    for invocation in &command.invocations {
        findings.invocation(invocation);
    }
    if scope.mode == Mode::ReadOnly
        && (command.flags.network || command.flags.privilege || command.flags.destructive)
    {
        findings.denials.push("does more than read".to_owned());
    }
    findings.verdict()
}

struct Findings<'a> {
    scope: &'a Scope,
    asks: Vec<(Risk, String)>,
    denials: Vec<String>,
    /// Some of it concerns Switchboard's own files.
    own: bool,
}

impl Findings<'_> {
    fn verdict(mut self) -> Verdict {
        if self.scope.mode == Mode::Full {
            // A person who chose this mode is asked only before something that cannot be undone.
            let own = self.own;
            self.asks.retain(|(risk, text)| *risk == Risk::Critical || (own && text.contains(OWN)));
            self.denials.clear();
        }
        if !self.denials.is_empty() {
            return Verdict::Deny { reason: joined(self.denials) };
        }
        let Some(risk) = self.asks.iter().map(|(risk, _)| *risk).max() else { return Verdict::Allow };
        self.asks.sort_by_key(|(risk, _)| std::cmp::Reverse(*risk));
        Verdict::Ask { reason: joined(self.asks.into_iter().map(|(_, text)| text).collect()), risk }
    }

    fn ask(&mut self, risk: Risk, text: String) {
        self.asks.push((risk, text));
    }

    fn invocation(&mut self, invocation: &Invocation) {
        for place in &invocation.reads {
            self.read(invocation, place);
        }
        for place in &invocation.writes {
            self.write(invocation, place);
        }
        if self.scope.mode == Mode::ReadOnly && !matches!(invocation.nature, Nature::Idle | Nature::Reads) {
            self.denials.push(format!("`{}` is not known to only read", invocation.program));
        }
        let program = &invocation.program;
        if let Some(file) = &invocation.file {
            if !self.is_inside(file) {
                self.ask(Risk::High, format!("runs `{file}`, which is not in the working directory"));
            }
            // A device or a descriptor is input, not a script that someone could look at.
            if self.parts(file).is_some_and(|parts| is_device(&parts)) {
                self.ask(Risk::High, format!("runs whatever `{file}` gives it"));
            }
        }
        let acts_where_it_is = matches!(invocation.nature, Nature::Runs | Nature::Writes);
        if acts_where_it_is && let Some(place) = invocation.places.iter().find(|place| !self.is_inside(place))
        {
            self.ask(
                Risk::Medium,
                format!("`{program}` would run in `{place}`, which is not in the working directory"),
            );
        }
    }

    fn read(&mut self, invocation: &Invocation, place: &Place) {
        let program = &invocation.program;
        let Some(parts) = self.parts(place) else {
            return self.ask(
                Risk::Medium,
                format!("`{program}` would read `{place}`, which is known only when it runs"),
            );
        };
        if is_socket(&parts) {
            return self.ask(Risk::High, format!("`{place}` is a network connection"));
        }
        match secrecy(&parts, place.pattern) {
            Secrecy::Secret => self.denials.push(format!("`{place}` holds secrets")),
            Secrecy::Perhaps => self.ask(Risk::High, format!("`{place}` may match files that hold secrets")),
            Secrecy::Open => {}
        }
        if self.is_someone_elses(&parts) {
            self.ask(Risk::High, format!("`{place}` belongs to another user"));
        }
        // Programs that only show names and sizes may look at the folders above secrets.
        const LISTERS: &[&str] = &[
            "ls", "find", "du", "df", "stat", "tree", "readlink", "realpath", "file", "eza", "exa", "fd",
            "fdfind",
        ];
        let fixed = parts.iter().position(|part| part.contains(['*', '?', '['])).unwrap_or(parts.len());
        if !LISTERS.contains(&program.as_str()) && self.is_above_secrets(&parts[..fixed]) {
            self.ask(Risk::Medium, format!("`{place}` takes in folders that hold secrets"));
        }
    }

    fn write(&mut self, invocation: &Invocation, place: &Place) {
        let program = &invocation.program;
        let verb = if invocation.removes_trees { "remove" } else { "write" };
        let Some(parts) = self.parts(place) else {
            return self.ask(
                Risk::Medium,
                format!("`{program}` would {verb} `{place}`, which is known only when it runs"),
            );
        };
        if is_device(&parts) {
            return;
        }
        if self.scope.mode == Mode::ReadOnly {
            self.denials.push(format!("`{program}` would {verb} `{place}`"));
        }
        let directory = self.split(&self.scope.directory);
        if let Some(sensitive) = sensitive_write(&parts)
            // A rule about the system does not hold for a project that lies there.
            && (!parts.starts_with(&directory) || sensitive_write(&directory).is_none())
        {
            self.own |= sensitive.reason == OWN;
            self.ask(sensitive.risk, format!("`{place}`: {}", sensitive.reason));
        }
        if secrecy(&parts, place.pattern) != Secrecy::Open {
            self.ask(
                Risk::High,
                format!("`{program}` would change or move `{place}`, which may hold secrets"),
            );
        }
        let is_all_of_it = parts.len() <= directory.len()
            || parts[..parts.len() - 1] == directory[..] && is_everything(&parts);
        if !self.is_inside(place) {
            let risk = match (invocation.removes_trees, parts.len() <= 2 || directory.starts_with(&parts)) {
                (true, true) => Risk::Critical,
                (true, false) => Risk::High,
                (false, _) => Risk::Medium,
            };
            self.ask(
                risk,
                format!("`{program}` would {verb} `{place}`, which is not in the working directory"),
            );
        } else if invocation.removes_trees && is_all_of_it {
            self.ask(Risk::High, format!("`{program}` would remove all of the working directory"));
        }
    }

    fn parts(&self, place: &Place) -> Option<Vec<String>> {
        place.absolute(&self.scope.directory, self.scope.home.as_deref())
    }

    fn split(&self, path: &str) -> Vec<String> {
        Place::of_text(path, &Place::start()).absolute("/", None).unwrap_or_default()
    }

    fn is_inside(&self, place: &Place) -> bool {
        let Some(parts) = self.parts(place) else { return false };
        let roots = std::iter::once(&self.scope.directory).chain(&self.scope.writable);
        roots.map(|root| self.split(root)).any(|root| parts.starts_with(&root))
    }

    fn is_someone_elses(&self, parts: &[String]) -> bool {
        let is_home = match parts {
            [top, _, ..] => top == "home" || top == "Users",
            _ => false,
        } || parts.first().is_some_and(|top| top == "root");
        let own = [Some(self.scope.directory.as_str()), self.scope.home.as_deref()];
        is_home && !own.into_iter().flatten().any(|own| parts.starts_with(&self.split(own)))
    }

    /// The home directory, what is above it, and the places of the system where secrets lie.
    fn is_above_secrets(&self, parts: &[String]) -> bool {
        let home = self.scope.home.as_deref().map(|home| self.split(home));
        let directory = self.split(&self.scope.directory);
        let is_above_home =
            home.is_some_and(|home| home.starts_with(parts) && !parts.starts_with(&directory));
        is_above_home
            || matches!(parts, [top] if matches!(top.as_str(), "etc" | "proc" | "home" | "root" | "run"))
    }
}

fn is_everything(parts: &[String]) -> bool {
    parts.last().is_some_and(|last| matches!(last.as_str(), "*" | ".*" | "**" | ".[!.]*" | ".??*" | "?*"))
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
