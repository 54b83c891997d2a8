//! The pipes of a server that we have started: what it says is counted, and it has to read what it is told.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, Sleep};

use super::fault::Fault;
use super::flow::{Flow, Framing};

/// How long a server may not read what it is told.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// What a server says.
#[derive(Debug)]
pub(super) struct Heard {
    pipe: ChildStdout,
    flow: Flow,
    fault: Fault,
}

impl Heard {
    pub(super) fn new(pipe: ChildStdout, fault: Fault) -> Self {
        Heard { pipe, flow: Flow::new(Framing::Lines, Instant::now()), fault }
    }
}

impl AsyncRead for Heard {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.pipe).poll_read(cx, buf))?;
        if let Err(too_much) = this.flow.take(&buf.filled()[before..], Instant::now()) {
            this.fault.raise(too_much);
            return Poll::Ready(Err(io::Error::other(too_much)));
        }
        Poll::Ready(Ok(()))
    }
}

/// What a server is told.
#[derive(Debug)]
pub(super) struct Told {
    pipe: ChildStdin,
    /// Runs while the pipe is full.
    waiting: Option<Pin<Box<Sleep>>>,
    fault: Fault,
}

impl Told {
    pub(super) fn new(pipe: ChildStdin, fault: Fault) -> Self {
        Told { pipe, waiting: None, fault }
    }

    /// Passes a result on, or an error once the server has not read for too long.
    fn patiently<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_PATIENCE)));
        ready!(waiting.as_mut().poll(cx));
        self.fault.raise(format!("it did not read for {} s", WRITE_PATIENCE.as_secs()));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Told {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.pipe).poll_write(cx, bytes);
        this.patiently(cx, result)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.pipe).poll_flush(cx);
        this.patiently(cx, result)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(cx)
    }
}
