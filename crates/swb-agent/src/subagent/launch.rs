//! How another agent is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::gate::Mode;
use crate::gate::control::SUBAGENTS;

/// The program that is an agent like this one, and how this one was started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// What all agents of this tree are started with: `rpc`, and whatever says where things lie.
    pub arguments: Vec<OsString>,
}

/// What is different for each.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub(super) parent: &'a str,
    pub(super) depth: usize,
    pub(super) model: &'a str,
    pub(super) mode: Mode,
    pub(super) asks: bool,
    /// Its place below the session that the daemon knows, if a daemon judges calls.
    pub(super) below: Option<String>,
    pub(super) workspace: &'a Path,
}

impl Launch {
    /// The command that starts one, with three pipes.
    pub(super) fn command(&self, birth: &Birth<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg0("swb")
            .args(&self.arguments)
            .args(["--parent", birth.parent, "--depth", &birth.depth.to_string()])
            .args(["--model", birth.model, "--tool-mode", birth.mode.name()])
            .current_dir(birth.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if birth.asks {
            command.arg("--asks");
        }
        if let Some(below) = &birth.below {
            command.env(SUBAGENTS, below);
        }
        command
    }
}
