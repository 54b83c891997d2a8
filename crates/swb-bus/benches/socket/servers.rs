//! The processes that answer: two bare echoes, the control socket, and NATS's responder.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use swb_bus::topics::{Retention, Topics};
use swb_bus::transport::{ControlServer, ServerLimits};
use swb_bus::{Bus, BusHandler};
use swb_proto::control::{HelloResponse, Limits, Program};
use swb_proto::{BusPayload, BusResult, LOCALBUS_NAMESPACE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::{cores, nats, words};

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    EchoOneThread,
    EchoTwoWorkers,
    Control,
    NatsResponder,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::EchoOneThread, "echo-one-thread"),
    (Kind::EchoTwoWorkers, "echo-two-workers"),
    (Kind::Control, "control"),
    (Kind::NatsResponder, "nats-responder"),
];

/// A server in a process of its own.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts this program again as a server, on one core if told so, and waits until it says that it is ready.
    pub(crate) fn start(kind: Kind, core: Option<usize>, address: &Path) -> Self {
        let address = address.to_str().expect("temporary paths are UTF-8").to_owned();
        let name = KINDS.iter().find(|(known, _)| *known as u8 == kind as u8).map_or("", |(_, name)| name);
        let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--serve", name, &address])
            .args(core.map(|core| core.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let mut ready = String::new();
        let stdout = process.stdout.take().expect("piped above");
        BufReader::new(stdout).read_line(&mut ready).expect("the server says that it is ready");
        assert_eq!(ready, "ready\n");
        Server { process, address }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input is the end of the server.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The life of a server process.
pub(crate) fn serve(name: &str, address: &str, core: Option<&str>) {
    if let Some(core) = core {
        // Before the runtime: its threads inherit it.
        cores::stay_on(core.parse().expect("a number"));
    }
    let kind = KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind).expect("a known kind");
    let (ended_tx, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended_tx);
    });
    let runtime = match kind {
        Kind::EchoOneThread | Kind::NatsResponder => Builder::new_current_thread().enable_all().build(),
        Kind::EchoTwoWorkers | Kind::Control => {
            Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
    }
    .expect("a runtime can be built");
    let _control = runtime.block_on(open(&runtime, kind, address));
    println!("ready");
    let _ = runtime.block_on(ended);
}

async fn open(runtime: &Runtime, kind: Kind, address: &str) -> Option<ControlServer> {
    match kind {
        Kind::EchoOneThread | Kind::EchoTwoWorkers => {
            let listener = UnixListener::bind(address).expect("the path is free");
            runtime.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(echo(stream));
                }
            });
            None
        }
        Kind::NatsResponder => {
            nats::respond(address).await;
            None
        }
        Kind::Control => {
            let topics = Topics::in_memory(Retention::default());
            let bus = Bus::builder(topics).register(Greeter).register(Echo).build();
            Some(
                ControlServer::listen(Arc::clone(&bus), Path::new(address), ServerLimits::default())
                    .expect("the path is free"),
            )
        }
    }
}

/// The limit: lines are parsed, written again, and written out together.
async fn echo(mut stream: UnixStream) {
    let mut input = Vec::with_capacity(64 * 1024);
    let mut output = Vec::with_capacity(64 * 1024);
    while stream.read_buf(&mut input).await.is_ok_and(|n| n > 0) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &input) {
            words::write_line(&mut output, &words::parse::<words::Question>(&input[start..end]));
            start = end + 1;
        }
        input.drain(..start);
        if stream.write_all(&output).await.is_err() {
            return;
        }
        output.clear();
    }
}

struct Echo;

impl BusHandler for Echo {
    fn prefix(&self) -> &str {
        "agents"
    }
    fn handle_request(&self, _: &str, payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(Ok(payload));
    }
}

/// Answers the greeting that every handle begins with.
struct Greeter;

impl BusHandler for Greeter {
    fn prefix(&self) -> &str {
        "bus"
    }
    fn handle_request(&self, _: &str, _: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let welcome = HelloResponse {
            namespace: LOCALBUS_NAMESPACE.to_owned(),
            namespaces: Vec::new(),
            dialects: Vec::new(),
            server: Program { name: "bench".to_owned(), version: "0".to_owned() },
            limits: Limits {
                max_payload_bytes: 0,
                max_line_bytes: 0,
                max_in_flight: 0,
                max_subscriptions: 0,
            },
            head: 0,
        };
        let _ = reply_tx.send(Ok(welcome.into()));
    }
}
