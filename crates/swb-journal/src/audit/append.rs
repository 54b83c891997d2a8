//! Why an entry was not recorded, and what a piece of work for the writer is.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::entry::{Entry, Kind};
use super::line::{FRAME_BYTES, MAX_LINE_BYTES};
use super::moment::Moment;
use super::ticket::{Outcome, Slot, Ticket};

/// Why an entry was not recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The entry is longer than a line may be.
    #[error("an entry of {bytes} bytes is too long: the limit is {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest there is.
        limit: usize,
    },
    /// Too much is waiting to be written. The same append may work a little later.
    #[error("{bytes} bytes are waiting to be written, and there is no room for more")]
    Full {
        /// What is waiting.
        bytes: usize,
    },
    /// An earlier write failed. Whether its records are in the file is not known, so the log takes no more until it is
    /// opened again.
    #[error("the audit log takes no more records")]
    Poisoned(#[source] Arc<WriteFailure>),
    /// The log is being closed.
    #[error("the audit log is closed")]
    Closed,
}

/// A write that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteFailure {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    #[source]
    pub source: io::Error,
}

/// Most entries are no longer.
const USUAL_BYTES: usize = 1024;

/// An entry on its way into the file.
#[derive(Debug)]
pub(super) struct Work {
    text: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) of: Option<u64>,
    pub(super) event_seq: Option<u64>,
    pub(super) at: Moment,
    slot: Option<Arc<Slot>>,
}

impl Work {
    pub(super) fn new(entry: &Entry) -> Result<Self, AppendError> {
        const LIMIT: usize = MAX_LINE_BYTES - FRAME_BYTES;
        let mut text = Vec::with_capacity(USUAL_BYTES);
        entry.write_members(&mut text);
        if text.len() > LIMIT {
            return Err(AppendError::TooLong { bytes: text.len(), limit: LIMIT });
        }
        let Entry { kind, of, event_seq, at, .. } = *entry;
        Ok(Work { text, kind, of, event_seq, at, slot: None })
    }

    /// The ticket of whoever waits for it.
    pub(super) fn ticket(&mut self) -> Ticket {
        let (ticket, slot) = Ticket::new();
        self.slot = Some(slot);
        ticket
    }

    /// The entry's text.
    pub(super) fn body(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn finish(mut self, outcome: Outcome) {
        if let Some(slot) = self.slot.take() {
            slot.fill(outcome);
        }
    }
}

impl Drop for Work {
    /// Whoever waits is told, also if the writer panicked.
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.fill(Err(AppendError::Closed));
        }
    }
}
