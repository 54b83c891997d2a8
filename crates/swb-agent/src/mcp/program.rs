//! A server that we start: a process group of its own, with pipes to it.
//!
//! It inherits a short list of harmless variables and gets what its settings say; our keys are not among them. What it
//! prints to stderr goes nowhere but into a short memory, for the case that it has to be explained why it ended.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swb_host::Group;
use swb_rules::redact::redact;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinHandle;

use super::fault::Fault;
use super::pipes::{Heard, Told};

/// Variables that programs need to find their way, or are found by, and that hold no secrets.
const INHERITED: [&str; 23] = [
    swb_host::mark::VARIABLE,
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];
/// How much of stderr is remembered.
const REMEMBERED_BYTES: usize = 2 * 1024;
/// How long the end of a process is waited for that has closed its pipes.
const FAREWELL: Duration = Duration::from_millis(300);
const DRAIN: Duration = Duration::from_millis(100);

/// A program, with everything filled in.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
}

/// A running server. Dropped, its whole group is killed.
#[derive(Debug)]
pub(super) struct Program {
    group: Group,
    stderr: Stderr,
}

impl Program {
    pub(super) fn start(launch: &Launch, fault: &Fault) -> io::Result<(Self, Heard, Told)> {
        let mut command = Command::new(&launch.command);
        command
            .args(&launch.args)
            .current_dir(&launch.folder)
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&launch.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(&mut command)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (group.take_stdin(), group.take_stdout(), group.take_stderr())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let program = Program { group, stderr: Stderr::listen(stderr) };
        Ok((program, Heard::new(stdout, fault.clone()), Told::new(stdin, fault.clone())))
    }

    /// Returns what there is to say about its end, once it has come.
    pub(super) async fn ended(&mut self) -> String {
        let status = self.group.wait().await;
        self.stderr.drain().await;
        self.stderr.last_words(&status.map_or_else(|error| error.to_string(), how))
    }

    /// The same, for one that has nothing more to say; killed if it does not end by itself.
    pub(super) async fn bury(mut self) -> String {
        match tokio::time::timeout(FAREWELL, self.ended()).await {
            Ok(words) => words,
            Err(_) => {
                self.group.kill();
                self.stderr.last_words("it closed its output")
            }
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, signal) => format!("it was ended by signal {}", signal.unwrap_or(0)),
    }
}

/// Whether a program of this name can be found, for a better message than "not found".
pub(super) fn why_not(launch: &Launch, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if !launch.folder.is_dir() => {
            format!("its folder {} does not exist", launch.folder.display())
        }
        io::ErrorKind::NotFound if Path::new(&launch.command).components().count() == 1 => {
            format!("there is no program `{}` in PATH", launch.command)
        }
        _ => format!("`{}` cannot be started: {error}", launch.command),
    }
}

/// The end of what a program has printed to stderr.
#[derive(Debug)]
struct Stderr {
    kept: Arc<Mutex<VecDeque<u8>>>,
    listening: JoinHandle<()>,
}

impl Stderr {
    fn listen(mut pipe: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let memory = Arc::clone(&kept);
        let listening = tokio::spawn(async move {
            let mut chunk = vec![0; 1024];
            while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
                let mut kept = memory.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&chunk[..count]);
                let surplus = kept.len().saturating_sub(REMEMBERED_BYTES);
                kept.drain(..surplus);
            }
        });
        Stderr { kept, listening }
    }

    /// Waits for what is still in the pipe; a process that holds it open does not hold us up.
    async fn drain(&mut self) {
        let _ = tokio::time::timeout(DRAIN, &mut self.listening).await;
    }

    fn last_words(&self, how: &str) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned();
        if text.is_empty() { how.to_owned() } else { format!("{how}; it said: {}", redact(&text).text) }
    }
}
