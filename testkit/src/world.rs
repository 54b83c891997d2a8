//! A home of its own, and the daemon in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swb_bus::{Bus, BusHandle};
use swb_daemon::approvals::Approvals;
use swb_daemon::{Config, Daemon, Paths, StartError};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::wire::Wire;

/// A home and, at times, a daemon.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    config: Config,
    binary: Option<PathBuf>,
    environment: Vec<(String, String)>,
    running: Option<Running>,
}

/// The daemon and the threads it runs on. Both go at once in a crash.
#[derive(Debug)]
struct Running {
    daemon: Daemon,
    runtime: Runtime,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty home.
    pub fn new() -> Self {
        // Short, because sockets lie in it.
        let folder = tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").expect("a temporary folder");
        let mut config = Config::default();
        // Tests run side by side: any port will do.
        config.http.port = 0;
        World { folder, config, binary: None, environment: Vec::new(), running: None }
    }

    /// The same with the binary under test, `env!("CARGO_BIN_EXE_swb")`.
    #[must_use]
    pub fn with_binary(mut self, binary: &str) -> Self {
        self.binary = Some(binary.into());
        self
    }

    /// The same with one more variable for the binary.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with other settings for the daemon in process.
    #[must_use]
    pub fn with_config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The folder that everything of this world lies in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What `SWB_HOME` is in this world.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where things lie.
    pub fn paths(&self) -> Paths {
        Paths::under(&self.home())
    }

    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    pub(crate) fn binary(&self) -> Option<&Path> {
        self.binary.as_deref()
    }

    /// Starts a daemon in this process.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn start(&mut self) {
        self.try_start().expect("the daemon starts");
    }

    /// The same for a start that may fail.
    pub fn try_start(&mut self) -> Result<(), StartError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads for the daemon");
        let daemon = runtime.block_on(Daemon::start(self.paths(), &self.config))?;
        self.running = Some(Running { daemon, runtime });
        Ok(())
    }

    /// Stops the daemon in order.
    pub fn stop(&mut self) {
        if let Some(Running { daemon, runtime }) = self.running.take() {
            runtime.block_on(daemon.stop("the test is over", std::future::pending()));
        }
    }

    /// Ends the daemon as kill -9 does: nothing is written, nothing is removed, every connection breaks.
    pub fn crash(&mut self) {
        if let Some(Running { daemon, runtime }) = self.running.take() {
            // Returns once every task is dropped, which is what the kernel does to a process before anyone can tell.
            runtime.shutdown_timeout(crate::PATIENCE);
            drop(daemon);
        }
    }

    /// A crash and the start after it.
    #[track_caller]
    pub fn crash_and_restart(&mut self) {
        self.crash();
        self.start();
    }

    /// The daemon's own handle.
    #[track_caller]
    pub fn handle(&self) -> BusHandle {
        self.running.as_ref().expect("the daemon is running").daemon.handle()
    }

    /// The daemon's bus.
    #[track_caller]
    pub fn bus(&self) -> Arc<Bus> {
        Arc::clone(self.running.as_ref().expect("the daemon is running").daemon.bus())
    }

    /// The daemon's approvals.
    #[track_caller]
    pub fn approvals(&self) -> Arc<Approvals> {
        Arc::clone(self.running.as_ref().expect("the daemon is running").daemon.approvals())
    }

    /// Runs something on the daemon's own threads, to its end.
    #[track_caller]
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.running.as_ref().expect("the daemon is running").runtime.block_on(work)
    }

    /// Where the daemon's HTTP server listens.
    ///
    /// # Panics
    /// If the daemon does not run or has none.
    #[track_caller]
    pub fn http(&self) -> SocketAddr {
        let running = self.running.as_ref().expect("the daemon is running");
        let url = running.daemon.description().http.as_deref().expect("the daemon serves HTTP");
        url.trim_start_matches("http://").parse().expect("an address")
    }

    /// A handle over the socket.
    pub async fn connect(&self) -> BusHandle {
        BusHandle::connect(self.paths().control_socket()).await.expect("the daemon answers")
    }

    /// A client that knows nothing but lines.
    #[track_caller]
    pub fn wire(&self) -> Wire {
        Wire::connect(&self.paths().control_socket()).expect("the daemon listens")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
        if self.binary.is_some() && self.home().exists() {
            let _ = self.swb(["down", "--yes"]);
        }
    }
}
