//! How much a server may say, and how fast.
//!
//! A server that never ends a message, or never stops, must not take our memory or our time. [`Flow`] counts what comes
//! in as raw bytes, before anything is parsed; past a limit the connection is given up for good.

use std::time::Duration;

use tokio::time::Instant;

/// The longest message.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// How long is counted together.
const WINDOW: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Far more than progress and logs ever need.
const MAX_MESSAGES: usize = 10_000;

/// What a server has done too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuch {
    #[error("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES / 1024 / 1024)]
    Message,
    #[error("it sent more than {} MiB within {} s", MAX_BYTES / 1024 / 1024, WINDOW.as_secs())]
    Bytes,
    #[error("it sent more than {MAX_MESSAGES} messages within {} s", WINDOW.as_secs())]
    Messages,
}

/// What ends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The end of a line.
    Lines,
    /// An empty line.
    Events,
}

/// Counts what one server says.
#[derive(Debug)]
pub(super) struct Flow {
    framing: Framing,
    /// Bytes of the message that has begun.
    message: usize,
    /// Whether the line that has begun is empty so far.
    line_is_empty: bool,
    window: Instant,
    bytes: usize,
    messages: usize,
}

impl Flow {
    pub(super) fn new(framing: Framing, now: Instant) -> Self {
        Flow { framing, message: 0, line_is_empty: true, window: now, bytes: 0, messages: 0 }
    }

    /// Takes note of what has come.
    pub(super) fn take(&mut self, chunk: &[u8], now: Instant) -> Result<(), TooMuch> {
        if now.duration_since(self.window) >= WINDOW {
            (self.window, self.bytes, self.messages) = (now, 0, 0);
        }
        self.bytes += chunk.len();
        for byte in chunk {
            self.message += 1;
            match byte {
                b'\n' => {
                    if self.framing == Framing::Lines || self.line_is_empty {
                        self.message = 0;
                        self.messages += 1;
                    }
                    self.line_is_empty = true;
                }
                b'\r' => {}
                _ => self.line_is_empty = false,
            }
            if self.message > MAX_MESSAGE_BYTES {
                return Err(TooMuch::Message);
            }
        }
        if self.bytes > MAX_BYTES {
            return Err(TooMuch::Bytes);
        }
        if self.messages > MAX_MESSAGES {
            return Err(TooMuch::Messages);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_be_long_but_not_endless() {
        let now = Instant::now();
        for (framing, end) in [(Framing::Lines, "\n"), (Framing::Events, "\r\n\r\n")] {
            let mut flow = Flow::new(framing, now);
            let long = vec![b'x'; MAX_MESSAGE_BYTES - 8];
            for _ in 0..3 {
                flow.take(&long, now).unwrap();
                flow.take(end.as_bytes(), now).unwrap();
            }
            flow.take(&long, now).unwrap();
            assert_eq!(flow.take(b"123456789", now), Err(TooMuch::Message));
        }
    }

    #[test]
    fn lines_do_not_end_an_event() {
        let mut flow = Flow::new(Framing::Events, Instant::now());
        let line = [b"data: ".as_slice(), &[b'x'; 1024 * 1024], b"\n"].concat();
        let taken = (0..9).map(|_| flow.take(&line, Instant::now())).find(Result::is_err);
        assert_eq!(taken, Some(Err(TooMuch::Message)));
    }

    #[test]
    fn a_flood_is_noticed_and_a_slow_stream_is_not() {
        let now = Instant::now();
        let mut flow = Flow::new(Framing::Lines, now);
        let mut flood = (0..).map(|_| flow.take(&b"{}\n".repeat(100), now));
        assert_eq!(flood.find(Result::is_err), Some(Err(TooMuch::Messages)));
        let mut flow = Flow::new(Framing::Lines, now);
        let mut chunk = vec![b'x'; 1024 * 1024];
        chunk.push(b'\n');
        let mut flood = (0..).map(|_| flow.take(&chunk, now));
        assert_eq!(flood.find(Result::is_err), Some(Err(TooMuch::Bytes)));
        let mut flow = Flow::new(Framing::Lines, now);
        for second in 0..1000 {
            flow.take(&chunk, now + Duration::from_secs(second)).unwrap();
        }
    }
}
