//! The seam that every tool call passes: may this be done?
//!
//! `Gate::decide` is pure: a request (who, what, with which arguments) and the local [`Mode`] in, a `Decision` with
//! a reason out. Command lines are judged by `shell`, paths by `paths`. Rules of the user's own and of the project speak
//! before the mode ([`local_rules`]). `ask` takes a decision that needs a person to the parent, with a deadline; nobody to
//! ask means denied (`permit`). Where the parent has named a daemon, that decides instead (`house`; [`control`] is what the
//! parent says); the callers only know the question.

pub(crate) mod ask;
pub mod control;
mod foreign;
pub(crate) mod house;
pub mod local_rules;
pub(crate) mod paths;
pub(crate) mod permit;
mod shell;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use foreign::Foreign;
use house::House;
use local_rules::LocalRules;
use serde_json::Value;
pub(crate) use swb_rules::shell::Risk;

/// What tools may do while no policy says more. A later one allows whatever an earlier one allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// Look, but change nothing.
    ReadOnly,
    /// Read anything but secrets, write and run inside the working directory, ask for the rest.
    #[default]
    Workspace,
    /// Anything but what may harm the machine or Switchboard itself, which is asked for.
    Full,
}

impl Mode {
    const NAMES: [(&'static str, Mode); 3] =
        [("read-only", Mode::ReadOnly), ("workspace", Mode::Workspace), ("full", Mode::Full)];

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, mode)| *mode == self).map_or("workspace", |(name, _)| name)
    }
}

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The session, which is the agent's name everywhere.
    pub(crate) session_id: &'a str,
    /// The names of the subagents that lead from the root to the one that acts; none if that is the root itself.
    pub(crate) agents: &'a [String],
    /// The folder it works in.
    pub(crate) workspace: &'a Path,
    /// The folder it is in just now.
    pub(crate) folder: &'a Path,
    /// What it may do at most, however much the gate lets others do.
    pub(crate) mode: Mode,
    /// Its name for the call, if it is one of a model's.
    pub(crate) call_id: Option<&'a str>,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) struct Action<'a> {
    /// The tool.
    pub(crate) tool: &'a str,
    /// What it would do, as far as its arguments tell.
    pub(crate) effect: Effect,
}

/// What a tool call would do to the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Reads below this path, which is resolved.
    Read(PathBuf),
    /// Writes this file; the path is resolved.
    Write(PathBuf),
    /// Runs a command line in this folder.
    Run { command: String, folder: PathBuf },
    /// Reads messages.
    Listen,
    /// Posts a message.
    Post,
    /// Asks a person.
    Consult,
    /// Tells whoever looks on something.
    Tell,
    /// Has another agent do something, which is judged when that does it.
    Delegate,
    /// Uses a tool that was lent, which whoever has lent it judges.
    Borrow,
    /// Calls a tool of an MCP server.
    Foreign(Foreign),
}

/// What comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    /// Somebody has to agree.
    Ask {
        risk: Risk,
        reason: String,
    },
    /// No, for a reason the model can read.
    Deny {
        reason: String,
    },
}

/// Decides. Shared by everything that runs tools.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    mode: Mutex<Mode>,
    home: Option<String>,
    /// The daemon's gate, if there is one.
    pub(crate) house: Option<House>,
    /// Rules that speak before the mode, where there is no daemon.
    rules: Option<Arc<LocalRules>>,
}

impl Gate {
    pub(crate) fn new(mode: Mode) -> Self {
        let home = std::env::var("HOME").ok().filter(|home| !home.is_empty());
        Gate { mode: Mutex::new(mode), home, house: None, rules: None }
    }

    /// The same, with a daemon that decides.
    pub(crate) fn asking(self, house: Option<House>) -> Self {
        Gate { house, ..self }
    }

    /// The same, with rules that speak before the mode.
    pub(crate) fn ruled(self, rules: Option<LocalRules>) -> Self {
        Gate { rules: rules.map(Arc::new), ..self }
    }

    pub(crate) fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// May the subject do this with these arguments?
    pub(crate) fn decide(&self, subject: Subject<'_>, action: &Action<'_>, _arguments: &Value) -> Decision {
        let mode = self.mode().min(subject.mode);
        if let Effect::Run { command, folder } = &action.effect {
            let room = shell::Room { workspace: subject.workspace, home: self.home.as_deref() };
            return shell::decide(mode, room, command, folder);
        }
        if let Effect::Foreign(call) = &action.effect {
            return foreign::decide(mode, call);
        }
        match mode {
            Mode::Full => anything(action),
            Mode::ReadOnly => read_only(action),
            Mode::Workspace => in_workspace(subject.workspace, action),
        }
    }
}

fn anything(action: &Action<'_>) -> Decision {
    match &action.effect {
        Effect::Write(path) if paths::is_ours(path) => {
            Decision::Ask { risk: Risk::High, reason: format!("{} is Switchboard's own", path.display()) }
        }
        _ => Decision::Allow,
    }
}

fn read_only(action: &Action<'_>) -> Decision {
    let deny = |what: &str| Decision::Deny { reason: format!("{what} is not allowed in read-only mode") };
    match &action.effect {
        Effect::Read(path) => read(path),
        Effect::Listen | Effect::Consult | Effect::Tell | Effect::Delegate | Effect::Borrow => {
            Decision::Allow
        }
        Effect::Run { .. } => deny("running this command"),
        Effect::Write(_) => deny("writing a file"),
        Effect::Post => deny("posting a message"),
        Effect::Foreign(call) => foreign::decide(Mode::ReadOnly, call),
    }
}

fn in_workspace(workspace: &Path, action: &Action<'_>) -> Decision {
    let ask = |risk, reason: String| Decision::Ask { risk, reason };
    match &action.effect {
        Effect::Read(path) => read(path),
        Effect::Listen
        | Effect::Post
        | Effect::Consult
        | Effect::Tell
        | Effect::Delegate
        | Effect::Borrow => Decision::Allow,
        Effect::Write(path) if !path.starts_with(workspace) => {
            ask(Risk::High, format!("{} is outside the working directory", path.display()))
        }
        Effect::Write(path) if paths::is_secret(path) || paths::steers_programs(path) => {
            ask(Risk::High, format!("{} changes what programs do or know", path.display()))
        }
        Effect::Write(_) => Decision::Allow,
        Effect::Run { .. } => ask(Risk::High, "it runs a program".to_owned()),
        Effect::Foreign(call) => foreign::decide(Mode::Workspace, call),
    }
}

fn read(path: &Path) -> Decision {
    if paths::is_secret(path) {
        return Decision::Deny { reason: format!("{} may hold secrets", path.display()) };
    }
    Decision::Allow
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(mode: Mode, effect: Effect) -> Decision {
        let subject = Subject {
            session_id: "s",
            agents: &[],
            workspace: Path::new("/w"),
            folder: Path::new("/w"),
            mode: Mode::Full,
            call_id: None,
        };
        Gate::new(mode).decide(subject, &Action { tool: "t", effect }, &Value::Null)
    }

    fn run(command: &str) -> Effect {
        Effect::Run { command: command.to_owned(), folder: "/w/x".into() }
    }

    #[test]
    fn the_workspace_is_open_and_the_rest_is_asked_for() {
        let mode = Mode::Workspace;
        assert_eq!(decide(mode, Effect::Write("/w/src/a.rs".into())), Decision::Allow);
        assert_eq!(decide(mode, Effect::Read("/usr/include/stdio.h".into())), Decision::Allow);
        assert_eq!(decide(mode, Effect::Post), Decision::Allow);
        assert_eq!(decide(mode, run("cargo test")), Decision::Allow);
        for asked in [
            Effect::Write("/etc/hosts".into()),
            Effect::Write("/ww/a".into()),
            Effect::Write("/w/.switchboard/config.toml".into()),
            Effect::Write("/w/.git/hooks/pre-commit".into()),
            run("ls; rm -r x"),
            Effect::Run { command: "make".into(), folder: "/elsewhere".into() },
        ] {
            assert!(matches!(decide(mode, asked.clone()), Decision::Ask { .. }), "{asked:?}");
        }
    }

    #[test]
    fn secrets_are_not_read_unless_everything_is_allowed() {
        for path in ["/home/a/.ssh/id_ed25519", "/w/.env", "/home/a/.aws/credentials", "/proc/1/environ"] {
            assert!(
                matches!(decide(Mode::Workspace, Effect::Read(path.into())), Decision::Deny { .. }),
                "{path}"
            );
            assert_eq!(decide(Mode::Full, Effect::Read(path.into())), Decision::Allow);
        }
    }

    #[test]
    fn our_own_files_are_asked_about_in_every_mode() {
        for mode in [Mode::Workspace, Mode::Full] {
            let decision = decide(mode, Effect::Write("/w/.switchboard/policy/a.cedar".into()));
            assert!(matches!(decision, Decision::Ask { risk: Risk::High, .. }), "{mode:?}");
        }
        assert_eq!(decide(Mode::Full, Effect::Write("/w/.git/hooks/pre-commit".into())), Decision::Allow);
    }

    #[test]
    fn a_subject_may_have_less_than_the_gate_gives() {
        let write = Action { tool: "t", effect: Effect::Write("/w/a".into()) };
        let decide = |gate, mode| {
            let subject = Subject {
                session_id: "s",
                agents: &[],
                workspace: Path::new("/w"),
                folder: Path::new("/w"),
                mode,
                call_id: None,
            };
            Gate::new(gate).decide(subject, &write, &Value::Null)
        };
        assert!(matches!(decide(Mode::Full, Mode::ReadOnly), Decision::Deny { .. }));
        assert!(matches!(decide(Mode::ReadOnly, Mode::Full), Decision::Deny { .. }));
        assert_eq!(decide(Mode::Full, Mode::Workspace), Decision::Allow);
    }

    #[test]
    fn read_only_changes_nothing() {
        for effect in [Effect::Write("/w/a".into()), run("make"), Effect::Post] {
            assert!(matches!(decide(Mode::ReadOnly, effect), Decision::Deny { .. }));
        }
        for effect in [run("cat a"), Effect::Tell] {
            assert_eq!(decide(Mode::ReadOnly, effect), Decision::Allow);
        }
    }

    #[test]
    fn modes_have_names() {
        for (name, mode) in Mode::NAMES {
            assert_eq!((Mode::from_name(name), mode.name()), (Some(mode), name));
        }
        assert_eq!(Mode::from_name("root"), None);
    }
}
