//! What a call is answered with, step by step.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Shared;

/// So long a write may wait before the peer counts as held up.
const HELD_UP: Duration = Duration::from_millis(300);

/// A place in a stream where it waits until the test lets it go on.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets the stream go on.
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Long enough for any test, so that a failed one does not leave a thread behind for ever.
        let _ = self.0.1.wait_timeout_while(open, crate::PATIENCE * 2, |open| !*open);
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// A piece of the body, in one write and one chunk.
    Send(Vec<u8>),
    /// The same piece many times.
    Flood(Vec<u8>, u64),
    Wait(Gate),
    /// Silence until the other side hangs up.
    Stall,
    /// The end, in good form.
    End,
    /// The end without any form.
    Cut,
    /// Nothing at all, not even a status.
    Reset,
}

impl Reply {
    fn new(status: u16, content_type: &str, steps: Vec<Step>) -> Self {
        Reply { status, headers: vec![("content-type".to_owned(), content_type.to_owned())], steps }
    }

    /// A whole stream of these frames.
    pub fn stream(frames: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self::opening().frames(frames).end()
    }

    /// A stream that has still to be given its frames and its end.
    pub fn opening() -> Self {
        Self::new(200, "text/event-stream", Vec::new())
    }

    /// An answer that is no stream.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, "application/json", vec![Step::Send(body.into().into_bytes()), Step::End])
    }

    /// The connection is closed before anything was said.
    pub fn reset() -> Self {
        Self::new(0, "", vec![Step::Reset])
    }

    /// The connection is taken and nothing is said.
    pub fn silent() -> Self {
        Self::new(0, "", vec![Step::Stall])
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Then these frames, each on its own.
    #[must_use]
    pub fn frames(mut self, frames: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.steps.extend(frames.into_iter().map(|frame| Step::Send(frame.as_ref().as_bytes().to_vec())));
        self
    }

    /// Then these bytes, so many at a time, whatever they belong to.
    #[must_use]
    pub fn split(mut self, frames: impl IntoIterator<Item = impl AsRef<str>>, size: usize) -> Self {
        let bytes: Vec<u8> =
            frames.into_iter().flat_map(|frame| frame.as_ref().as_bytes().to_vec()).collect();
        self.steps.extend(bytes.chunks(size).map(|chunk| Step::Send(chunk.to_vec())));
        self
    }

    /// Then these bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// Then the same frame so many times.
    #[must_use]
    pub fn flood(mut self, frame: &str, count: u64) -> Self {
        self.steps.push(Step::Flood(frame.as_bytes().to_vec(), count));
        self
    }

    /// Then nothing until the gate is opened.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Then nothing any more, with the connection open.
    #[must_use]
    pub fn stall(mut self) -> Self {
        self.steps.push(Step::Stall);
        self
    }

    /// Then the end, in good form.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.steps.push(Step::End);
        self
    }

    /// Then the end of the connection in the middle of the body.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    pub(super) fn send(self, connection: &mut TcpStream, shared: &Shared) -> io::Result<()> {
        connection.set_nodelay(true)?;
        connection.set_write_timeout(Some(HELD_UP))?;
        if self.status != 0 {
            let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
            for (name, value) in &self.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
            write(connection, head.as_bytes(), shared)?;
        }
        for step in self.steps {
            match step {
                Step::Send(bytes) => send_chunk(connection, &bytes, shared)?,
                Step::Flood(bytes, count) => {
                    // Many to a chunk: what is flooded is the reader, not the network.
                    let many = bytes.repeat((64 * 1024 / bytes.len()).max(1));
                    let each = many.len() / bytes.len();
                    for _ in 0..count / each as u64 {
                        send_chunk(connection, &many, shared)?;
                    }
                    for _ in 0..count % each as u64 {
                        send_chunk(connection, &bytes, shared)?;
                    }
                }
                Step::Wait(gate) => gate.pass(),
                Step::Stall => {
                    // Whatever comes now is the end of it.
                    let _ = connection.read(&mut [0]);
                    return Err(ErrorKind::ConnectionAborted.into());
                }
                Step::End => write(connection, b"0\r\n\r\n", shared)?,
                Step::Cut | Step::Reset => {
                    connection.shutdown(Shutdown::Both)?;
                    return Ok(());
                }
            }
        }
        // The other side reads to the end before the connection goes.
        connection.shutdown(Shutdown::Write)?;
        let _ = io::copy(connection, &mut io::sink());
        Ok(())
    }
}

fn send_chunk(connection: &mut TcpStream, bytes: &[u8], shared: &Shared) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    write(connection, &chunk, shared)?;
    shared.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(())
}

/// Writes all of it, however long the other side takes.
fn write(connection: &mut TcpStream, mut bytes: &[u8], shared: &Shared) -> io::Result<()> {
    while !bytes.is_empty() {
        match connection.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                shared.held_up.store(true, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
