//! Bytes that wait to be written, and when there are too many of them.
//!
//! A peer that has hung up takes nothing any more; what is for it is dropped. That is no reason to stop reading: lines it
//! sent before it left still count, and its end is met there.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::WriteHalf;

/// Above this a connection takes no more work: no line is read, no event is fetched, until the peer has read.
pub(super) const HIGH_WATER: usize = 256 * 1024;
/// A buffer that grew for a large answer is given back once it is empty.
const KEEP_CAPACITY: usize = 16 * 1024;

/// An output buffer that remembers how far it was written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// The peer has hung up.
    gone: bool,
}

impl Outgoing {
    /// Where to append.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() - self.written > HIGH_WATER
    }

    /// Waits until something can be written, and writes it. Cancel safe: a byte is either in the kernel or still here.
    pub(super) async fn write_some(&mut self, stream: &mut WriteHalf<'_>) {
        match stream.write(&self.bytes[self.written..]).await {
            Ok(n) if n > 0 => self.advance(n),
            Ok(_) | Err(_) => self.hang_up(),
        }
    }

    /// Writes what the kernel takes without waiting.
    pub(super) fn try_write(&mut self, stream: &WriteHalf<'_>) {
        if self.gone {
            return self.hang_up();
        }
        while !self.is_empty() {
            match stream.try_write(&self.bytes[self.written..]) {
                Ok(n) if n > 0 => self.advance(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => self.hang_up(),
            }
        }
    }

    fn hang_up(&mut self) {
        self.gone = true;
        self.bytes = Vec::new();
        self.written = 0;
    }

    fn advance(&mut self, n: usize) {
        self.written += n;
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
            self.bytes.shrink_to(KEEP_CAPACITY);
        } else if self.written > HIGH_WATER {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}
