//! Which files are followed: one feed per file, shared by all its readers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use swb_journal::message_bus::MessageBus;

use super::feed::{Feed, FeedError};
use crate::metrics::Metrics;

#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<Followed>);

#[derive(Debug, Default)]
struct Followed {
    feeds: HashMap<PathBuf, Weak<Feed>>,
    ended: bool,
}

impl Feeds {
    /// The feed of a bus; begun if nobody reads it yet. `None` once all have ended. Reads the file: not for a task.
    pub(super) fn get(
        &self,
        bus: &MessageBus,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<Arc<Feed>>, FeedError> {
        let mut followed = self.lock();
        if followed.ended {
            return Ok(None);
        }
        let running = followed.feeds.get(bus.file_path()).and_then(Weak::upgrade);
        if let Some(feed) = running.filter(|feed| !feed.has_ended()) {
            return Ok(Some(feed));
        }
        followed.feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Feed::start(bus, metrics)?;
        followed.feeds.insert(bus.file_path().to_owned(), Arc::downgrade(&feed));
        Ok(Some(feed))
    }

    /// How many files are followed now.
    pub(crate) fn count(&self) -> usize {
        self.lock().feeds.values().filter(|feed| feed.strong_count() > 0).count()
    }

    /// Ends every stream, and lets none begin.
    pub(crate) fn end(&self) {
        let mut followed = self.lock();
        followed.ended = true;
        for feed in followed.feeds.drain().filter_map(|(_, feed)| feed.upgrade()) {
            feed.end();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
