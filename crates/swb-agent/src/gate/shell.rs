//! What a command line would do, and whether that may be done.
//!
//! The judge of `swb-rules` reads the line without looking at the disk. Here its verdict is completed by what only a look
//! can tell (where links lead) and by what this gate holds of its own: nothing is deleted unasked, and a line that runs
//! elsewhere may only read. A verdict becomes a [`Decision`] with the same words.

use std::path::Path;

use swb_rules::shell::{self, Command, Invocation, Nature, Place, Risk, Scope, Verdict};

use super::{Decision, Mode, paths};

/// Where command lines are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room<'a> {
    /// The working directory of the agent.
    pub(super) workspace: &'a Path,
    /// The home directory of the user, if it is known.
    pub(super) home: Option<&'a str>,
}

/// May this command line run in this folder?
pub(super) fn decide(mode: Mode, room: Room<'_>, command: &str, folder: &Path) -> Decision {
    let (Some(directory), Some(root)) = (folder.to_str(), room.workspace.to_str()) else {
        // A name that is not text cannot be compared with what stands in the line.
        return match mode {
            Mode::Full => Decision::Allow,
            Mode::ReadOnly => deny("the name of the folder is not UTF-8".to_owned()),
            Mode::Workspace => ask(Risk::High, "the name of the folder is not UTF-8".to_owned()),
        };
    };
    let command = shell::parse(command);
    let scope = |mode| Scope {
        mode,
        directory: directory.to_owned(),
        home: room.home.map(str::to_owned),
        writable: vec![root.to_owned()],
    };
    match mode {
        Mode::Full => plain(shell::judge(&command, &scope(shell::Mode::Full))),
        Mode::ReadOnly => match shell::judge(&command, &scope(shell::Mode::ReadOnly)) {
            Verdict::Allow => secrets_behind_links(&command, &scope(shell::Mode::ReadOnly)),
            // Somebody who wants only looking is not asked whether it may be more.
            Verdict::Ask { reason, .. } | Verdict::Deny { reason } => {
                deny(format!("{reason} (the mode is read-only)"))
            }
        },
        Mode::Workspace if !folder.starts_with(room.workspace) => elsewhere(&command, &scope, folder),
        Mode::Workspace => {
            let scope = scope(shell::Mode::Workspace);
            match shell::judge(&command, &scope) {
                Verdict::Allow => in_workspace(&command, &scope, room),
                verdict => plain(verdict),
            }
        }
    }
}

fn elsewhere(command: &Command, scope: &dyn Fn(shell::Mode) -> Scope, folder: &Path) -> Decision {
    let scope = scope(shell::Mode::ReadOnly);
    match shell::judge(command, &scope) {
        Verdict::Allow => secrets_behind_links(command, &scope),
        _ => ask(Risk::High, format!("it would run in {}, outside the working directory", folder.display())),
    }
}

/// What the judge lets pass, looked at again with the disk in view.
fn in_workspace(command: &Command, scope: &Scope, room: Room<'_>) -> Decision {
    let refused = secrets_behind_links(command, scope);
    if refused != Decision::Allow {
        return refused;
    }
    for invocation in &command.invocations {
        if let Some(what) = deletes(invocation) {
            return ask(Risk::Medium, format!("`{what}` deletes files"));
        }
        let acts_where_it_is = matches!(invocation.nature, Nature::Runs | Nature::Writes);
        let there = invocation.places.iter().filter(|_| acts_where_it_is);
        for place in invocation.writes.iter().chain(&invocation.file).chain(there) {
            let Some(real) = real(place, scope).filter(|_| !is_device(place, scope)) else { continue };
            if !real.starts_with(room.workspace) {
                let reason = format!("`{place}` leads to {}, outside the working directory", real.display());
                return ask(Risk::High, reason);
            }
            if invocation.writes.contains(place) && (paths::is_secret(&real) || paths::steers_programs(&real))
            {
                return ask(Risk::High, format!("{} changes what programs do or know", real.display()));
            }
        }
    }
    if command.flags.destructive {
        return ask(Risk::Medium, "it destroys something".to_owned());
    }
    Decision::Allow
}

/// A secret is a secret by whatever name it is read.
fn secrets_behind_links(command: &Command, scope: &Scope) -> Decision {
    let reads = command.invocations.iter().flat_map(|invocation| &invocation.reads);
    match reads.filter_map(|place| real(place, scope)).find(|real| paths::is_secret(real)) {
        Some(secret) => deny(format!("{} may hold secrets", secret.display())),
        None => Decision::Allow,
    }
}

fn real(place: &Place, scope: &Scope) -> Option<std::path::PathBuf> {
    let path = place.path(&scope.directory, scope.home.as_deref())?;
    Some(paths::resolve(Path::new("/"), &path))
}

/// The judge knows which devices are harmless; where `/dev/stdout` leads to says nothing.
fn is_device(place: &Place, scope: &Scope) -> bool {
    place.path(&scope.directory, None).is_some_and(|path| path.starts_with("/dev/"))
}

/// The program that deletes, if this is one.
fn deletes(invocation: &Invocation) -> Option<String> {
    let program = invocation.program.as_str();
    match program {
        "rm" | "rmdir" | "unlink" => Some(program.to_owned()),
        "git" if invocation.arguments.iter().any(|argument| argument.text == "rm") => {
            Some("git rm".to_owned())
        }
        _ => None,
    }
}

fn plain(verdict: Verdict) -> Decision {
    match verdict {
        Verdict::Allow => Decision::Allow,
        Verdict::Ask { reason, risk } => ask(risk, reason),
        Verdict::Deny { reason } => deny(reason),
    }
}

fn ask(risk: Risk, reason: String) -> Decision {
    Decision::Ask { risk, reason }
}

fn deny(reason: String) -> Decision {
    Decision::Deny { reason }
}

#[cfg(test)]
mod tests;
