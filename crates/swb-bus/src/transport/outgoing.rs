//! Bytes that wait to be written, and when there are too many of them.

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

    /// Writes what can be written now. Cancel safe: a byte is either in the kernel or still here.
    pub(super) async fn write_some(&mut self, stream: &mut WriteHalf<'_>) -> io::Result<()> {
        let n = stream.write(&self.bytes[self.written..]).await?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.advance(n);
        Ok(())
    }

    /// Writes what the kernel takes without waiting.
    pub(super) fn try_write(&mut self, stream: &WriteHalf<'_>) -> io::Result<()> {
        while !self.is_empty() {
            match stream.try_write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.advance(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
