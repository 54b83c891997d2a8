//! Records as they are written, for whoever watches a log of another process.

use std::sync::Arc;
use std::time::Duration;

use super::read::{AuditReadError, AuditReader};
use super::record::Record;
use super::records::Records;
use crate::watch::{self, Signal, Subscription};

/// How often to look without being told: before there is a folder to watch, or where watching does not work.
const UNTOLD: Duration = Duration::from_millis(500);

/// Records one after another, for ever.
#[derive(Debug)]
pub struct AuditFollower {
    records: Records,
    reader: AuditReader,
    signal: Arc<Signal>,
    watched: Option<Subscription>,
}

/// Ends a follower from another thread.
#[derive(Debug, Clone)]
pub struct FollowEnd(Arc<Signal>);

impl FollowEnd {
    /// Whoever waits for the next record is told that there is none.
    pub fn end(&self) {
        self.0.stop();
    }
}

impl AuditReader {
    /// The records after a number, and those that are yet to come.
    pub fn follow(&self, after: u64) -> Result<AuditFollower, AuditReadError> {
        let signal = Arc::<Signal>::default();
        let watched = watch::subscribe(self.folder(), "", &signal).ok();
        Ok(AuditFollower { records: self.records_after(after)?, reader: self.clone(), signal, watched })
    }
}

impl AuditFollower {
    /// Waits for the next record; none when it was ended.
    pub fn next_record(&mut self) -> Result<Option<Record>, AuditReadError> {
        loop {
            if self.signal.is_stopped() {
                return Ok(None);
            }
            // Before looking: what is written from now on wakes us.
            self.signal.clear();
            if let Some(record) = self.records.next() {
                return record.map(Some);
            }
            if self.watched.is_none() {
                self.watched = watch::subscribe(self.reader.folder(), "", &self.signal).ok();
            }
            self.signal.wait(Some(UNTOLD));
        }
    }

    /// What ends it.
    #[must_use]
    pub fn ending(&self) -> FollowEnd {
        FollowEnd(Arc::clone(&self.signal))
    }
}
