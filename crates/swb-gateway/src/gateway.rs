//! The gateway: from the first free port to the last stream's end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swb_bus::Bus;
use swb_bus::gate::Gate;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agui::Threads;
use crate::announce::Announce;
use crate::auth::{Keyring, KeyringError};
use crate::buses::Buses;
use crate::front::Front;
use crate::host::Names;
use crate::metrics::{Figures, Metrics};
use crate::postmaster::Postmaster;
use crate::routes::{self, App};
use crate::server;
use crate::stream::Feeds;

/// How to listen, and for what.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The address or name to listen on.
    pub host: String,
    /// The port; the next free one if it is taken, any if it is 0.
    pub port: u16,
    /// A file with a key. Listening beyond this machine is refused without one.
    pub key_file: Option<PathBuf>,
    /// The folder of tokens.
    pub tokens: PathBuf,
    /// The folder that projects lie in.
    pub root: PathBuf,
    /// The file of threads: which session each is.
    pub threads: PathBuf,
    /// How often a stream says that it is alive.
    pub heartbeat: Duration,
    /// Connections at once, streams included.
    pub max_connections: usize,
    /// What the house has to say on the page of figures.
    pub figures: Option<Arc<dyn Figures>>,
    /// Who keeps account of what is posted.
    pub postmaster: Option<Arc<dyn Postmaster>>,
}

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others could connect, and no key was given.
    #[error("{host} can be reached from other machines, and http.key_file names no key for them")]
    Unguarded {
        /// What it was to listen on.
        host: String,
    },
    /// No port could be had.
    #[error("cannot listen on {host}:{port}: {source}")]
    Listen {
        /// What it was to listen on.
        host: String,
        /// The first port tried.
        port: u16,
        /// What happened at the last.
        source: io::Error,
    },
    /// The folder of projects cannot be made.
    #[error("cannot use {}: {source}", path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The file of threads cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Threads {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The tokens cannot be used.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

/// A server that runs.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    feeds: Arc<Feeds>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Gateway {
    /// Begins to listen. Commands go to `bus`, and events; every command passes `gate`, if there is one.
    ///
    /// # Errors
    /// If no port can be had, the tokens cannot be used, or it would listen beyond this machine without a key.
    pub async fn start(
        options: &GatewayOptions,
        bus: Arc<Bus>,
        gate: Option<Arc<dyn Gate>>,
    ) -> Result<Self, GatewayError> {
        let GatewayOptions { host, port, root, .. } = options;
        let keyring = Keyring::open(&options.tokens)?;
        let keyring = match &options.key_file {
            Some(path) => keyring.with_key_file(path)?,
            None => keyring,
        };
        let made = std::fs::create_dir_all(root);
        made.map_err(|source| GatewayError::Root { path: root.clone(), source })?;
        let failed = |source| GatewayError::Listen { host: host.clone(), port: *port, source };
        let local =
            host.parse::<IpAddr>().map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback());
        if !local && options.key_file.is_none() {
            return Err(GatewayError::Unguarded { host: host.clone() });
        }
        let listener = server::listen(host, *port).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (feeds, metrics) = (Arc::new(Feeds::default()), Arc::new(Metrics::new()));
        let threads = tokio::runtime::Handle::current().metrics().num_workers();
        let announce = Announce {
            topics: Arc::clone(bus.topics()),
            metrics: Arc::clone(&metrics),
            postmaster: options.postmaster.clone(),
        };
        let threads_file = Threads::open(&options.threads);
        let (stop, stopped) = watch::channel(false);
        let app = App {
            buses: Buses::new(root.clone(), threads, announce),
            feeds: Arc::clone(&feeds),
            metrics: Arc::clone(&metrics),
            figures: options.figures.clone(),
            heartbeat: options.heartbeat,
            // One connection in eight stays free for everything else.
            most_streams: i64::try_from(options.max_connections - options.max_connections / 8)
                .unwrap_or(i64::MAX),
            bus,
            threads: threads_file
                .map_err(|source| GatewayError::Threads { path: options.threads.clone(), source })?,
            stopping: stopped.clone(),
        };
        let names = Names::new(keyring.page(), host, !local);
        let front = Arc::new(Front { keyring, names, metrics, router: routes::router(Arc::new(app)), gate });
        let running = tokio::spawn(server::run(listener, front, options.max_connections, stopped));
        Ok(Gateway { address, feeds, stop, running })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as the beginning of an URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops: takes nothing new, ends every stream, lets answers finish for as long as `grace`.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(true);
        self.feeds.end();
        if tokio::time::timeout(grace, &mut self.running).await.is_err() {
            // Ends every connection with it.
            self.running.abort();
            let _ = (&mut self.running).await;
        }
    }
}

/// One that is let go ends at once.
impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.feeds.end();
        self.running.abort();
    }
}
