//! The real binary in a world of its own.

use std::ffi::OsStr;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::world::World;

/// How a command ended and what it printed.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    pub(crate) fn from_output(output: &Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output as JSON lines.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// The same, if it worked.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl World {
    /// The binary with this world's environment and nothing else of it but `PATH`.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.binary().expect("World::with_binary says which"));
        command.env_clear().env("SWB_HOME", self.home()).env("HOME", self.home()).current_dir(self.folder());
        // Tests run side by side: any port will do.
        command.env("SWB_HTTP_PORT", "0");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(self.environment().iter().map(|(name, value)| (name, value)));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub fn swb<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        Ran::from_output(&self.command(arguments).output().expect("the binary can be run"))
    }

    /// Starts the binary and leaves it running.
    #[track_caller]
    pub fn spawn<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary can be run")
    }

    /// The field of `swb status --json`; null if the daemon does not answer.
    pub fn status(&self, field: &str) -> Value {
        serde_json::from_str::<Value>(&self.swb(["status", "--json"]).stdout).unwrap_or_default()[field]
            .take()
    }

    /// The daemon's process.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        let pid = self.status("pid").as_i64().expect("the daemon is running");
        i32::try_from(pid).expect("a pid is small")
    }
}
