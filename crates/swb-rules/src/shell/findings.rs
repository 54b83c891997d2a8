//! Everything there is to say against a command line in a place, each thing with its kind and its risk.
//!
//! Mechanism: the whole line is gone through once and nothing is decided here. `judge` makes a verdict of the list for a
//! mode; policy rules look at the kinds. So a reason names all that is wrong, not only the first thing met.
//! Invariants: what was not understood is always found; nothing here looks at the disk, so a symbolic link is not seen
//! (containment is there for that, and those who can look).

use super::concern::Concern;
use super::invocation::{Command, Invocation, Nature, Risk};
use super::judge::Scope;
use super::place::Place;
use super::protected::{Secrecy, is_common, is_device, is_socket, secrecy, sensitive_write};
use super::written::{deletes, runs_what_it_writes};

/// One thing that speaks against a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which kind of thing.
    pub concern: Concern,
    /// How bad it could be.
    pub risk: Risk,
    /// What, in words for a person and a model.
    pub text: String,
    pub(super) weight: Weight,
}

/// What a finding means where no rules say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Worth knowing; only rules look at it.
    Note,
    Ask,
    Deny,
}

/// What would happen to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It is read, or what is below it.
    Read,
    /// It is created, changed or removed.
    Write,
}

/// All that speaks against a command line.
#[must_use]
pub fn findings(command: &Command, scope: &Scope) -> Vec<Finding> {
    let mut findings = Findings { scope, list: Vec::new() };
    for unclear in &command.unclear {
        findings.ask(Concern::Unclear, Risk::High, unclear.to_string());
    }
    for reason in &command.reasons {
        findings.ask(reason.concern, reason.risk, reason.text.clone());
    }
    if !scope.directory.starts_with('/') {
        findings.ask(Concern::Unclear, Risk::High, "the working directory is not known".to_owned());
    }
    for invocation in &command.invocations {
        findings.invocation(invocation);
    }
    if let Some(text) = runs_what_it_writes(command, scope) {
        findings.note(Concern::BringsCode, Risk::Medium, text);
    }
    findings.list
}

/// All that speaks against touching one file, by its absolute path or relative to the working directory.
#[must_use]
pub fn findings_of_path(path: &str, touch: Touch, scope: &Scope) -> Vec<Finding> {
    let mut findings = Findings { scope, list: Vec::new() };
    let place = Place::of_text(path, &Place::start());
    match touch {
        Touch::Read => findings.read("it", &place),
        Touch::Write => findings.write("it", false, &place),
    }
    findings.list
}

/// Whether a file lies outside every workspace and is meant to be read by all: the system, toolchains.
#[must_use]
pub fn is_common_path(path: &str, scope: &Scope) -> bool {
    let findings = Findings { scope, list: Vec::new() };
    findings.is_common(&Place::of_text(path, &Place::start()))
}

struct Findings<'a> {
    scope: &'a Scope,
    list: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, weight: Weight, concern: Concern, risk: Risk, text: String) {
        self.list.push(Finding { concern, risk, text, weight });
    }

    fn note(&mut self, concern: Concern, risk: Risk, text: String) {
        self.add(Weight::Note, concern, risk, text);
    }

    fn ask(&mut self, concern: Concern, risk: Risk, text: String) {
        self.add(Weight::Ask, concern, risk, text);
    }

    fn invocation(&mut self, invocation: &Invocation) {
        let program = &invocation.program;
        for place in &invocation.reads {
            self.read(program, place);
        }
        for place in &invocation.writes {
            self.write(program, invocation.removes_trees, place);
        }
        if deletes(invocation) {
            self.note(Concern::Deletes, Risk::Medium, format!("`{program}` deletes"));
        }
        if let Some(file) = &invocation.file {
            if !self.is_inside(file) {
                let text = format!("runs `{file}`, which is not in the working directory");
                self.ask(Concern::Leaves, Risk::High, text);
            }
            // A device or a descriptor is input, not a script that someone could look at.
            if self.parts(file).is_some_and(|parts| is_device(&parts)) {
                self.ask(Concern::Unclear, Risk::High, format!("runs whatever `{file}` gives it"));
            }
        }
        let Some(place) = invocation.places.iter().find(|place| !self.is_inside(place)) else { return };
        let text = format!("`{program}` would run in `{place}`, which is not in the working directory");
        match invocation.nature {
            Nature::Runs | Nature::Writes => self.ask(Concern::Leaves, Risk::Medium, text),
            Nature::Reads if !self.is_common(place) => self.note(Concern::Leaves, Risk::Low, text),
            _ => {}
        }
    }

    fn read(&mut self, program: &str, place: &Place) {
        let Some(parts) = self.parts(place) else {
            return self.ask(
                Concern::Unclear,
                Risk::Medium,
                format!("`{program}` would read `{place}`, which is known only when it runs"),
            );
        };
        if is_socket(&parts) {
            return self.ask(Concern::Network, Risk::High, format!("`{place}` is a network connection"));
        }
        match secrecy(&parts, place.pattern) {
            Secrecy::Secret => {
                self.add(Weight::Deny, Concern::Secrets, Risk::High, format!("`{place}` holds secrets"));
            }
            Secrecy::Perhaps => {
                self.ask(
                    Concern::Exposes,
                    Risk::High,
                    format!("`{place}` may match files that hold secrets"),
                );
            }
            Secrecy::Open => {}
        }
        if self.is_someone_elses(&parts) {
            self.ask(Concern::Foreign, Risk::High, format!("`{place}` belongs to another user"));
        }
        // Programs that only show names and sizes may look at the folders above secrets.
        const LISTERS: &[&str] = &[
            "ls", "find", "du", "df", "stat", "tree", "readlink", "realpath", "file", "eza", "exa", "fd",
            "fdfind",
        ];
        let fixed = parts.iter().position(|part| part.contains(['*', '?', '['])).unwrap_or(parts.len());
        if !LISTERS.contains(&program) && self.is_above_secrets(&parts[..fixed]) {
            self.ask(Concern::Exposes, Risk::Medium, format!("`{place}` takes in folders that hold secrets"));
        }
        if !self.is_inside(place) && !self.is_common(place) {
            let text = format!("`{program}` would read `{place}`, which is not in the working directory");
            self.note(Concern::Leaves, Risk::Low, text);
        }
    }

    fn write(&mut self, program: &str, removes_trees: bool, place: &Place) {
        let verb = if removes_trees { "remove" } else { "write" };
        let Some(parts) = self.parts(place) else {
            return self.ask(
                Concern::Unclear,
                Risk::Medium,
                format!("`{program}` would {verb} `{place}`, which is known only when it runs"),
            );
        };
        if is_device(&parts) {
            return;
        }
        let directory = split(&self.scope.directory);
        if let Some(sensitive) = sensitive_write(&parts)
            // A rule about the system does not hold for a project that lies there.
            && (!parts.starts_with(&directory) || sensitive_write(&directory).is_none())
        {
            self.ask(sensitive.concern, sensitive.risk, format!("`{place}`: {}", sensitive.reason));
        }
        if secrecy(&parts, place.pattern) != Secrecy::Open {
            self.ask(
                Concern::Secrets,
                Risk::High,
                format!("`{program}` would change or move `{place}`, which may hold secrets"),
            );
        }
        if self.is_someone_elses(&parts) {
            self.ask(Concern::Foreign, Risk::High, format!("`{place}` belongs to another user"));
        }
        let is_all_of_it = parts.len() <= directory.len()
            || parts[..parts.len() - 1] == directory[..] && is_everything(&parts);
        if !self.is_inside(place) {
            let risk = match (removes_trees, parts.len() <= 2 || directory.starts_with(&parts)) {
                (true, true) => Risk::Critical,
                (true, false) => Risk::High,
                (false, _) => Risk::Medium,
            };
            self.ask(
                Concern::Leaves,
                risk,
                format!("`{program}` would {verb} `{place}`, which is not in the working directory"),
            );
        } else if removes_trees && is_all_of_it {
            let text = format!("`{program}` would remove all of the working directory");
            self.ask(Concern::Destroys, Risk::High, text);
        }
    }

    fn parts(&self, place: &Place) -> Option<Vec<String>> {
        place.absolute(&self.scope.directory, self.scope.home.as_deref())
    }

    fn is_inside(&self, place: &Place) -> bool {
        let Some(parts) = self.parts(place) else { return false };
        let roots = std::iter::once(&self.scope.directory).chain(&self.scope.writable);
        roots.map(|root| split(root)).any(|root| parts.starts_with(&root))
    }

    fn is_common(&self, place: &Place) -> bool {
        self.parts(place).is_some_and(|parts| is_common(&parts))
    }

    fn is_someone_elses(&self, parts: &[String]) -> bool {
        let is_home = match parts {
            [top, _, ..] => top == "home" || top == "Users",
            _ => false,
        } || parts.first().is_some_and(|top| top == "root");
        let own = [Some(self.scope.directory.as_str()), self.scope.home.as_deref()];
        is_home && !own.into_iter().flatten().any(|own| parts.starts_with(&split(own)))
    }

    /// The home directory, what is above it, and the places of the system where secrets lie.
    fn is_above_secrets(&self, parts: &[String]) -> bool {
        let home = self.scope.home.as_deref().map(split);
        let directory = split(&self.scope.directory);
        let is_above_home =
            home.is_some_and(|home| home.starts_with(parts) && !parts.starts_with(&directory));
        is_above_home
            || matches!(parts, [top] if matches!(top.as_str(), "etc" | "proc" | "home" | "root" | "run"))
    }
}

fn split(path: &str) -> Vec<String> {
    Place::of_text(path, &Place::start()).absolute("/", None).unwrap_or_default()
}

fn is_everything(parts: &[String]) -> bool {
    parts.last().is_some_and(|last| matches!(last.as_str(), "*" | ".*" | "**" | ".[!.]*" | ".??*" | "?*"))
}
