//! The bare thing: for each line of stdin one call, whose SSE lines become frames on stdout. It keeps and checks nothing.

use std::io::{BufRead, BufReader, BufWriter, Read, Write, stdin, stdout};
use std::net::TcpStream;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The argument that makes this binary the copier.
pub(crate) const COPIER: &str = "--copier";

/// This binary as a copier from the peer.
pub(crate) fn command(url: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a bench knows where it is"));
    command.args([COPIER, url]);
    command
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Option<&'a str>,
}

#[derive(Serialize)]
struct Frame<'a> {
    r#type: &'a str,
    event: Event<'a>,
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'a str,
    delta: &'a str,
}

pub(crate) fn run() {
    let url = std::env::args().next_back().expect("the address is the last argument");
    let address = url.trim_start_matches("http://").to_owned();
    let mut out = BufWriter::with_capacity(64 * 1024, stdout().lock());
    for prompt in stdin().lines().map_while(Result::ok) {
        copy(&address, &prompt, &mut out).expect("the peer answers and the parent reads");
    }
}

fn copy(address: &str, prompt: &str, out: &mut impl Write) -> std::io::Result<()> {
    let mut connection = TcpStream::connect(address)?;
    write!(
        connection,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: peer\r\ncontent-length: {}\r\n\r\n{prompt}",
        prompt.len()
    )?;
    let mut lines = BufReader::with_capacity(64 * 1024, connection);
    let mut line = Vec::new();
    loop {
        // Whoever waits for the next piece has shown all others.
        if lines.buffer().is_empty() {
            out.flush()?;
        }
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Some(data) = line.strip_prefix(b"data: ") else { continue };
        let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(data) else { continue };
        if let Some(delta) = chunk.choices.first().and_then(|choice| choice.delta.content) {
            let frame = Frame { r#type: "message_update", event: Event { r#type: "text_delta", delta } };
            serde_json::to_writer(&mut *out, &frame)?;
            out.write_all(b"\n")?;
        }
    }
    let _ = lines.read(&mut [0]);
    out.write_all(b"{\"type\":\"response\"}\n")?;
    out.flush()
}
