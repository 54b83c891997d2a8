//! Following a bus: new messages as they are posted, woken by the system's word that the file changed.
//!
//! A [`Follower`] is a tail plus a subscription. It serves two kinds of callers. A blocking one iterates, or asks for
//! the next event with a timeout; another thread ends it through a [`FollowStop`]. One with an event loop of its own
//! sets a waker, and calls [`Follower::poll`], which never blocks on the bus, whenever it was woken.
//!
//! Timers play two minor parts: a record that a writer seems to be in the middle of is looked at again shortly (a lock
//! that is given back makes no event), and where the system cannot watch a folder the follower polls.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::CWD;

use super::MessageBus;
use super::identity::FileIdentity;
use super::place::BusPath;
use super::read::{ReadError, ReadErrorKind};
use super::tail::{FollowEvent, FollowFrom, Polled, Tail};
use crate::watch::{self, Signal, Subscription};

const BATCH: usize = 1024;

impl MessageBus {
    /// Follows the bus from a place on. A bus that does not exist yet is waited for.
    ///
    /// # Errors
    /// [`ReadErrorKind::UnknownCursor`] if the message to start after is not on the bus; else as for reading.
    pub fn follow(&self, from: &FollowFrom) -> Result<Follower, ReadError> {
        Follower::new(self.path.clone(), from, self.options.poll_interval)
    }

    /// Waits for messages after this one (for any, if blank) and returns them; empty after the timeout.
    ///
    /// # Errors
    /// As for [`MessageBus::read_since`].
    pub fn wait_for_new(&self, after: &str, timeout: Duration) -> Result<Vec<super::Message>, ReadError> {
        let from =
            if after.trim().is_empty() { FollowFrom::Beginning } else { FollowFrom::After(after.to_owned()) };
        let mut follower = self.follow(&from)?;
        let deadline = Instant::now() + timeout;
        loop {
            let polled = follower.poll()?;
            let messages: Vec<_> = polled
                .events
                .into_iter()
                .filter_map(|event| match event {
                    FollowEvent::Message(message) => Some(*message),
                    FollowEvent::Rewritten => None,
                })
                .collect();
            let left = deadline.saturating_duration_since(Instant::now());
            if !messages.is_empty() || left.is_zero() {
                return Ok(messages);
            }
            follower.signal.wait(Some(follower.pause(polled.recheck).map_or(left, |pause| pause.min(left))));
        }
    }
}

/// Sees messages as they come. Iterating blocks until the next one, or ends after [`FollowStop::stop`].
#[derive(Debug)]
pub struct Follower {
    tail: Tail,
    signal: Arc<Signal>,
    watching: Option<Watching>,
    poll_interval: Duration,
    queue: VecDeque<FollowEvent>,
    more: bool,
    recheck: Option<Duration>,
}

#[derive(Debug)]
struct Watching {
    folder: PathBuf,
    identity: FileIdentity,
    _subscription: Subscription,
}

/// Ends a follower from anywhere.
#[derive(Clone, Debug)]
pub struct FollowStop(Arc<Signal>);

impl FollowStop {
    /// The follower returns from its wait and yields nothing more.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Follower {
    fn new(path: BusPath, from: &FollowFrom, poll_interval: Duration) -> Result<Self, ReadError> {
        let tail =
            Tail::new(path.clone(), from).map_err(|kind| ReadError { path: path.to_path_buf(), kind })?;
        Ok(Self {
            tail,
            signal: Arc::default(),
            watching: None,
            poll_interval,
            queue: VecDeque::new(),
            more: false,
            recheck: None,
        })
    }

    /// A handle that ends this follower.
    #[must_use]
    pub fn stopper(&self) -> FollowStop {
        FollowStop(Arc::clone(&self.signal))
    }

    /// Whether it was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.signal.is_stopped()
    }

    /// Calls this from another thread at each change and at the stop. It must be quick and must not call back.
    pub fn set_waker(&mut self, waker: impl Fn() + Send + Sync + 'static) {
        self.signal.set_waker(waker);
    }

    /// What is new right now. Blocks for file reading only. The first call begins the watching.
    ///
    /// # Errors
    /// If a file cannot be opened or read; the follower may be asked again.
    pub fn poll(&mut self) -> Result<Polled, ReadError> {
        self.poll_at_most(BATCH)
    }

    /// The same for about so many messages at a time, for a caller that wants to hold few.
    ///
    /// # Errors
    /// As for [`Follower::poll`].
    pub fn poll_at_most(&mut self, limit: usize) -> Result<Polled, ReadError> {
        // Both before looking: a change from here on is signalled again.
        self.signal.clear();
        self.watch();
        let mut polled = self.tail.poll(limit.max(1)).map_err(|kind| self.read_error(kind))?;
        if !self.queue.is_empty() {
            let mut events: Vec<_> = self.queue.drain(..).collect();
            events.append(&mut polled.events);
            polled.events = events;
        }
        polled.recheck = self.pause(polled.recheck);
        Ok(polled)
    }

    /// The next event; `None` after a stop, or when the timeout is over.
    ///
    /// # Errors
    /// As for [`Follower::poll`].
    pub fn next_event(&mut self, timeout: Option<Duration>) -> Result<Option<FollowEvent>, ReadError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            let polled = self.poll()?;
            (self.more, self.recheck) = (polled.more, polled.recheck);
            self.queue.extend(polled.events);
            if !self.queue.is_empty() || self.more {
                continue;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.signal.wait(match (left, self.recheck) {
                (Some(left), Some(recheck)) => Some(left.min(recheck)),
                (left, recheck) => left.or(recheck),
            });
        }
    }

    fn read_error(&self, kind: ReadErrorKind) -> ReadError {
        ReadError { path: self.tail.path().to_path_buf(), kind }
    }

    /// Without a watch on the bus's own folder, looking now and then has to do.
    fn pause(&self, recheck: Option<Duration>) -> Option<Duration> {
        let watched =
            self.watching.as_ref().is_some_and(|watching| watching.folder == self.tail.path().folder());
        if watched {
            recheck
        } else {
            Some(recheck.map_or(self.poll_interval, |recheck| recheck.min(self.poll_interval)))
        }
    }

    /// Watches the bus's folder, or the nearest one above it that exists; again if it was replaced.
    fn watch(&mut self) {
        let path = self.tail.path();
        let mut folder = path.folder();
        let found = loop {
            match rustix::fs::statat(CWD, folder, rustix::fs::AtFlags::empty()) {
                Ok(stat) => break Some(FileIdentity::from(&stat)),
                Err(_) => match folder.parent() {
                    Some(parent) => folder = parent,
                    None => break None,
                },
            }
        };
        let Some(identity) = found else { return };
        if self
            .watching
            .as_ref()
            .is_some_and(|watching| watching.folder == folder && watching.identity == identity)
        {
            return;
        }
        // The old one goes first: its end would also end a new watch on the same path.
        self.watching = None;
        let prefix = if folder == path.folder() { path.name() } else { "" };
        if let Ok(subscription) = watch::subscribe(folder, prefix, &self.signal) {
            self.watching =
                Some(Watching { folder: folder.to_owned(), identity, _subscription: subscription });
        }
    }
}

impl Iterator for Follower {
    type Item = Result<FollowEvent, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event(None).transpose()
    }
}
