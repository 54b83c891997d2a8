//! The other end of a host: starting one, finding one again, and talking to it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

use crate::entry::{self, Told};
use crate::host::Options;
use crate::mark;
use crate::wire::{self, Reply, Request, Status, VERSION};

/// Starts a host of this binary, which outlives us. Returns its process when it listens and its child runs.
pub async fn start(options: &Options, program: &Path, log: File) -> io::Result<Child> {
    let Options { socket, limits, walls, folder, environment, command } = options;
    let told = Told { socket: socket.clone(), ring: limits.ring, cap: limits.cap, walls: walls.clone() };
    let told: OsString = serde_json::to_string(&told)?.into();
    let mut host = Command::new(program);
    host.arg(entry::HOST).arg(told).arg("--").args(command);
    // A host is nobody's child.
    host.env_remove(mark::VARIABLE);
    host.envs(environment.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = folder {
        host.current_dir(folder);
    }
    host.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut host = host.spawn()?;
    let mut said = String::new();
    if let Some(mut stdout) = host.stdout.take() {
        stdout.read_to_string(&mut said).await?;
    }
    if said == "ready\n" {
        return Ok(host);
    }
    let status = host.wait().await?;
    Err(io::Error::other(format!("the host ended before it was ready ({status}); its log says why")))
}

/// A connection to a host. Requests and replies go their own ways: a host says things unasked.
#[derive(Debug)]
pub struct HostClient {
    /// What is asked.
    pub requests: Requests,
    /// What is said.
    pub replies: Replies,
}

/// The asking half.
#[derive(Debug)]
pub struct Requests {
    socket: OwnedWriteHalf,
}

/// The listening half.
#[derive(Debug)]
pub struct Replies {
    socket: OwnedReadHalf,
    input: Vec<u8>,
}

impl HostClient {
    /// Connects to a host and greets it.
    pub async fn connect(socket: &Path) -> io::Result<(Self, Status)> {
        let (reader, writer) = UnixStream::connect(socket).await?.into_split();
        let mut requests = Requests { socket: writer };
        let mut replies = Replies { socket: reader, input: Vec::new() };
        requests.send(&Request::Hello { version: VERSION }).await?;
        match replies.next().await? {
            Some(Reply::Status(status)) => Ok((HostClient { requests, replies }, status)),
            Some(other) => Err(io::Error::other(format!("the host answered a greeting with {other:?}"))),
            None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the host does not talk to us")),
        }
    }
}

impl Requests {
    /// Asks.
    pub async fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut frame = Vec::new();
        request.write(&mut frame);
        self.socket.write_all(&frame).await
    }
}

impl Replies {
    /// What the host says next; `None` once it is gone. What a later version says is passed over. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<Reply>> {
        loop {
            if let Some((kind, body, length)) = wire::split(&self.input).map_err(io::Error::other)? {
                let reply = Reply::read(kind, body);
                self.input.drain(..length);
                match reply {
                    Ok(reply) => return Ok(Some(reply)),
                    Err(wire::FrameError::Kind(_)) => continue,
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }
}
