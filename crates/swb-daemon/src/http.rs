//! The HTTP server in the daemon: started with it, stopped with it, and never a reason for it not to start.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swb_bus::Bus;
use swb_bus::gate::Gate;
use swb_gateway::metrics::Figures;
use swb_gateway::{Gateway, GatewayOptions, Postmaster};

use crate::config::Config;
use crate::paths::Paths;

/// What became of the server.
#[derive(Debug, Clone)]
pub(crate) enum HttpState {
    /// The configuration wants none.
    Off,
    /// It answers here.
    At(String),
    /// It did not start.
    Failed(String),
}

impl HttpState {
    pub(crate) fn url(&self) -> Option<String> {
        match self {
            HttpState::At(url) => Some(url.clone()),
            _ => None,
        }
    }

    pub(crate) fn error(&self) -> Option<String> {
        match self {
            HttpState::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }
}

/// The server, if there is one.
#[derive(Debug)]
pub(crate) struct Http {
    gateway: Option<Gateway>,
    state: HttpState,
}

impl Http {
    pub(crate) async fn start(
        paths: &Paths,
        config: &Config,
        bus: &Arc<Bus>,
        gate: Arc<dyn Gate>,
        figures: Arc<dyn Figures>,
        postmaster: Arc<dyn Postmaster>,
    ) -> Self {
        let http = &config.http;
        if !http.enabled {
            return Http { gateway: None, state: HttpState::Off };
        }
        let options = GatewayOptions {
            host: http.host.clone(),
            port: http.port,
            key_file: Some(&http.key_file).filter(|path| !path.is_empty()).map(PathBuf::from),
            tokens: paths.tokens(),
            root: paths.message_root(config),
            threads: paths.threads_file(),
            heartbeat: Duration::from_secs(http.heartbeat_s),
            max_connections: http.max_connections,
            figures: Some(figures),
            postmaster: Some(postmaster),
        };
        match Gateway::start(&options, Arc::clone(bus), Some(gate)).await {
            Ok(gateway) => {
                let url = gateway.url();
                tracing::info!(url, "listening for HTTP");
                Http { gateway: Some(gateway), state: HttpState::At(url) }
            }
            Err(error) => {
                tracing::error!(%error, "no HTTP");
                Http { gateway: None, state: HttpState::Failed(error.to_string()) }
            }
        }
    }

    pub(crate) fn state(&self) -> &HttpState {
        &self.state
    }

    pub(crate) async fn stop(self, grace: Duration) {
        if let Some(gateway) = self.gateway {
            gateway.stop(grace).await;
        }
    }
}
