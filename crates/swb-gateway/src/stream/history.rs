//! Reading a file in small pieces, for a reader that is not at its end yet.

use std::hash::RandomState;
use std::time::Duration;

use swb_journal::message_bus::{FollowFrom, Follower, MessageBus, Polled, ReadError};

use super::frame::Frames;
use super::pace::Pace;

/// A follower that wants to look again this soon has seen a record that may be only half there.
const HALF_WRITTEN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct History {
    follower: Follower,
    pace: Pace,
}

/// One piece.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) frames: Frames,
    /// This look reached the end of the file.
    pub(super) end: bool,
    /// How long to wait before the next look.
    pub(super) pause: Option<Duration>,
}

impl History {
    /// From a place on. A cursor that is not on the bus means the whole bus: better twice than not at all. Also says
    /// whether the place was known.
    pub(super) fn open(bus: &MessageBus, from: &FollowFrom) -> Result<(Self, bool), ReadError> {
        let (follower, known) = match bus.follow(from) {
            Err(error) if error.is_unknown_cursor() => (bus.follow(&FollowFrom::Beginning)?, false),
            opened => (opened?, true),
        };
        Ok((History { follower, pace: Pace::default() }, known))
    }

    /// The next piece. Reads the file: not for a task.
    pub(super) fn next(&mut self, hasher: &RandomState) -> Result<Piece, ReadError> {
        let polled = self.follower.poll_at_most(self.pace.messages())?;
        let frames = Frames::format(&polled.events, hasher);
        self.pace.adapt(&frames);
        let pause = polled.recheck.filter(|_| !polled.more && is_half_written(&polled));
        Ok(Piece { frames, end: !polled.more && pause.is_none(), pause })
    }
}

/// Whether the last record was not there in full yet.
pub(super) fn is_half_written(polled: &Polled) -> bool {
    polled.recheck.is_some_and(|recheck| recheck < HALF_WRITTEN)
}
