//! What all tasks of a host share, and how they learn that it changed.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::input::Input;
use crate::output::{Limits, Output};
use crate::wire::{Containment, Exit, InStatus, OutStatus, Status, Stream, VERSION};

/// The child's streams and its end.
#[derive(Debug)]
pub(super) struct State {
    out: Vec<(Stream, Output)>,
    input: Vec<(Stream, Input)>,
    pub(super) child_pid: u32,
    pub(super) containment: Containment,
    pub(super) exit: Option<Exit>,
    pub(super) released: bool,
}

impl State {
    /// A stream out of the child; `None` for one that only goes in.
    pub(super) fn output(&mut self, stream: Stream) -> Option<&mut Output> {
        self.out.iter_mut().find(|(known, _)| *known == stream).map(|(_, output)| output)
    }

    /// A stream into the child; `None` for one that only comes out.
    pub(super) fn input(&mut self, stream: Stream) -> Option<&mut Input> {
        self.input.iter_mut().find(|(known, _)| *known == stream).map(|(_, input)| input)
    }

    pub(super) fn status(&self) -> Status {
        let out = self.out.iter().map(|(stream, output)| {
            let (kept_from, end, full) = output.extent();
            OutStatus { stream: *stream, kept_from, end, full }
        });
        let input = self.input.iter().map(|(stream, input)| {
            let (taken, waiting) = input.extent();
            InStatus { stream: *stream, taken, waiting }
        });
        Status {
            version: VERSION,
            host_pid: std::process::id(),
            child_pid: self.child_pid,
            containment: self.containment.clone(),
            exit: self.exit,
            out: out.collect(),
            input: input.collect(),
        }
    }
}

/// The state, and a number that grows with every change.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(limits: Limits, folder: &Path) -> io::Result<Self> {
        let out = Stream::OUT.into_iter().map(|stream| Ok((stream, Output::new(limits, folder)?)));
        let state = State {
            out: out.collect::<io::Result<_>>()?,
            input: Stream::IN.map(|stream| (stream, Input::default())).into(),
            child_pid: 0,
            containment: Containment::Off,
            exit: None,
            released: false,
        };
        Ok(Shared { state: Mutex::new(state), changes: watch::Sender::new(0) })
    }

    /// A look that changes nothing.
    pub(super) fn look(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change that everybody is told of.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.look());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    /// Sees every change from now on.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until `ready` finds what it looks for.
    pub(super) async fn until<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut changes = self.watch();
        loop {
            if let Some(found) = ready(&mut self.look()) {
                return found;
            }
            // The sender lives in `self`.
            let _ = changes.changed().await;
        }
    }
}
