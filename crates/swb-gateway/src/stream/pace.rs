//! How many messages to take at a time: as many as weigh little, judged by those before.

use super::frame::Frames;

const LOOK_BYTES: usize = 64 * 1024;
const FIRST_LOOK: usize = 32;
const MOST_MESSAGES: usize = 512;

/// The size of the next look at a file. A client that takes its time holds one look, and so does a ring at least.
#[derive(Debug)]
pub(super) struct Pace(usize);

impl Default for Pace {
    fn default() -> Self {
        Pace(FIRST_LOOK)
    }
}

impl Pace {
    pub(super) fn messages(&self) -> usize {
        self.0
    }

    /// Learns from a look. It grows slowly, because the next messages may be the heavy ones.
    pub(super) fn adapt(&mut self, frames: &Frames) {
        if let Some(weight) = frames.bytes.len().checked_div(frames.marks.len()) {
            self.0 = (LOOK_BYTES / weight.max(1)).clamp(1, MOST_MESSAGES).min(self.0 * 2);
        }
    }
}
