//! The other side: a crowd of readers, and one who posts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// A thousand clients and a thousand servers of theirs are more files than a process usually may open.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Clients of a stream, all on one thread.
pub(crate) struct Crowd {
    runtime: Runtime,
    clients: usize,
    seen: Arc<Seen>,
    expected: usize,
}

#[derive(Default)]
struct Seen {
    frames: AtomicUsize,
    goal: AtomicUsize,
    reached: Notify,
}

impl Crowd {
    /// Returns once every client has its answer's head.
    pub(crate) fn join(address: SocketAddr, path: &str, clients: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let seen = Arc::new(Seen::default());
        seen.goal.store(usize::MAX, Ordering::SeqCst);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        for _ in 0..clients {
            let mut stream = runtime.block_on(tokio::net::TcpStream::connect(address)).expect("a connection");
            let mut head = [0; 2048];
            let read = runtime.block_on(async {
                stream.write_all(request.as_bytes()).await?;
                stream.read(&mut head).await
            });
            let read = read.expect("an answer");
            assert!(head[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head[..read]));
            runtime.spawn(count(stream, Arc::clone(&seen)));
        }
        Crowd { runtime, clients, seen, expected: 0 }
    }

    /// Returns once every client has so many messages more.
    pub(crate) fn wait_for(&mut self, messages: usize) {
        self.expected += messages * self.clients;
        self.seen.goal.store(self.expected, Ordering::SeqCst);
        self.runtime.block_on(async {
            while self.seen.frames.load(Ordering::SeqCst) < self.expected {
                self.seen.reached.notified().await;
            }
        });
    }
}

/// Counts the ends of frames: blank lines, which nothing else in the stream has.
async fn count(mut stream: tokio::net::TcpStream, seen: Arc<Seen>) {
    let mut buffer = vec![0; 16 * 1024];
    let mut after_newline = false;
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let mut frames = 0;
        for byte in &buffer[..read] {
            let newline = *byte == b'\n';
            frames += usize::from(newline && after_newline);
            after_newline = newline;
        }
        let before = seen.frames.fetch_add(frames, Ordering::SeqCst);
        if before + frames >= seen.goal.load(Ordering::SeqCst) {
            seen.reached.notify_one();
        }
    }
}

/// One connection, one request after another.
pub(crate) struct Poster {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Poster {
    pub(crate) fn connect(address: SocketAddr, path: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        let body = format!("{{\"type\":\"FACT\",\"body\":\"{}\"}}", "x".repeat(170));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Poster { stream, request: request.into_bytes(), buffer: vec![0; 4096] }
    }

    /// Posts and reads the answer; both servers send it whole.
    pub(crate) fn post(&mut self) {
        self.stream.write_all(&self.request).expect("a request");
        let mut read = 0;
        while !is_whole(&self.buffer[..read]) {
            let more = self.stream.read(&mut self.buffer[read..]).expect("an answer");
            assert!(more > 0, "the server hung up");
            read += more;
        }
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
