//! Redaction of text that comes in chunks.

use super::category::Match;
use super::scanner::{Scanner, Sink};
use super::view::LOOK_BEHIND;

/// Redacts a stream. However the stream is cut into chunks, the result is that of [`redact`](super::redact) on the whole.
///
/// Text leaves as soon as it is certain that no secret starts in it: ordinary text at once, but for last characters that
/// may be the beginning of a prefix. What is kept back is bounded: a few kilobytes and the last chunk.
#[derive(Debug, Default)]
pub struct RedactedStream {
    scanner: Scanner,
    sink: Sink,
    text: String,
}

impl RedactedStream {
    /// A stream that comes from no terminal, or from one of unknown width.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream whose lines were wrapped at a known width: rows of a screen, for example.
    #[must_use]
    pub fn with_columns(columns: usize) -> Self {
        let mut stream = Self::default();
        // Wider lines than what is looked back on would never be seen as full.
        stream.scanner.columns = (1..LOOK_BEHIND / 4).contains(&columns).then_some(columns);
        stream
    }

    /// Takes a chunk; gives the text that can leave.
    pub fn push(&mut self, chunk: &str) -> String {
        self.text.push_str(chunk);
        self.scanner.advance(&self.text, false, &mut self.sink);
        let done = self.text.floor_char_boundary(self.scanner.done());
        // Cutting often would move the rest often.
        if done >= LOOK_BEHIND {
            self.text.drain(..done);
            self.scanner.forget(done);
        }
        std::mem::take(&mut self.sink.text)
    }

    /// Takes the end of the stream; gives the rest of the text.
    pub fn finish(mut self) -> (String, Vec<Match>) {
        self.scanner.advance(&self.text, true, &mut self.sink);
        (self.sink.text, self.sink.matches)
    }

    /// The secrets found since this was last asked.
    pub fn take_matches(&mut self) -> Vec<Match> {
        std::mem::take(&mut self.sink.matches)
    }

    /// Bytes that are kept back or needed to look back on.
    #[must_use]
    pub fn held(&self) -> usize {
        self.text.len()
    }
}
