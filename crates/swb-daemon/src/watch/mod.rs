//! The watch: a tiny parent that starts a crashed daemon again.
//!
//! Watch and daemon are joined by a socket pair, the line. The daemon says when it is ready and when it goes; the end
//! of the line without a goodbye is a crash, noticed at once and without polling, whichever side it happens to. A watch
//! starts the next daemon ([`swb_rules::restart`] says when and when not); a daemon whose watch died starts a new watch,
//! which adopts it by the other end of a new line. So neither is gone for long, and neither needs the other to be its
//! parent.

mod keeper;
mod line;

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use swb_rules::restart::{RestartRule, Verdict};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use keeper::Keeper;
pub(crate) use line::Line;
pub use line::Word;

use crate::description::Description;
use crate::paths::Paths;

/// What a watch needs to know.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The program to start, with the argument `daemon`. Resolved when the watch starts, so that a file replaced by an
    /// upgrade is the one that is started next.
    pub program: PathBuf,
    /// Settings from the command line, handed on to every daemon.
    pub flags: Vec<String>,
    /// A daemon that runs already and holds the other end of standard input.
    pub adopt: Option<u32>,
    /// The daemon's standard error goes where the watch's goes, instead of nowhere.
    pub inherit_stderr: bool,
}

/// How a watch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The daemon was asked to stop, and did.
    Stopped,
    /// Another daemon runs already.
    AlreadyRunning {
        /// Its process.
        pid: Option<u32>,
    },
    /// The daemon could not be started.
    GaveUp {
        /// Why.
        why: String,
    },
}

/// One daemon under watch.
struct Life {
    line: tokio::net::UnixStream,
    pid: u32,
    /// Absent for an adopted daemon, which is nobody's child here.
    child: Option<Child>,
    begun: Instant,
    ready: bool,
}

/// How that life ended.
enum End {
    Goodbye,
    AlreadyRunning(Option<u32>),
    Crash { why: String },
}

/// Watches over daemons until one says goodbye or there is no point in starting another. `on_ready` is called each time
/// one becomes ready.
pub async fn run(paths: &Paths, options: WatchOptions, mut on_ready: impl FnMut(&Description)) -> Outcome {
    let (Ok(mut terminate), Ok(mut interrupt), Ok(_hangup)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return Outcome::GaveUp { why: "cannot listen for signals".to_owned() };
    };
    let mut rule = RestartRule::default();
    let mut adopt = options.adopt;
    let mut stopping = false;
    loop {
        let begun = match adopt.take() {
            Some(pid) => Life::adopted(pid),
            None => Life::begin(paths, &options),
        };
        let mut life = match begun {
            Ok(life) => life,
            Err(error) => {
                let why = format!("cannot start {}: {error}", options.program.display());
                return Outcome::GaveUp { why };
            }
        };
        let end = loop {
            let pid = life.pid;
            tokio::select! {
                end = life.end(&mut on_ready) => break end,
                _ = terminate.recv() => { stopping = true; ask_to_stop(pid) }
                _ = interrupt.recv() => { stopping = true; ask_to_stop(pid) }
            }
        };
        let why = match end {
            End::Goodbye => return Outcome::Stopped,
            End::AlreadyRunning(pid) => return Outcome::AlreadyRunning { pid },
            End::Crash { .. } if stopping => return Outcome::Stopped,
            End::Crash { why } => why,
        };
        tracing::warn!(pid = life.pid, why, "the daemon crashed");
        match rule.on_crash(life.ready, life.begun.elapsed()) {
            Verdict::GiveUp { failed_starts } => {
                let log = paths.log_file();
                let why = format!(
                    "the daemon died {failed_starts} times before it was ready: {why} (log: {})",
                    log.display()
                );
                return Outcome::GaveUp { why };
            }
            Verdict::Restart { after } => {
                tokio::select! {
                    () = tokio::time::sleep(after) => {}
                    _ = terminate.recv() => return Outcome::Stopped,
                    _ = interrupt.recv() => return Outcome::Stopped,
                }
            }
        }
    }
}

fn ask_to_stop(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already; then the line says so.
        let _ = kill_process(pid, Signal::TERM);
    }
}

impl Life {
    fn begin(paths: &Paths, options: &WatchOptions) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&options.program);
        paths.hand_on(&mut command);
        command.arg("daemon").args(options.flags.iter().flat_map(|flag| ["--set", flag]));
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        command.stderr(if options.inherit_stderr { Stdio::inherit() } else { Stdio::null() });
        let child = command.spawn()?;
        Self::new(ours, child.id(), Some(child), false)
    }

    fn adopted(pid: u32) -> std::io::Result<Self> {
        let line = Line::from_stdin().into_stream().ok_or(std::io::ErrorKind::NotConnected)?;
        Self::new(line, pid, None, true)
    }

    fn new(line: UnixStream, pid: u32, child: Option<Child>, ready: bool) -> std::io::Result<Self> {
        line.set_nonblocking(true)?;
        let line = tokio::net::UnixStream::from_std(line)?;
        Ok(Life { line, pid, child, begun: Instant::now(), ready })
    }

    /// Follows the daemon's words until the line ends. Cancel safe: words are read whole or not at all.
    async fn end(&mut self, on_ready: &mut impl FnMut(&Description)) -> End {
        let mut failure = None;
        loop {
            match line::hear(&mut self.line).await {
                Some(Word::Ready(description)) => {
                    self.ready = true;
                    on_ready(&description);
                }
                Some(Word::Bye) => return self.buried(End::Goodbye),
                Some(Word::AlreadyRunning { pid }) => return self.buried(End::AlreadyRunning(pid)),
                Some(Word::Failed { why }) => failure = Some(why),
                None => {
                    let status = self.child.as_mut().and_then(|child| child.wait().ok());
                    let ended = status.map_or_else(|| "it was gone".to_owned(), |status| status.to_string());
                    return End::Crash { why: failure.unwrap_or(ended) };
                }
            }
        }
    }

    /// Waits for the process that has said its last word, so that it leaves no zombie.
    fn buried(&mut self, end: End) -> End {
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        end
    }
}

/// Directs the diagnostics of a background watch into a file of its own.
pub fn start_log(paths: &Paths) {
    let path = paths.log_file().with_file_name("watch.log");
    let folder = path.parent().map(crate::private_dir::ensure);
    if folder.is_some_and(|made| made.is_ok()) {
        // A watch without a log still watches.
        let _ = crate::log::start(
            &path,
            &crate::config::LogConfig { max_bytes: 1024 * 1024, keep: 1, ..Default::default() },
        );
    }
}

/// Tells a service manager that asked for it (`Type=notify`) that the daemon is ready.
pub fn notify_service_manager() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let Ok(socket) = std::os::unix::net::UnixDatagram::unbound() else { return };
    let name = address.as_encoded_bytes();
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&address),
    };
    if let Ok(address) = address {
        let _ = socket.send_to_addr(b"READY=1", &address);
    }
}

/// How long a daemon that vanished may take to come back: its own watch starts it again.
const COMEBACK: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Returns when the running daemon, and whichever its watch starts after it, has gone: true if it was stopped, false if
/// it crashed and did not come back.
pub async fn outlast(paths: &Paths) -> bool {
    let socket = paths.control_socket();
    loop {
        if let Ok(mut stream) = tokio::net::UnixStream::connect(&socket).await {
            // The daemon says nothing unasked; the end of the connection is its end.
            while stream.read_u8().await.is_ok() {}
        }
        let mut waited = Duration::ZERO;
        while !crate::lock::is_served(&socket) {
            if !paths.description().exists() {
                return true;
            }
            if waited >= COMEBACK {
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            waited += LOOK_AGAIN;
        }
    }
}
