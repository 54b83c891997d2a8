//! The bare way of words: a pipe, a process that passes bytes on, a socket, a process that reads each line as JSON and
//! writes it anew, and a socket to whoever listens.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::wait_for;

use crate::talker::TALKER;

/// The arguments that make this program one of the two.
pub(crate) const PASSER: &str = "--passer";
pub(crate) const REWRITER: &str = "--rewriter";

/// Both processes, and the end of the way.
pub(crate) struct Relay {
    passer: Child,
    rewriter: Child,
    lines: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl Relay {
    pub(crate) fn start(folder: &Path) -> Self {
        let (inner, outer) = (folder.join("inner.sock"), folder.join("outer.sock"));
        let this = std::env::current_exe().expect("this program");
        let mut rewriter = Command::new(&this);
        let rewriter = rewriter.arg(REWRITER).args([&inner, &outer]).spawn().expect("a process");
        wait_for("both sockets", || (inner.exists() && outer.exists()).then_some(()));
        let lines = BufReader::with_capacity(64 * 1024, UnixStream::connect(&outer).expect("a socket"));
        let mut passer = Command::new(&this);
        let passer = passer.arg(PASSER).arg(&inner).stdin(Stdio::piped()).spawn().expect("a process");
        let mut relay = Relay { passer, rewriter, lines, line: Vec::new() };
        relay.next();
        relay
    }

    /// Says a prompt and reads to its end; how many words came.
    pub(crate) fn round(&mut self, prompt: &str) -> u32 {
        let line = json!({ "type": "prompt", "id": "p", "message": prompt });
        writeln!(self.passer.stdin.as_ref().expect("a pipe"), "{line}").expect("it listens");
        let mut words = 0;
        loop {
            let line = self.next();
            if line.contains("text_delta") {
                words += 1;
            } else if line.contains(r#""type":"response""#) {
                return words;
            }
        }
    }

    fn next(&mut self) -> &str {
        self.line.clear();
        let read = self.lines.read_until(b'\n', &mut self.line).expect("a line");
        assert!(read > 0, "the relay has ended");
        std::str::from_utf8(&self.line).expect("JSON is UTF-8")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for child in [&mut self.passer, &mut self.rewriter] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the talker behind a pipe, and passes on what it says.
pub(crate) fn pass(socket: &str) {
    let mut talker = Command::new(std::env::current_exe().expect("this program"));
    let mut talker = talker.arg(TALKER).stdout(Stdio::piped()).spawn().expect("a child");
    let mut out = UnixStream::connect(socket).expect("a socket");
    let mut pipe = talker.stdout.take().expect("a pipe");
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        if out.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = talker.wait();
}

/// Reads lines from one socket and writes them to another, each in an envelope with its number.
pub(crate) fn rewrite(inner: &str, outer: &str) {
    let bind = |path| UnixListener::bind(path).expect("a socket");
    let (inner, outer) = (bind(inner), bind(outer));
    let (listener, _) = outer.accept().expect("a listener");
    let (source, _) = inner.accept().expect("a source");
    let mut lines = BufReader::with_capacity(64 * 1024, source);
    let mut out = BufWriter::with_capacity(64 * 1024, listener);
    let (mut line, mut seq) = (Vec::new(), 0_u64);
    while let Ok(1..) = lines.read_until(b'\n', &mut line) {
        let payload: Value = serde_json::from_slice(&line).unwrap_or_default();
        seq += 1;
        let event = json!({ "seq": seq, "payload": payload });
        if writeln!(out, "{event}").is_err() {
            return;
        }
        line.clear();
        // What has come is passed on before more is waited for.
        if lines.buffer().is_empty() && out.flush().is_err() {
            return;
        }
    }
}
