//! A daemon as a process of its own: configuration, log, runtime, signals, and the line to its watch.

use std::future::pending;

use rustix::process::{Resource, Rlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Config, Layers};
use crate::daemon::{Daemon, StartErrorKind};
use crate::log;
use crate::paths::Paths;
use crate::watch::{Keeper, Line, Word};

/// Files the daemon may have open, if the system lets it.
const FILES: u64 = 16_384;

/// How a daemon process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Stopped,
    /// Another one runs already.
    AlreadyRunning,
    /// It could not start; the watch was told why.
    Failed,
}

/// Runs a daemon until it is asked to stop. Standard input is the line to the watch that started it.
pub fn run(paths: Paths, flags: &[String]) -> Ended {
    let mut line = Line::from_stdin();
    let config = match configuration(&paths, flags) {
        Ok(config) => config,
        Err(why) => return line.fail(&why),
    };
    raise_file_limit();
    // A daemon that stays in the folder it was started from would keep it from being unmounted.
    let _ = std::env::set_current_dir("/");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.daemon.workers)
        .thread_name("swb")
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            tokio::spawn(serve(paths, config, line, flags.to_vec())).await.unwrap_or(Ended::Failed)
        }),
        Err(error) => line.fail(&format!("cannot start threads: {error}")),
    }
}

/// Every connection is a file, and the usual soft limit of 1,024 is that of programs from the time of select(2).
fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let enough = |most: u64| most.min(FILES);
    if limit.current.is_some_and(|current| current < FILES) {
        let current = Some(limit.maximum.map_or(FILES, enough));
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

fn configuration(paths: &Paths, flags: &[String]) -> Result<Config, String> {
    let layers = Layers::default()
        .file(&paths.config_file())
        .and_then(|layers| {
            layers.env(
                std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
            )
        })
        .and_then(|layers| layers.flags(flags))
        .map_err(|error| error.to_string())?;
    let mut config = layers.finish().map_err(|error| error.to_string())?;
    config.telemetry = config.telemetry.with_environment(|name| std::env::var(name).ok());
    crate::redaction::start(&paths.redaction_file()).map_err(|error| error.to_string())?;
    let log_file = paths.log_file();
    let started = log_file
        .parent()
        .map_or(Ok(()), |folder| crate::private_dir::ensure(folder).map_err(|error| error.to_string()))
        .and_then(|()| log::start(&log_file, &config.log).map_err(|error| error.to_string()));
    started.map_err(|error| format!("cannot write the log {}: {error}", log_file.display()))?;
    for warning in layers.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

async fn serve(paths: Paths, config: Config, mut line: Line, flags: Vec<String>) -> Ended {
    let signals =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut interrupt), Ok(_hangup)) = signals else {
        return line.fail("cannot listen for signals");
    };
    let daemon = match Daemon::start(paths, &config).await {
        Ok(daemon) => daemon,
        Err(error) => {
            tracing::error!(error = %error.kind, "did not start");
            if let StartErrorKind::AlreadyRunning { pid } = error.kind {
                line.say(&Word::AlreadyRunning { pid });
                return Ended::AlreadyRunning;
            }
            return line.fail(&error.kind.to_string());
        }
    };
    line.say(&Word::Ready(daemon.description().clone()));
    let keeper = Keeper::start(line, daemon.watched_by(), flags);
    let reason = tokio::select! {
        reason = daemon.stop_asked() => reason,
        _ = terminate.recv() => "SIGTERM".to_owned(),
        _ = interrupt.recv() => "SIGINT".to_owned(),
    };
    // A second signal means: now.
    let hurry = async {
        tokio::select! {
            Some(()) = terminate.recv() => {}
            Some(()) = interrupt.recv() => {}
            else => pending().await,
        }
    };
    daemon.stop(&reason, hurry).await;
    keeper.goodbye();
    Ended::Stopped
}
