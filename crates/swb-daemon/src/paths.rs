//! Where things lie. Every path of Switchboard is made here and nowhere else.
//!
//! `SWB_HOME` puts everything under one folder; otherwise the XDG folders of the user are used. A socket's path must fit
//! into 108 bytes; if the runtime folder is too deep for that, sockets go to a short private folder whose name is derived
//! from the long one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::config::Config;

/// The longest path of a socket, and room for the longest name in the folder (`hosts/sess_<ULID>/host.sock`).
const SOCKET_PATH_BYTES: usize = 107;
const SOCKET_NAME_BYTES: usize = 48;

/// The folders of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The one folder that everything is under, if it is one.
    pub home: Option<PathBuf>,
    /// `config.toml` and policies.
    pub config: PathBuf,
    /// Audit, ledger, sessions, recordings, logs.
    pub state: PathBuf,
    /// Message buses.
    pub data: PathBuf,
    /// Locks and descriptions of what runs now.
    pub runtime: PathBuf,
    /// Sockets; normally the runtime folder.
    pub sockets: PathBuf,
}

/// Neither `SWB_HOME` nor `HOME` is set.
#[derive(Debug, thiserror::Error)]
#[error("there is no home folder: set SWB_HOME or HOME")]
pub struct NoHome;

impl Paths {
    /// The folders that the environment of this process asks for.
    pub fn from_env() -> Result<Self, NoHome> {
        Self::resolve(|name| std::env::var_os(name), rustix::process::geteuid().as_raw())
    }

    /// Everything under one folder, as with `SWB_HOME`.
    pub fn under(home: &Path) -> Self {
        let paths =
            Self::with_sockets(home.join("config"), home.join("state"), home.join("data"), home.join("run"));
        Paths { home: Some(home.to_owned()), ..paths }
    }

    /// Lets a process started with `command` find the same folders, wherever it is started from.
    pub fn hand_on(&self, command: &mut Command) {
        if let Some(home) = &self.home {
            command.env("SWB_HOME", home);
        }
    }

    fn resolve(env: impl Fn(&str) -> Option<OsString>, uid: u32) -> Result<Self, NoHome> {
        let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(home) = env("SWB_HOME").filter(|home| !home.is_empty()) {
            // A relative SWB_HOME would move with whoever runs the command.
            let home = std::path::absolute(PathBuf::from(home)).map_err(|_| NoHome)?;
            return Ok(Self::under(&home));
        }
        let home = folder("HOME").ok_or(NoHome)?;
        let xdg = |name: &str, fallback: &str| {
            folder(name).unwrap_or_else(|| home.join(fallback)).join("switchboard")
        };
        let runtime = match folder("XDG_RUNTIME_DIR") {
            Some(runtime) => runtime.join("switchboard"),
            None => folder("TMPDIR").unwrap_or_else(|| "/tmp".into()).join(format!("switchboard-{uid}")),
        };
        let config = xdg("XDG_CONFIG_HOME", ".config");
        let state = xdg("XDG_STATE_HOME", ".local/state");
        Ok(Self::with_sockets(config, state, xdg("XDG_DATA_HOME", ".local/share"), runtime))
    }

    fn with_sockets(config: PathBuf, state: PathBuf, data: PathBuf, runtime: PathBuf) -> Self {
        let fits = runtime.as_os_str().len() + 1 + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES;
        let sockets = if fits {
            runtime.clone()
        } else {
            let uid = rustix::process::geteuid().as_raw();
            PathBuf::from(format!(
                "/tmp/swb-{uid}-{:016x}",
                fingerprint(runtime.as_os_str().as_encoded_bytes())
            ))
        };
        Paths { home: None, config, state, data, runtime, sockets }
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The configuration of a profile: `config.toml`, `system.md`, `mcp.json`.
    pub fn profile(&self, name: &str) -> PathBuf {
        self.config.join("profiles").join(name)
    }

    /// The folder of the user's rules.
    pub fn policy(&self) -> PathBuf {
        self.config.join("policy")
    }

    /// Rules that were given to sessions.
    pub fn session_rules(&self) -> PathBuf {
        self.state.join("session-rules")
    }

    /// What the user has trusted of projects.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The user's own rules of redaction.
    pub fn redaction_file(&self) -> PathBuf {
        self.config.join("redaction.toml")
    }

    /// The control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.sockets.join("control.sock")
    }

    /// The folder through which agents in cells reach the control socket.
    pub fn door(&self) -> PathBuf {
        self.sockets.join("door")
    }

    /// Held by the running daemon.
    pub fn daemon_lock(&self) -> PathBuf {
        self.runtime.join("daemon.lock")
    }

    /// What the running daemon says of itself.
    pub fn description(&self) -> PathBuf {
        self.runtime.join("control.meta.json")
    }

    /// Questions that people answer, and what their answers have left behind.
    pub fn approvals_file(&self) -> PathBuf {
        self.state.join("approvals.jsonl")
    }

    /// How far the messages to agents came.
    pub fn inboxes_file(&self) -> PathBuf {
        self.state.join("inboxes.jsonl")
    }

    /// Which session each thread of an AG-UI client is.
    pub fn threads_file(&self) -> PathBuf {
        self.state.join("threads.jsonl")
    }

    /// The numbers of events.
    pub fn sequence_file(&self) -> PathBuf {
        self.state.join("sequence")
    }

    /// The folder that the projects of message buses lie in.
    pub fn message_root(&self, config: &Config) -> PathBuf {
        match config.messages.root.as_str() {
            "" => self.data.join("projects"),
            root => PathBuf::from(root),
        }
    }

    /// The histories of agents; those of a profile lie apart.
    pub fn sessions(&self, profile: Option<&str>) -> PathBuf {
        match profile {
            Some(profile) => self.state.join("profiles").join(profile).join("sessions"),
            None => self.state.join("sessions"),
        }
    }

    /// What an agent of the daemon has of this installation: its history and its settings.
    pub fn agent_folder(&self, session: &str) -> PathBuf {
        self.sessions(None).join(session)
    }

    /// What runs have told, a file for each session.
    pub fn transcripts(&self) -> PathBuf {
        self.state.join("transcripts")
    }

    /// The folders of hosts, named after their sessions.
    pub fn hosts(&self) -> PathBuf {
        self.sockets.join("hosts")
    }

    /// The key that arguments of recorded calls are hashed with.
    pub fn argument_key(&self) -> PathBuf {
        self.state.join("arguments.key")
    }

    /// The record of what happened.
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// The index of the record.
    pub fn ledger(&self) -> PathBuf {
        self.state.join("ledger.db")
    }

    /// The tokens of those who knock over HTTP.
    pub fn tokens(&self) -> PathBuf {
        self.state.join("tokens")
    }

    /// The daemon's diagnostics.
    pub fn log_file(&self) -> PathBuf {
        self.state.join("log").join("daemon.log")
    }
}

/// A stable short name for a long path (FNV-1a): the same in every version, unlike the hash of a hash map.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(env: &[(&str, &str)]) -> Result<Paths, NoHome> {
        Paths::resolve(|name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()), 1000)
    }

    #[test]
    fn swb_home_holds_everything() {
        let paths =
            resolve(&[("SWB_HOME", "/x"), ("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/h")]).unwrap();
        for path in [&paths.config, &paths.state, &paths.data, &paths.runtime, &paths.sockets] {
            assert!(path.starts_with("/x"), "{path:?}");
        }
    }

    #[test]
    fn without_it_the_folders_of_the_user_are_used() {
        let paths =
            resolve(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/1"), ("XDG_STATE_HOME", "relative")])
                .unwrap();
        assert_eq!(paths.control_socket(), Path::new("/run/user/1/switchboard/control.sock"));
        assert_eq!(paths.config_file(), Path::new("/h/.config/switchboard/config.toml"));
        assert_eq!(
            paths.state,
            Path::new("/h/.local/state/switchboard"),
            "a relative XDG path is to be ignored"
        );
        assert_eq!(resolve(&[("HOME", "/h")]).unwrap().runtime, Path::new("/tmp/switchboard-1000"));
        assert!(resolve(&[]).is_err());
    }

    #[test]
    fn a_deep_home_still_has_sockets_that_fit() {
        let deep = format!("/{}", "deep/".repeat(40));
        let paths = resolve(&[("SWB_HOME", &deep)]).unwrap();
        assert!(paths.control_socket().as_os_str().len() <= SOCKET_PATH_BYTES);
        assert_ne!(paths.sockets, resolve(&[("SWB_HOME", &format!("{deep}er"))]).unwrap().sockets);
        assert!(paths.daemon_lock().starts_with(&deep), "only sockets move");
    }
}
