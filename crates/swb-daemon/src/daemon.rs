//! The daemon: from taking the lock to removing the socket.
//!
//! Start: private folders → lock → record → records → rules → numbers → approvals → bus → what a crash left open → gate
//! → HTTP → socket → description → `bus.ready`. Stop, in the opposite order:
//! `bus.stopping` → requests in flight finish, streams end → connections are written empty → description and socket go →
//! lock. HTTP is the one part that may be missing: what kept it from starting is told in the status.
//! A start that fails half way undoes what it did.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use swb_bus::gate::Gate;
use swb_bus::topics::{Keeper, Retention, Topics};
use swb_bus::transport::{ControlServer, ServerLimits};
use swb_bus::{Bus, BusHandle};
use swb_journal::sequence::SequenceError;
use swb_journal::transcript::Transcripts;
use swb_proto::{Actor, Meta, Timestamp};
use tokio::sync::watch;

use crate::approvals::Approvals;
use crate::completion::Completions;
use crate::config::Config;
use crate::description::Description;
use crate::door;
use crate::gate::{FrontGate, HouseGate};
use crate::git::Git;
use crate::http::Http;
use crate::keeper::HouseKeeper;
use crate::lock::{DaemonLock, LockError, is_served};
use crate::paths::Paths;
use crate::policy::Policy;
use crate::private_dir::{self, PrivateDirError};
use crate::record::{Care, Recorder};
use crate::records::Records;
use crate::recovery;
use crate::runs::{Office, Runs, RunsParts};
use crate::subsystems::{
    AgentRuns, Agents, ApprovalDesk, Audit, Control, Events, Grants, Identity, Llm, PolicyDesk, Projects,
    Rpc, Sessions, Workspaces,
};
use crate::telemetry::{Before, HouseFigures, Traces};

/// How long connections may take to read their last answers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    bus: Arc<Bus>,
    approvals: Arc<Approvals>,
    runs: Runs,
    server: ControlServer,
    http: Http,
    traces: Option<Traces>,
    paths: Paths,
    description: Description,
    drain: Duration,
    stop_asked: watch::Receiver<Option<String>>,
    watch_pid: Arc<AtomicU32>,
    recorder: Arc<Recorder>,
    care: Care,
    _lock: DaemonLock,
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
#[error("the daemon did not start")]
pub struct StartError {
    /// What happened.
    #[source]
    pub kind: StartErrorKind,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum StartErrorKind {
    /// Another daemon runs in the same runtime folder.
    #[error("a daemon is running already{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    AlreadyRunning {
        /// Its process, if it told.
        pid: Option<u32>,
    },
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// A file or socket cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The numbers of events cannot be kept.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// What happens cannot be recorded.
    #[error("the record in {} cannot be used: {source}; `swb audit verify` shows what is wrong with it", folder.display())]
    Record {
        /// Where it lies.
        folder: PathBuf,
        /// What happened.
        source: swb_journal::audit::OpenError,
    },
}

impl<E: Into<StartErrorKind>> From<E> for StartError {
    fn from(kind: E) -> Self {
        StartError { kind: kind.into() }
    }
}

impl Daemon {
    /// Starts a daemon in this process. When this returns, the socket answers.
    pub async fn start(paths: Paths, config: &Config) -> Result<Self, StartError> {
        for folder in [&paths.runtime, &paths.sockets, &paths.state] {
            private_dir::ensure(folder)?;
        }
        // There, so that they can be hidden from agents: what is not there could be made by one.
        for folder in [&paths.config, &paths.data] {
            private_dir::make(folder)?;
        }
        let socket = paths.control_socket();
        let running = || StartErrorKind::AlreadyRunning {
            pid: Description::read(&paths.description()).map(|description| description.pid),
        };
        let lock = DaemonLock::take(&paths.daemon_lock(), &socket).await.map_err(|error| match error {
            LockError::Taken => running(),
            LockError::Io(source) => StartErrorKind::Io { path: paths.daemon_lock(), source },
        })?;
        // With the lock in hand nobody should answer. If somebody does, the lock file was removed under a live daemon.
        if is_served(&socket) {
            return Err(running().into());
        }
        remove(&socket).map_err(|source| StartErrorKind::Io { path: socket.clone(), source })?;

        let recorder = Recorder::open(&paths.audit(), &config.audit)
            .map_err(|source| StartErrorKind::Record { folder: paths.audit(), source })?;
        let records = Records::open(&paths.state)
            .map(Arc::new)
            .map_err(|(path, source)| StartErrorKind::Io { path, source })?;
        let policy = Policy::open(&paths, config);
        let retention = Retention { events: config.bus.replay_events, bytes: config.bus.replay_bytes };
        let transcripts = Transcripts::open(&paths.transcripts())
            .map(Arc::new)
            .map_err(|source| StartErrorKind::Io { path: paths.transcripts(), source })?;
        let keeper: Arc<dyn Keeper> =
            Arc::new(HouseKeeper { recorder: Arc::clone(&recorder), transcripts: Arc::clone(&transcripts) });
        let topics = Topics::kept_by(keeper, retention, &paths.sequence_file(), SystemTime::now)?;
        recorder.speak_on(&topics);
        let before = Before { head: topics.head(), after: records.look().oldest_open_run() };
        let approvals = Approvals::open(&paths.approvals_file(), Arc::clone(&topics), SystemTime::now)
            .map_err(|source| StartErrorKind::Io { path: paths.approvals_file(), source })?;
        let limits = ServerLimits {
            connections: config.bus.max_connections,
            in_flight: config.bus.max_in_flight,
            subscriptions: config.bus.max_subscriptions,
            ..ServerLimits::default()
        };
        let mut description = Description {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: Timestamp::from_system_time(SystemTime::now()),
            socket: socket.display().to_string(),
            http: None,
        };
        let http_state = Arc::new(OnceLock::new());
        let traces_state = Arc::new(OnceLock::new());
        let watch_pid = Arc::new(AtomicU32::new(0));
        let (stop, stop_asked) = watch::channel(None);
        let identity = Identity {
            started_at: description.started_at.clone(),
            started: Instant::now(),
            socket: description.socket.clone(),
            http: Arc::clone(&http_state),
            traces: Arc::clone(&traces_state),
            watch_pid: Arc::clone(&watch_pid),
            limits,
            recorder: Arc::clone(&recorder),
        };
        let house_gate = Arc::new(HouseGate {
            records: Arc::clone(&records),
            policy: policy.clone(),
            approvals: Arc::clone(&approvals),
            recorder: Arc::clone(&recorder),
        });
        let office = Office::open(&paths.inboxes_file())
            .map_err(|source| StartErrorKind::Io { path: paths.inboxes_file(), source })?;
        let runs = Runs::new(RunsParts {
            records: Arc::clone(&records),
            topics: Arc::clone(&topics),
            recorder: Arc::clone(&recorder),
            approvals: Arc::clone(&approvals),
            transcripts,
            gate: Arc::clone(&house_gate),
            office: Arc::clone(&office),
            paths: paths.clone(),
            config: config.clone(),
        });
        let mut builder = Bus::builder(topics)
            .register(Control { identity, policy: policy.clone(), runs: runs.clone(), stop })
            .register(Events)
            .register(Audit { recorder: Arc::clone(&recorder) })
            .register(Rpc::default())
            .register(Agents)
            .register(AgentRuns { runs: runs.clone() })
            .register(Llm { completions: Arc::new(Completions::new(paths.home.clone(), &config.llm)) })
            .register(Workspaces { records: Arc::clone(&records) })
            .register(Projects {
                records: Arc::clone(&records),
                git: Git {
                    program: config.projects.git_program.clone(),
                    limit: Duration::from_millis(config.projects.git_timeout_ms),
                },
            })
            .register(Sessions {
                records: Arc::clone(&records),
                approvals: Arc::clone(&approvals),
                policy: policy.clone(),
            })
            .register(ApprovalDesk { approvals: Arc::clone(&approvals) })
            .register(Grants { approvals: Arc::clone(&approvals) })
            .register(PolicyDesk {
                policy: policy.clone(),
                approvals: Arc::clone(&approvals),
                records: Arc::clone(&records),
                recorder: Arc::clone(&recorder),
            });
        if config.bus.request_timeout_ms > 0 {
            builder = builder.default_timeout(Duration::from_millis(config.bus.request_timeout_ms));
        }
        let bus = builder.build();
        let care = recorder.look_after(bus.topics());
        policy.announce_to(Arc::clone(bus.topics()));
        recovery::close_what_is_open(&records, &approvals, &bus);
        runs.watch_sessions();
        runs.recover().await;
        tokio::spawn(Arc::clone(&approvals).keep_time());
        // Before the socket, so that whoever gets an answer there gets the whole of it.
        let gate: Arc<dyn Gate> = Arc::new(FrontGate(house_gate));
        let traces = Traces::start(&config.telemetry, bus.topics(), &recorder, before);
        let watched = traces.as_ref().map(|traces| traces.watched().clone());
        if let Some(watched) = &watched {
            let _ = traces_state.set(watched.clone());
        }
        let figures = HouseFigures {
            runs: runs.clone(),
            approvals: Arc::clone(&approvals),
            recorder: Arc::clone(&recorder),
            traces: watched,
        };
        let http =
            Http::start(&paths, config, &bus, Arc::clone(&gate), Arc::new(figures), office.counter()).await;
        description.http = http.state().url();
        let _ = http_state.set(http.state().clone());
        let server = ControlServer::listen_behind(Some(gate), Arc::clone(&bus), &socket, limits)
            .map_err(|source| StartErrorKind::Io { path: socket.clone(), source })?;
        if let Err(error) = door::open(&paths) {
            tracing::error!(%error, "agents in cells cannot reach the daemon");
        }
        if let Err(source) = description.write(&paths.description()) {
            let _ = remove(&socket);
            return Err(StartErrorKind::Io { path: paths.description(), source }.into());
        }
        let drain = Duration::from_millis(config.daemon.drain_ms);
        let daemon = Daemon {
            bus,
            approvals,
            runs,
            server,
            http,
            traces,
            paths,
            description,
            drain,
            stop_asked,
            watch_pid,
            recorder,
            care,
            _lock: lock,
        };
        daemon.announce(
            "bus.ready",
            &json!({ "pid": daemon.description.pid, "version": daemon.description.version }),
        );
        tracing::info!(pid = daemon.description.pid, socket = daemon.description.socket, "ready");
        Ok(daemon)
    }

    /// A handle that speaks as the daemon.
    pub fn handle(&self) -> BusHandle {
        self.bus.handle()
    }

    /// The bus, for what a handle does not show.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// The record of what happens.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// The questions that people answer.
    pub fn approvals(&self) -> &Arc<Approvals> {
        &self.approvals
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Becomes ready with the reason once somebody asked the daemon to stop (`bus.shutdown`).
    pub fn stop_asked(&self) -> impl Future<Output = String> + Send + 'static {
        let mut asked = self.stop_asked.clone();
        async move {
            match asked.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
                Ok(Some(reason)) => reason,
                _ => std::future::pending().await,
            }
        }
    }

    /// Notes which process watches this one.
    pub(crate) fn watched_by(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.watch_pid)
    }

    /// Stops: what is in flight may finish, for as long as the configuration says or until `hurry` is ready.
    pub async fn stop(self, reason: &str, hurry: impl Future<Output = ()>) {
        tracing::info!(reason, in_flight = self.bus.in_flight(), "stopping");
        self.announce("bus.stopping", &json!({ "reason": reason }));
        // Who waits for a person would keep everybody waiting.
        self.approvals.stop();
        // Agents work on behind their hosts; the next daemon finds them.
        self.runs.let_go();
        let requests = async {
            tokio::select! {
                () = self.bus.shutdown(self.drain) => {}
                () = hurry => self.bus.shutdown(Duration::ZERO).await,
            }
        };
        tokio::join!(requests, self.http.stop(LAST_WORDS));
        self.server.close(LAST_WORDS).await;
        for path in [self.paths.description(), self.paths.control_socket()] {
            if let Err(error) = remove(&path) {
                tracing::warn!(%error, path = %path.display(), "left behind");
            }
        }
        if let Err(error) = door::close(&self.paths) {
            tracing::warn!(%error, "the agents' door was left open; nobody is behind it");
        }
        drop(self.care);
        if let Some(traces) = self.traces {
            traces.stop(LAST_WORDS).await;
        }
        // The next one may wait for us: an anchor that hangs is not waited for.
        let _ = tokio::time::timeout(LAST_WORDS, self.recorder.anchor()).await;
        self.recorder.close();
        tracing::info!("stopped");
    }

    fn announce(&self, topic: &str, payload: &serde_json::Value) {
        let system = Actor::system();
        if let Err(error) = self.bus.topics().publish(topic, &Meta::default(), Some(&system), payload) {
            tracing::warn!(%error, topic, "not published");
        }
    }
}

/// Removes a file, if there is one.
pub(crate) fn remove(path: &std::path::Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
