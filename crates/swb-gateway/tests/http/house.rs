//! A gateway in a folder of its own, without a daemon around it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use swb_bus::Bus;
use swb_bus::topics::{Retention, Topics};
use swb_gateway::auth::{Keyring, Principal};
use swb_gateway::{Gateway, GatewayError, GatewayOptions};
use swb_journal::message_bus::{BusOptions, BusPath, Draft, MessageBus};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::agents::{self, Agents};
use crate::client::{Answer, Connection, Events};

#[derive(Debug)]
pub(crate) struct House {
    folder: TempDir,
    pub(crate) options: GatewayOptions,
    pub(crate) topics: Arc<Topics>,
    /// Agents that do what their prompt says.
    pub(crate) agents: Arc<Agents>,
    running: Option<(Runtime, Gateway)>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A house with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut GatewayOptions)) -> Self {
        Self::keeping(Retention { events: 65_536, bytes: 64 << 20 }, change)
    }

    /// The same, where so many events can be read again.
    pub(crate) fn keeping(retention: Retention, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut options = GatewayOptions {
            host: "127.0.0.1".to_owned(),
            port: 0,
            key_file: None,
            tokens: folder.path().join("tokens"),
            root: folder.path().join("projects"),
            threads: folder.path().join("threads.jsonl"),
            heartbeat: Duration::from_secs(3600),
            max_connections: 64,
            figures: None,
            postmaster: None,
        };
        change(&mut options);
        let topics = Topics::in_memory(retention);
        let mut house = House { folder, options, topics, agents: Arc::default(), running: None };
        house.start();
        house
    }

    pub(crate) fn start(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let gateway = runtime.block_on(self.gateway(&self.options)).expect("the gateway starts");
        // The same port after a restart, as a daemon has it.
        self.options.port = gateway.address().port();
        self.running = Some((runtime, gateway));
    }

    /// A gateway on a bus with the scripted agents.
    pub(crate) async fn gateway(&self, options: &GatewayOptions) -> Result<Gateway, GatewayError> {
        let bus = agents::register(Bus::builder(Arc::clone(&self.topics)), &self.agents).build();
        Gateway::start(options, bus, None).await
    }

    /// Stops in order, within this long.
    pub(crate) fn stop(&mut self, grace: Duration) {
        if let Some((runtime, gateway)) = self.running.take() {
            runtime.block_on(gateway.stop(grace));
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("it runs").1.address()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::open(&self.options.tokens).expect("a keyring")
    }

    pub(crate) fn token(&self) -> String {
        self.keyring().token(&Principal::User).expect("a token")
    }

    /// The header that opens every door.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token())
    }

    /// A request with nothing added but the host.
    pub(crate) fn bare(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        let mut connection = Connection::open(self.address());
        connection.request(method, path, headers, body);
        connection.answer()
    }

    /// A request of the user.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Answer {
        let bearer = self.bearer();
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        self.bare(method, path, &all, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], Some(body.to_string().as_bytes()))
    }

    /// Posts to project `p` and returns the id.
    #[track_caller]
    pub(crate) fn say(&self, body: &str) -> String {
        let answer = self.post("/api/projects/p/messages", &json!({ "body": body }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["msg_id"].as_str().expect("an id").to_owned()
    }

    /// The stream of project `p`.
    pub(crate) fn stream(&self, query: &str, headers: &[(&str, &str)]) -> Events {
        let bearer = self.bearer();
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        Events::open(self.address(), &format!("/api/projects/p/messages/stream{query}"), &all)
    }

    /// The bus of project `p`, as another process sees it.
    pub(crate) fn bus(&self, options: BusOptions) -> MessageBus {
        let path = BusPath::in_root(&self.options.root, "p", None).expect("a path");
        MessageBus::new(path, options)
    }

    /// Posts past the gateway.
    pub(crate) fn append(&self, bodies: impl IntoIterator<Item = String>) {
        let bus = self.bus(BusOptions::default());
        for body in bodies {
            bus.append(&Draft::new("USER", "p", body)).expect("an append");
        }
    }

    /// One value of `/metrics`.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics");
        let line = page.text().lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page:?}"))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}
