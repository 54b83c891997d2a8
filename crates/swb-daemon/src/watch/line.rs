//! The line between a watch and its daemon: one JSON word per line over a socket pair.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use crate::description::Description;
use crate::process::Ended;

/// What a daemon tells its watch, and a watch those who started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum Word {
    /// The socket answers.
    Ready(Description),
    /// Another daemon holds the lock.
    AlreadyRunning {
        /// Its process, if it told.
        pid: Option<u32>,
    },
    /// It did not start.
    Failed {
        /// Why.
        why: String,
    },
    /// It stops because it was asked to.
    Bye,
}

/// One end of the line. A process that was started by hand has none.
#[derive(Debug)]
pub(crate) struct Line(Option<UnixStream>);

impl Line {
    /// Takes over standard input, if it is a socket, and puts nothing in its place: children must not inherit the line.
    pub(crate) fn from_stdin() -> Self {
        let stdin = std::io::stdin();
        let is_socket = rustix::fs::fstat(&stdin).is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket
        });
        if !is_socket {
            return Line(None);
        }
        let stream = stdin.as_fd().try_clone_to_owned().ok().map(UnixStream::from);
        if let Ok(nothing) = std::fs::File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(OwnedFd::from(nothing));
        }
        Line(stream)
    }

    pub(crate) fn into_stream(self) -> Option<UnixStream> {
        self.0
    }

    /// Says a word. Nobody may be listening.
    pub(crate) fn say(&mut self, word: &Word) {
        if let Some(stream) = &mut self.0 {
            let _ = stream.write_all(&encode(word));
        }
    }

    /// Says why the daemon ends before it began; without a line, standard error is told.
    pub(crate) fn fail(&mut self, why: &str) -> Ended {
        match self.0 {
            Some(_) => self.say(&Word::Failed { why: why.to_owned() }),
            None => drop(writeln!(std::io::stderr(), "swb: {why}")),
        }
        Ended::Failed
    }
}

pub(super) fn encode(word: &Word) -> Vec<u8> {
    let mut line = serde_json::to_vec(word).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The next word from the other end; `None` at the end of the line. Bytes are taken one by one: words are few and short,
/// and nothing is lost if the caller stops waiting in between words.
pub(super) async fn hear(stream: &mut tokio::net::UnixStream) -> Option<Word> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await {
            Ok(b'\n') => return serde_json::from_slice(&line).ok(),
            Ok(byte) => line.push(byte),
            Err(_) => return None,
        }
    }
}
