//! Whoever keeps account of what was posted here, and by whom.
//!
//! A file does not say who has written to it. So the bus of a task that somebody works on is accounted for: a message is
//! expected before it is written, and its poster is noted before that poster is told. Whoever reads a message that is not
//! noted, and waits until nothing is expected any more, knows that it came another way.

use std::fmt;

use swb_journal::message_bus::Draft;
use swb_proto::Actor;

/// Keeps account.
pub trait Postmaster: Send + Sync + fmt::Debug {
    /// A message is about to be written to the bus of a task. `None` if that is of no interest.
    fn expect(&self, project: &str, task: &str) -> Option<Box<dyn Expected>>;
}

/// A message that is about to be written. Dropped, it was not.
pub trait Expected: Send + fmt::Debug {
    /// It is in its file, under this id. May wait for the disk.
    fn posted(self: Box<Self>, msg_id: &str, draft: &Draft, actor: &Actor);
}
