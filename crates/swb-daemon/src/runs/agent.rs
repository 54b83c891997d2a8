//! Which agent works, and what its process is started with.
//!
//! The builtin agent is this program as `swb rpc`; others are commands of the configuration that speak the same. Each works
//! in its project's folder, behind a host, within walls where the kernel builds them. Of this installation it has one
//! folder of its own: its history, and a copy of the settings.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use swb_host::{Limits, Options};
use tokio::process::Child;

use crate::config::{Config, RunnerConfig};
use crate::containment;
use crate::daemon::remove;
use crate::paths::Paths;

/// The name of the agent that is part of this program.
pub(crate) const BUILTIN: &str = "builtin";

/// Where an agent works.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) session: String,
    /// The project's folder.
    pub(super) root: PathBuf,
    /// The project's folder on the message bus.
    pub(super) message_bus: PathBuf,
}

/// How the agents of this daemon are started.
#[derive(Debug)]
pub(super) struct Agents {
    paths: Paths,
    config: Config,
}

/// A process to be.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub(super) place: &'a Place,
    pub(super) agent: &'a str,
    pub(super) model: Option<&'a str>,
    pub(super) profile: Option<&'a str>,
    /// Somebody answers its questions.
    pub(super) asks: bool,
    /// It goes on with its history.
    pub(super) goes_on: bool,
    /// Variables that tell it where it is.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum BirthError {
    #[error(
        "there is no agent {0:?}; `builtin` and the names of [agents.NAME] in the configuration are known"
    )]
    Unknown(String),
    #[error("the agent could not be started: {0}")]
    Io(#[from] io::Error),
}

impl Agents {
    pub(super) fn new(paths: Paths, config: Config) -> Self {
        Agents { paths, config }
    }

    /// Runs that may work at once.
    pub(super) fn slots(&self) -> usize {
        self.config.runs.slots
    }

    /// Whether there is one of this name.
    pub(super) fn knows(&self, agent: &str) -> bool {
        agent == BUILTIN || self.config.agents.contains_key(agent)
    }

    /// Where the host of a session listens.
    pub(super) fn socket(&self, session: &str) -> PathBuf {
        self.paths.hosts().join(session).join("host.sock")
    }

    /// Starts a host with the agent in it, and returns its process.
    pub(super) async fn start(&self, birth: &Birth<'_>) -> Result<Child, BirthError> {
        let socket = self.socket(&birth.place.session);
        let folder = socket.parent().unwrap_or(Path::new("/")).to_owned();
        private_folder(&folder)?;
        // A host that ended without its last words leaves its name behind.
        remove(&socket)?;
        let own = self.paths.agent_folder(&birth.place.session);
        private_folder(&own)?;
        // There, so that it can be shown to an agent that does not see what is around it.
        std::fs::create_dir_all(birth.place.message_bus.join(&birth.place.session))?;
        let (command, walled) = self.command(birth, &own)?;
        let walls = walled.then(|| {
            let mut walls = containment::walls(&self.paths, Some(&birth.place.message_bus));
            walls.shown.push(own.clone());
            walls.leave_open(&birth.place.root);
            walls
        });
        let mut environment = birth.environment.clone();
        if let Some(home) = &self.paths.home {
            environment.push(("SWB_HOME".into(), home.into()));
        }
        let options = Options {
            socket,
            limits: Limits::default(),
            walls,
            folder: Some(birth.place.root.clone()),
            environment,
            command,
        };
        let log = std::fs::File::create(folder.join("host.log"))?;
        Ok(swb_host::client::start(&options, Path::new(swb_host::entry::this_program()), log).await?)
    }

    fn command(&self, birth: &Birth<'_>, own: &Path) -> Result<(Vec<OsString>, bool), BirthError> {
        if birth.agent != BUILTIN {
            let runner = self.config.agents.get(birth.agent);
            let RunnerConfig { command, containment } =
                runner.ok_or_else(|| BirthError::Unknown(birth.agent.to_owned()))?;
            let command = command.iter().map(OsString::from).collect();
            return Ok((command, containment != "off"));
        }
        let settings = own.join("settings.toml");
        copy(&self.paths.config_file(), &settings)?;
        let mut command: Vec<OsString> = vec![swb_host::entry::this_program().into(), "rpc".into()];
        command.extend(["--settings".into(), settings.into(), "--sessions".into(), own.into()]);
        let flag = if birth.goes_on { "--continue" } else { "--session" };
        command.extend([flag.into(), birth.place.session.clone().into()]);
        for (flag, value) in [("--model", birth.model), ("--profile", birth.profile)] {
            command.extend(value.iter().flat_map(|value| [flag.into(), (*value).into()]));
        }
        command.extend(birth.asks.then(|| "--asks".into()));
        Ok((command, self.config.runs.containment != "off"))
    }

    /// Whether the builtin agent has a history in this session.
    pub(super) fn has_history(&self, session: &str) -> bool {
        self.paths.agent_folder(session).join(format!("{session}.jsonl")).exists()
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Copies a file that may not be there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::write(to, ""),
        Err(error) => Err(error),
    }
}
