//! Group commit: many appends, one `fdatasync`.
//!
//! Each append takes a ticket after its write. Whoever finds no sync under way becomes the leader and syncs everything
//! written up to that moment; the others wait and are usually covered by it. A lone writer syncs at once.
//! A failed sync fails every append it was to cover: after it nobody knows which pages reached the disk.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::segment::Segment;

/// The shared state of all appenders of one opened bus.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The file the newest write went to.
    file: Option<Arc<Segment>>,
    written: u64,
    synced: u64,
    /// The newest range of tickets whose sync failed.
    failed: Option<Failure>,
    syncing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    after: u64,
    up_to: u64,
    kind: io::ErrorKind,
}

impl GroupCommit {
    /// Notes a finished write to this file; the ticket asks for it to be synced.
    pub(super) fn written(&self, file: &Arc<Segment>) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let moved_on = state.file.as_ref().is_none_or(|current| !Arc::ptr_eq(current, file));
        if moved_on {
            // A later sync goes to the new file, so the old one must be safe first.
            if let Some(old) = state.file.replace(Arc::clone(file))
                && state.synced < state.written
            {
                let (after, up_to) = (state.synced, state.written);
                state.settle(after, up_to, old.file.sync_data());
                self.done.notify_all();
            }
        }
        state.written += 1;
        state.written
    }

    /// Returns once the write of this ticket is on the disk.
    pub(super) fn sync(&self, ticket: u64) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(Failure { after, up_to, kind }) = state.failed
                && after < ticket
                && ticket <= up_to
            {
                return Err(kind.into());
            }
            if state.synced >= ticket {
                return Ok(());
            }
            if state.syncing {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(file) = state.file.clone() else { return Ok(()) };
            state.syncing = true;
            let (after, up_to) = (state.synced, state.written);
            drop(state);
            let result = file.file.sync_data();
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.syncing = false;
            state.settle(after, up_to, result);
            self.done.notify_all();
        }
    }
}

impl State {
    fn settle(&mut self, after: u64, up_to: u64, result: io::Result<()>) {
        self.synced = self.synced.max(up_to);
        if let Err(error) = result {
            self.failed = Some(Failure { after, up_to, kind: error.kind() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::message_bus::place::FileIdentity;

    fn segment(file: File) -> Arc<Segment> {
        let identity = FileIdentity { device: 0, inode: 0 };
        Arc::new(Segment { file, name: String::new(), identity, opened_len: 0 })
    }

    #[test]
    fn every_ticket_is_covered_and_a_failure_is_told_to_those_it_was_for() {
        let commit = GroupCommit::default();
        let file = segment(tempfile::tempfile().unwrap());
        let (first, second) = (commit.written(&file), commit.written(&file));
        commit.sync(second).unwrap();
        commit.sync(first).unwrap();
        // A pipe cannot be synced.
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = segment(File::from(OwnedFd::from(reader)));
        let (third, fourth) = (commit.written(&pipe), commit.written(&pipe));
        assert!(commit.sync(third).is_err());
        assert!(commit.sync(fourth).is_err(), "the failed sync was for this one too");
        let fifth = commit.written(&pipe);
        let sixth = commit.written(&file);
        assert!(commit.sync(fifth).is_err(), "moving on to another file syncs the old one");
        commit.sync(sixth).unwrap();
    }
}
