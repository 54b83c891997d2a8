//! The line to an agent: its host, what was written to it, and how far its output was understood.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use swb_host::HostClient;
use swb_host::wire::{Containment, Exit, Reply, Request, Status, Stream};

use swb_proto::agent::Command;
use swb_proto::run::Attended;
use tokio::time::timeout;

use super::hearing::{Ear, Heard};
use super::output::Output;

/// How much of what an agent complains of is remembered.
const LAST_WORDS: usize = 4096;
/// How long an agent may take to end by itself.
const GOODBYE: Duration = Duration::from_secs(3);
const KILL: u8 = 9;
/// The most bytes of one write.
const MOST_WRITTEN: usize = swb_host::wire::MAX_PIECE;

/// A line to one process.
#[derive(Debug)]
pub(super) struct Link {
    host: HostClient,
    /// The number of the last write.
    written: u64,
    output: Output,
    pub(super) ear: Ear,
    /// What it said of itself, once it did.
    pub(super) model: Option<String>,
    /// Which of the processes of its session it is.
    pub(super) generation: u32,
    /// A place in its output at which nothing was open.
    pub(super) rest: u64,
    /// Pieces of progress since then.
    pub(super) nth: u64,
    /// Pieces of progress, from there on, that were told before.
    pub(super) told: u64,
    pub(super) containment: String,
    /// The agent it was started as, and who could be asked then.
    pub(super) started_for: Option<(String, Attended)>,
    complaints: Vec<u8>,
}

/// What comes along a line.
#[derive(Debug)]
pub(super) enum Came {
    /// Something that was understood.
    Heard(Vec<Heard>),
    /// It complained; [`Link::noted`] lets the host forget it.
    Complained { upto: u64 },
    /// The process is gone.
    Exited(Exit),
    /// The host is gone, and the process with it.
    Lost,
    /// Nothing of interest.
    Nothing,
}

impl Link {
    /// Connects to a host. `from` is a place in the output at which nothing was open, and how much was told behind it.
    pub(super) async fn connect(socket: &Path, generation: u32, from: (u64, u64)) -> io::Result<Self> {
        let (mut host, status) = HostClient::connect(socket).await?;
        let (rest, told) = from;
        for (stream, from) in [(Stream::Stdout, rest), (Stream::Stderr, 0)] {
            host.requests.send(&Request::Follow { stream, from }).await?;
        }
        Ok(Link {
            host,
            written: taken(&status),
            output: Output::from(rest),
            ear: Ear::default(),
            model: None,
            generation,
            rest,
            nth: 0,
            told,
            containment: describe(&status.containment),
            started_for: None,
            complaints: Vec::new(),
        })
    }

    /// The place behind the last line that was heard.
    pub(super) fn place(&self) -> u64 {
        self.output.place()
    }

    /// Writes a word. Whether the agent heeds it is another matter.
    pub(super) async fn say(&mut self, word: &impl Serialize) -> io::Result<()> {
        let mut line = Vec::new();
        swb_proto::agent::encode(word, &mut line)?;
        for piece in line.chunks(MOST_WRITTEN) {
            self.written += 1;
            let write = Request::Write { stream: Stream::Stdin, number: self.written, bytes: piece.to_vec() };
            self.host.requests.send(&write).await?;
        }
        Ok(())
    }

    async fn signal(&mut self, signal: u8) {
        // A host that is gone has ended them.
        let _ = self.host.requests.send(&Request::Signal { signal, to_all: true }).await;
    }

    /// Nothing before this place is needed any more.
    pub(super) async fn settle(&mut self, place: u64) {
        (self.rest, self.nth) = (place, 0);
        self.acknowledge(Stream::Stdout, place).await;
    }

    /// Complaints up to here were noted.
    pub(super) async fn noted(&mut self, upto: u64) {
        self.acknowledge(Stream::Stderr, upto).await;
    }

    /// Writes a word whose last piece has this number, unless the host has it already.
    pub(super) async fn say_again(&mut self, word: &impl Serialize, number: u64) -> io::Result<()> {
        if self.written >= number {
            return Ok(());
        }
        let mut line = Vec::new();
        swb_proto::agent::encode(word, &mut line)?;
        self.written = number - line.chunks(MOST_WRITTEN).len() as u64;
        self.say(word).await
    }

    /// The number that the last piece of a word would have.
    pub(super) fn number_of(&self, word: &impl Serialize) -> io::Result<u64> {
        let mut line = Vec::new();
        swb_proto::agent::encode(word, &mut line)?;
        Ok(self.written + line.chunks(MOST_WRITTEN).len() as u64)
    }

    async fn acknowledge(&mut self, stream: Stream, upto: u64) {
        let _ = self.host.requests.send(&Request::Acknowledge { stream, upto }).await;
    }

    /// Ends the process with everything it has started. What it is at is aborted first: an agent that is told to end lets
    /// a turn come to its own end.
    pub(super) async fn end(mut self) {
        let _ = self.say(&Command::Abort { id: "leaving".to_owned() }).await;
        let _ = self.say(&Command::Shutdown).await;
        if timeout(GOODBYE, self.gone()).await.is_err() {
            self.signal(KILL).await;
            // A host keeps an exit that nobody has seen, and stays for it.
            let _ = timeout(GOODBYE, self.gone()).await;
        }
        let _ = timeout(GOODBYE, self.release()).await;
    }

    /// Waits until the process is gone.
    async fn gone(&mut self) {
        let unheard = |_: &[u8]| String::new();
        while !matches!(self.next(&unheard).await, Came::Exited(_) | Came::Lost) {}
    }

    /// Ends everything that the agent has started, the agent too.
    pub(super) async fn kill(&mut self) {
        self.signal(KILL).await;
    }

    /// The host may go.
    pub(super) async fn release(mut self) {
        if self.host.requests.send(&Request::Release).await.is_ok() {
            while self.host.replies.next().await.is_ok_and(|reply| reply.is_some()) {}
        }
    }

    /// What the agent complained of last.
    pub(super) fn complaints(&self) -> String {
        String::from_utf8_lossy(&self.complaints).trim().to_owned()
    }

    /// What comes next. Cancel safe.
    pub(super) async fn next(&mut self, hash: &(dyn Fn(&[u8]) -> String + Sync)) -> Came {
        match self.host.replies.next().await {
            Ok(Some(Reply::Data { stream: Stream::Stdout, offset, bytes })) => {
                let mut heard = Vec::new();
                let ear = &mut self.ear;
                let lines = |line: &[u8], end: u64| {
                    let before = heard.len();
                    ear.hear(line, hash, &mut heard);
                    if heard.len() > before {
                        heard.push(Heard::Place { end, at_rest: ear.is_at_rest() });
                    }
                };
                self.output.put(offset, &bytes, lines);
                Came::Heard(heard)
            }
            Ok(Some(Reply::Data { stream: Stream::Stderr, offset, bytes })) => {
                self.complaints.extend_from_slice(&bytes);
                let too_much = self.complaints.len().saturating_sub(LAST_WORDS);
                self.complaints.drain(..too_much);
                Came::Complained { upto: offset + bytes.len() as u64 }
            }
            Ok(Some(Reply::Gap { stream: Stream::Stdout, to, .. })) => {
                // A daemon before us needed nothing before this place any more: it had told all of it.
                self.output = Output::from(to);
                (self.rest, self.nth, self.told) = (to, 0, 0);
                Came::Nothing
            }
            Ok(Some(Reply::Exited(exit))) => Came::Exited(exit),
            Ok(Some(Reply::Refused { kind, reason })) => {
                tracing::warn!(kind, reason, "a host refused");
                Came::Nothing
            }
            Ok(Some(_)) => Came::Nothing,
            Ok(None) | Err(_) => Came::Lost,
        }
    }
}

fn taken(status: &Status) -> u64 {
    status.input.iter().find(|input| input.stream == Stream::Stdin).map_or(0, |input| input.taken)
}

fn describe(containment: &Containment) -> String {
    match containment {
        Containment::Namespaces => "contained".to_owned(),
        Containment::Advisory { reason } => format!("advisory: {reason}"),
        Containment::Off => "off".to_owned(),
    }
}
