//! Other programs that keep messages, as they come from the distribution and only if they are installed.
//!
//! Each is started on a free port (or none) with its files in a folder of its own, takes messages of 1 KiB one after
//! the other, the next one only after the last was acknowledged, and is ended by its own process id. The protocols are
//! spoken by hand: a few lines each, and no client library to blame for a result.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const MESSAGES: usize = 20_000;

/// A peer's name for the row, and its rate in messages per second; `None` if it is not installed.
pub(crate) type Row = (&'static str, fn(&Path) -> Option<f64>);

pub(crate) const ROWS: [Row; 3] = [
    ("redis-server, XADD, sequential, appendfsync everysec", redis),
    ("nats-server, JetStream file store, sequential ack", jet_stream),
    ("sqlite3 shell, WAL, synchronous NORMAL, one insert per transaction", sqlite),
];

/// A peer that ends with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts a program and waits until it takes connections. `None` if there is no such program.
    fn start(command: &mut Command, port: u16) -> Option<(Self, TcpStream)> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = match spawned {
            Ok(child) => Self(child),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("cannot start {command:?}: {error}"),
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => {
                    stream.set_nodelay(true).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    return Some((server, stream));
                }
                Err(error) => assert!(Instant::now() < deadline, "{command:?} takes no connection: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Messages per second of an exchange that returns when its message is acknowledged.
fn rate_of(mut exchange: impl FnMut()) -> f64 {
    (0..MESSAGES / 20).for_each(|_| exchange());
    let start = Instant::now();
    (0..MESSAGES).for_each(|_| exchange());
    super::rate(MESSAGES, start.elapsed())
}

fn redis(dir: &Path) -> Option<f64> {
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(dir);
    let (_server, mut stream) = Server::start(&mut command, port)?;
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let parts = ["XADD", "bench", "*", "body", &"x".repeat(1024)];
    let mut request = format!("*{}\r\n", parts.len());
    parts.iter().for_each(|part| request.push_str(&format!("${}\r\n{part}\r\n", part.len())));
    let mut line = String::new();
    Some(rate_of(|| {
        stream.write_all(request.as_bytes()).unwrap();
        // A length and the id, or an error.
        for expected in ["$", ""] {
            line.clear();
            replies.read_line(&mut line).unwrap();
            assert!(line.starts_with(expected), "redis says {line}");
        }
    }))
}

fn jet_stream(dir: &Path) -> Option<f64> {
    let port = free_port();
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(dir);
    let (_server, mut stream) = Server::start(&mut command, port)?;
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB _INBOX.bench 1\r\n").unwrap();
    let mut ask = |subject: &str, payload: &str| {
        let request = format!("PUB {subject} _INBOX.bench {}\r\n{payload}\r\n", payload.len());
        stream.write_all(request.as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            replies.read_line(&mut line).unwrap();
            match line.split_whitespace().next() {
                Some("MSG") => {
                    let len: usize = line.split_whitespace().last().unwrap().parse().unwrap();
                    let mut answer = vec![0; len + 2];
                    replies.read_exact(&mut answer).unwrap();
                    let answer = String::from_utf8_lossy(&answer);
                    assert!(!answer.contains("\"error\""), "JetStream says {answer}");
                    return;
                }
                Some("PING") => stream.write_all(b"PONG\r\n").unwrap(),
                Some("INFO" | "+OK") => {}
                other => panic!("nats-server says {other:?}"),
            }
        }
    };
    ask("$JS.API.STREAM.CREATE.BENCH", r#"{"name":"BENCH","subjects":["bench"],"storage":"file"}"#);
    let payload = "x".repeat(1024);
    Some(rate_of(|| ask("bench", &payload)))
}

/// The shell runs a prepared script, so what is measured is the library and not a pipe.
fn sqlite(dir: &Path) -> Option<f64> {
    let script = dir.join("insert.sql");
    let insert = format!("INSERT INTO message(body) VALUES('{}');\n", "x".repeat(1024));
    std::fs::write(&script, insert.repeat(MESSAGES)).unwrap();
    let run = |commands: &[&str]| {
        let mut shell = Command::new("sqlite3");
        shell.arg(dir.join("bench.db")).args(commands);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).status()
    };
    let table = "CREATE TABLE message(id INTEGER PRIMARY KEY, body TEXT)";
    match run(&["PRAGMA journal_mode=WAL", table]) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        status => assert!(status.unwrap().success()),
    }
    let start = Instant::now();
    let status = run(&["PRAGMA synchronous=NORMAL", &format!(".read '{}'", script.display())]);
    assert!(status.unwrap().success());
    Some(super::rate(MESSAGES, start.elapsed()))
}
