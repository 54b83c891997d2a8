//! `swb up`: start the daemon, return when it is ready.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;
use swb_bus::BusHandle;
use swb_daemon::watch::{self, Outcome, WatchOptions, Word};
use swb_daemon::{Description, Paths};
use swb_proto::Meta;
use swb_proto::comms::Empty;
use swb_proto::control::{Status, StatusResponse};

use crate::args::UpArgs;
use crate::connect::{connect, connect_if_running};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{GOOD, Io, WARN, layers};

pub(crate) async fn run(args: &UpArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let settings = layers(&paths, set)?;
    settings.finish()?;
    for warning in settings.warnings() {
        io.note(format!("{WARN}warning:{WARN:#} {warning}"));
    }
    if let Some(handle) = connect_if_running().await? {
        let status = handle.call::<Status>(Empty {}).await?;
        drop(handle);
        already_running(&status, io)?;
        return if args.foreground { follow(&paths).await } else { Ok(exit_code::SUCCESS) };
    }
    if args.foreground { foreground(&paths, set, io).await } else { background(set, io).await }
}

/// A handle to the daemon, which is started if it is not there.
pub(crate) async fn ensure(set: &[String]) -> Result<BusHandle, Failure> {
    if let Some(handle) = connect_if_running().await? {
        return Ok(handle);
    }
    match first_word(set).await? {
        Some(Word::Ready(_) | Word::AlreadyRunning { .. }) => connect(Meta::default()).await,
        Some(Word::Failed { why }) => Err(did_not_start(why)),
        Some(Word::Bye) | None => Err(did_not_start("it ended without a word".to_owned())),
    }
}

/// Starts the daemon, and says so.
pub(crate) async fn background(set: &[String], io: &Io) -> Result<u8, Failure> {
    match first_word(set).await? {
        Some(Word::Ready(description)) => started(&description, io),
        Some(Word::AlreadyRunning { pid }) => raced(pid, io),
        Some(Word::Failed { why }) => Err(did_not_start(why)),
        Some(Word::Bye) | None => Err(did_not_start("it ended without a word".to_owned())),
    }
}

/// Starts a watch that outlives this command, and waits for its first word.
async fn first_word(set: &[String]) -> Result<Option<Word>, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    Paths::from_env()?.hand_on(&mut command);
    // A daemon that an agent starts is not that agent's.
    command.env_remove(swb_host::mark::VARIABLE);
    command.arg("watch").args(set.iter().flat_map(|flag| ["--set", flag]));
    let mut watch = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let words = watch.stdout.take().ok_or_else(|| Failure::new("the watch has no output"))?;
    let first = tokio::task::spawn_blocking(move || BufReader::new(words).lines().next());
    let first = first.await.ok().flatten().transpose()?;
    Ok(first.as_deref().and_then(|line| serde_json::from_str::<Word>(line).ok()))
}

/// Watches in this process, for a service manager.
async fn foreground(paths: &Paths, set: &[String], io: &Io) -> Result<u8, Failure> {
    let options = WatchOptions {
        program: std::env::current_exe()?,
        flags: set.to_vec(),
        adopt: None,
        inherit_stderr: true,
    };
    let ready = |description: &Description| {
        let _ = started(description, io);
        watch::notify_service_manager();
    };
    match watch::run(paths, options, ready).await {
        Outcome::Stopped => Ok(exit_code::SUCCESS),
        Outcome::AlreadyRunning { pid } => raced(pid, io),
        Outcome::GaveUp { why } => Err(did_not_start(why)),
    }
}

/// A daemon runs already, with a watch of its own: stays until it has gone, so that a service manager sees it live.
async fn follow(paths: &Paths) -> Result<u8, Failure> {
    watch::notify_service_manager();
    if watch::outlast(paths).await {
        return Ok(exit_code::SUCCESS);
    }
    Err(did_not_start("the daemon that was running crashed and did not come back".to_owned()))
}

fn did_not_start(why: String) -> Failure {
    let failure = Failure::new("the daemon did not start").code(exit_code::START_FAILED);
    Failure { cause: Some(why), ..failure }.hint("`swb doctor` looks for the reason")
}

fn started(description: &Description, io: &Io) -> Result<u8, Failure> {
    let Description { pid, version, socket, .. } = description;
    if io.json {
        io.object(&json!({ "status": "started", "pid": pid, "version": version, "socket": socket }))?;
    } else {
        io.line(format!("{GOOD}●{GOOD:#} Switchboard is running (pid {pid}), listening on {socket}"))?;
    }
    Ok(exit_code::SUCCESS)
}

fn already_running(status: &StatusResponse, io: &Io) -> Result<(), Failure> {
    let StatusResponse { pid, version, socket, .. } = status;
    if io.json {
        return io.object(
            &json!({ "status": "already_running", "pid": pid, "version": version, "socket": socket }),
        );
    }
    io.line(format!("{GOOD}●{GOOD:#} Switchboard is already running (pid {pid}), listening on {socket}"))
}

/// Another `swb up` was quicker.
fn raced(pid: Option<u32>, io: &Io) -> Result<u8, Failure> {
    if io.json {
        io.object(&json!({ "status": "already_running", "pid": pid }))?;
    } else {
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        io.line(format!("{GOOD}●{GOOD:#} Switchboard is already running{pid}"))?;
    }
    Ok(exit_code::SUCCESS)
}
