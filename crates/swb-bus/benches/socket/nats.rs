//! NATS core request/reply with as little client as the protocol allows: CONNECT, SUB, PUB, MSG.
//!
//! The questions are those of the echo, parsed and written again by the responder, which is a process of its own.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::servers::{Kind, Server};
use crate::{figures, words};

const SUBJECT: &str = "bench.echo";
const INBOX: &str = "_INBOX.bench";
const START_PATIENCE: Duration = Duration::from_secs(5);

/// A NATS server, a responder, and the connection that asks.
pub(crate) struct Nats {
    connection: Connection,
    asked: u64,
    // Dropped in this order: the responder before the server it is connected to.
    _responder: Server,
    _server: NatsServer,
}

impl Nats {
    /// `None` if there is no NATS server on this machine.
    pub(crate) async fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).ok()?.port();
        let server = NatsServer::start(port)?;
        let address = format!("127.0.0.1:{port}");
        let started = Instant::now();
        let mut connection = loop {
            match Connection::open(&address).await {
                Ok(connection) => break connection,
                Err(error) if started.elapsed() > START_PATIENCE => {
                    panic!("nats-server is not ready: {error}")
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let responder = Server::start(Kind::NatsResponder, None, Path::new(&address));
        connection.output.extend_from_slice(format!("SUB {INBOX}.* 1\r\n").as_bytes());
        connection.settle().await;
        Some(Nats { connection, asked: 0, _responder: responder, _server: server })
    }

    /// The median time of a round trip, in nanoseconds.
    pub(crate) async fn sequential(&mut self, calls: usize) -> f64 {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            self.ask();
            self.connection.flush().await;
            let mut answered = 0;
            while answered == 0 {
                self.connection.read().await;
                answered = self.answers();
            }
            times.push(started.elapsed().as_secs_f64() * 1e9);
        }
        figures::median(times.into_iter())
    }

    /// Nanoseconds per request with `window` of them under way.
    pub(crate) async fn in_flight(&mut self, calls: usize, window: usize) -> f64 {
        let started = Instant::now();
        for _ in 0..window {
            self.ask();
        }
        let (mut left, mut answered) = (calls - window, 0);
        while answered < calls {
            self.connection.flush().await;
            self.connection.read().await;
            let new = self.answers();
            answered += new;
            for _ in 0..new.min(left) {
                self.ask();
                left -= 1;
            }
        }
        started.elapsed().as_secs_f64() * 1e9 / calls as f64
    }

    fn ask(&mut self) {
        self.asked += 1;
        let mut line = Vec::with_capacity(256);
        (words::ECHO.write)(&mut line, self.asked);
        let reply_to = format!("{INBOX}.{}", self.asked);
        publish(&mut self.connection.output, SUBJECT, Some(&reply_to), &line);
    }

    fn answers(&mut self) -> usize {
        let mut count = 0;
        self.connection.take_messages(|_, message, _| {
            (words::ECHO.read)(message);
            count += 1;
        });
        count
    }
}

/// Answers questions until the process ends.
pub(crate) async fn respond(address: &str) {
    let mut connection = Connection::open(address).await.expect("nats-server is ready");
    connection.output.extend_from_slice(format!("SUB {SUBJECT} 1\r\n").as_bytes());
    connection.settle().await;
    tokio::spawn(async move {
        loop {
            connection.read().await;
            connection.take_messages(|reply_to, message, output| {
                let mut line = Vec::with_capacity(256);
                words::write_line(&mut line, &words::parse::<words::Question>(message));
                publish(output, reply_to.expect("questions have a place for the answer"), None, &line);
            });
            connection.flush().await;
        }
    });
}

fn publish(output: &mut Vec<u8>, subject: &str, reply_to: Option<&str>, message: &[u8]) {
    let reply_to = reply_to.unwrap_or_default();
    output.extend_from_slice(format!("PUB {subject} {reply_to} {}\r\n", message.len()).as_bytes());
    output.extend_from_slice(message);
    output.extend_from_slice(b"\r\n");
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    pongs: usize,
}

impl Connection {
    async fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let output = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n".to_vec();
        let mut connection = Connection { stream, input: Vec::with_capacity(64 * 1024), output, pongs: 0 };
        connection.settle().await;
        Ok(connection)
    }

    /// Returns once the server has taken everything that was sent.
    async fn settle(&mut self) {
        let seen = self.pongs;
        self.output.extend_from_slice(b"PING\r\n");
        self.flush().await;
        while self.pongs == seen {
            self.read().await;
            self.take_messages(|_, _, _| {});
        }
    }

    async fn flush(&mut self) {
        self.stream.write_all(&self.output).await.expect("nats-server lives");
        self.output.clear();
    }

    async fn read(&mut self) {
        let n = self.stream.read_buf(&mut self.input).await.expect("nats-server lives");
        assert!(n > 0, "nats-server closed the connection");
    }

    /// Hands out every whole message that has come in: where to answer, what it says, and where to write.
    fn take_messages(&mut self, mut take: impl FnMut(Option<&str>, &[u8], &mut Vec<u8>)) {
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &self.input[at..]).map(|found| at + found) {
            let line = std::str::from_utf8(&self.input[at..end]).expect("protocol lines are text").trim_end();
            let mut next = end + 1;
            let mut parts = line.split_ascii_whitespace();
            match parts.next() {
                // MSG subject sid [reply-to] bytes
                Some("MSG") => {
                    let parts: Vec<&str> = parts.collect();
                    let bytes: usize = parts.last().and_then(|n| n.parse().ok()).expect("MSG has a size");
                    if self.input.len() < next + bytes + 2 {
                        break;
                    }
                    let reply_to = (parts.len() == 4).then(|| parts[2]);
                    take(reply_to, &self.input[next..next + bytes], &mut self.output);
                    next += bytes + 2;
                }
                Some("PING") => self.output.extend_from_slice(b"PONG\r\n"),
                Some("PONG") => self.pongs += 1,
                Some("-ERR") => panic!("nats-server: {line}"),
                _ => {}
            }
            at = next;
        }
        self.input.drain(..at);
    }
}

/// The server process, ended by its own handle.
struct NatsServer(Child);

impl NatsServer {
    fn start(port: u16) -> Option<Self> {
        // Debian puts it where the path of an ordinary user does not look.
        ["nats-server", "/usr/sbin/nats-server"].iter().find_map(|program| {
            Command::new(program)
                .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
                .map(NatsServer)
        })
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
