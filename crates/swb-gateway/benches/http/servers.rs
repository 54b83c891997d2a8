//! Both contenders: our gateway, and the bare server library.

use std::convert::Infallible;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use swb_bus::Bus;
use swb_bus::topics::{Retention, Topics};
use swb_gateway::auth::{Keyring, Principal};
use swb_gateway::{Gateway, GatewayOptions};
use swb_journal::message_bus::{BusOptions, BusPath, Draft, MessageBus};
use tempfile::TempDir;
use testkit::World;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// The argument that makes this program a server.
pub(crate) const CHILD: &str = "--serve";
const BODY_BYTES: usize = 60;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

/// Our gateway on a bus of its own.
pub(crate) struct Ours {
    pub(crate) address: SocketAddr,
    token: String,
    bus: MessageBus,
    _gateway: Gateway,
    _runtime: Runtime,
    _folder: TempDir,
}

impl Ours {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = GatewayOptions {
            host: "127.0.0.1".to_owned(),
            port: 0,
            key_file: None,
            tokens: folder.path().join("tokens"),
            root: folder.path().join("projects"),
            threads: folder.path().join("threads.jsonl"),
            heartbeat: Duration::from_secs(30),
            max_connections: 4096,
            figures: None,
            postmaster: None,
        };
        let runtime = runtime();
        let topics = Topics::in_memory(Retention::default());
        let start = async { Gateway::start(&options, Bus::builder(topics).build(), None).await };
        let gateway = runtime.block_on(start).expect("a gateway");
        let keyring = Keyring::open(&options.tokens).expect("a keyring");
        let path = BusPath::in_root(&options.root, "p", None).expect("a path");
        Ours {
            address: gateway.address(),
            token: keyring.token(&Principal::User).expect("a token"),
            bus: MessageBus::new(path, BusOptions::default()),
            _gateway: gateway,
            _runtime: runtime,
            _folder: folder,
        }
    }

    pub(crate) fn stream_path(&self, query: &str) -> String {
        format!("/t/{}/api/projects/p/messages/stream{query}", self.token)
    }

    pub(crate) fn post_path(&self) -> String {
        format!("/t/{}/api/projects/p/messages", self.token)
    }

    /// Posts as another process on this machine does.
    pub(crate) fn append(&self, messages: usize) {
        let draft = Draft::new("FACT", "p", vec![b'x'; BODY_BYTES]);
        (0..messages).for_each(|_| drop(self.bus.append(&draft).expect("an append")));
    }
}

/// The gateway of a whole daemon: every post is judged by the rules and recorded before it is answered.
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    pub(crate) post_path: String,
    _world: World,
}

impl House {
    pub(crate) fn start() -> Self {
        let mut world = World::new();
        world.start();
        let keyring = Keyring::open(&world.paths().tokens()).expect("a keyring");
        let token = keyring.token(&Principal::User).expect("a token");
        let post_path = format!("/t/{token}/api/projects/p/messages");
        House { address: world.http(), post_path, _world: world }
    }
}

/// The files of a post that is recorded: a log with a start and an end, and between them the locked end of a bus.
#[derive(Debug)]
struct Files {
    log: File,
    bus: File,
    bus_path: PathBuf,
}

impl Files {
    /// About as long as what a daemon writes of one post.
    const START: [u8; 900] = [b's'; 900];
    const MESSAGE: [u8; 320] = [b'm'; 320];
    const END: [u8; 700] = [b'e'; 700];

    fn open(folder: &Path) -> Self {
        let open =
            |name: &str| File::options().append(true).create(true).open(folder.join(name)).expect("a file");
        Files { log: open("log"), bus: open("bus"), bus_path: folder.join("bus") }
    }

    /// What cannot be left out of a post that is recorded before it is done and before it is told.
    fn keep(&mut self) {
        self.log.write_all(&Self::START).expect("a start");
        self.bus.lock().expect("a lock");
        // Whether it is still the file of that name.
        std::fs::metadata(&self.bus_path).expect("a file");
        self.bus.write_all(&Self::MESSAGE).expect("a message");
        self.bus.unlock().expect("a lock");
        self.log.write_all(&Self::END).expect("an end");
    }
}

/// The server library with a broadcast of ready-made bytes, an echo of JSON, and an echo that writes what a recorded post
/// has to write.
pub(crate) struct Bare {
    pub(crate) address: SocketAddr,
    sender: broadcast::Sender<Bytes>,
    frame: Bytes,
    _runtime: Runtime,
    _folder: TempDir,
}

impl Bare {
    pub(crate) fn start() -> Self {
        let runtime = runtime();
        let (sender, _) = broadcast::channel::<Bytes>(4096);
        let subscribe = sender.clone();
        let folder = tempfile::tempdir().expect("a folder");
        let files = Arc::new(Mutex::new(Files::open(folder.path())));
        let keep = async move |Json(value): Json<serde_json::Value>| {
            files.lock().expect("no panic").keep();
            Json(value)
        };
        let router = Router::new()
            .route("/echo", post(async |Json(value): Json<serde_json::Value>| Json(value)))
            .route("/kept", post(keep))
            .route(
                "/stream",
                get(move || {
                    let receiver = subscribe.subscribe();
                    async move {
                        let chunks = stream::unfold(receiver, |mut receiver| async move {
                            let bytes = receiver.recv().await.ok()?;
                            Some((Ok::<Bytes, Infallible>(bytes), receiver))
                        });
                        ([("content-type", "text/event-stream")], Body::from_stream(chunks))
                    }
                }),
            );
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move { axum::serve(listener, router).await });
        let id = "MSG-20261115-075000-153429587-PID13843-0001";
        let frame = format!(
            "id: {id}\nevent: message\ndata: {{\"msg_id\":\"{id}\",\"timestamp\":\"2026-11-15T07:50:00.153435987Z\",\
             \"type\":\"FACT\",\"project_id\":\"p\",\"body\":\"{}\"}}\n\n",
            "x".repeat(BODY_BYTES)
        );
        Bare { address, sender, frame: frame.into(), _runtime: runtime, _folder: folder }
    }

    pub(crate) fn broadcast(&self, messages: usize) {
        (0..messages).for_each(|_| drop(self.sender.send(self.frame.clone())));
    }
}

/// Our gateway in a process of its own, whose memory can be read.
pub(crate) struct Child {
    process: std::process::Child,
    pub(crate) address: SocketAddr,
    pub(crate) stream_path: String,
}

impl Child {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        let mut process =
            command.arg(CHILD).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
        let (address, stream_path) = line.trim().split_once(' ').expect("address and path");
        Child { process, address: address.parse().expect("an address"), stream_path: stream_path.to_owned() }
    }

    pub(crate) fn resident_kib(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

pub(crate) fn serve_until_stdin_closes() {
    crate::load::allow_many_files();
    let ours = Ours::start();
    ours.append(100);
    println!("{} {}", ours.address, ours.stream_path("?tail=0"));
    let _ = std::io::stdin().read(&mut [0]);
}
