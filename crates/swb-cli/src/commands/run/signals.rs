//! Signals, as one stream of what they mean here.

use tokio::signal::unix::{Signal as Source, SignalKind, signal};

use crate::failure::Failure;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Interrupt,
    Terminate,
    /// The terminal has gone.
    HangUp,
    /// The terminal has another size.
    Resize,
    /// Ctrl-Z.
    Stop,
    /// We were stopped, and go on.
    Continue,
}

/// All that are heard.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Source,
    terminate: Source,
    hang_up: Source,
    /// Only for somebody who draws on a terminal: anybody else is stopped in the usual way.
    terminal: Option<[Source; 3]>,
}

impl Signals {
    pub(super) fn listen(draws: bool) -> Result<Self, Failure> {
        let on = |kind: SignalKind| signal(kind);
        let raw = |signal: rustix::process::Signal| on(SignalKind::from_raw(signal.as_raw()));
        let terminal = if draws {
            let [resize, stop, go_on] = [
                rustix::process::Signal::WINCH,
                rustix::process::Signal::TSTP,
                rustix::process::Signal::CONT,
            ];
            Some([raw(resize)?, raw(stop)?, raw(go_on)?])
        } else {
            None
        };
        Ok(Signals {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
            terminal,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.hang_up.recv() => Signal::HangUp,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            signal = of_terminal(&mut self.terminal) => signal,
        }
    }

    /// Returns when one says that it is time to go.
    pub(super) async fn end(&mut self) {
        while !matches!(self.next().await, Signal::Interrupt | Signal::Terminate | Signal::HangUp) {}
    }
}

async fn of_terminal(sources: &mut Option<[Source; 3]>) -> Signal {
    let Some([resize, stop, go_on]) = sources else { return std::future::pending().await };
    tokio::select! {
        Some(()) = resize.recv() => Signal::Resize,
        Some(()) = stop.recv() => Signal::Stop,
        Some(()) = go_on.recv() => Signal::Continue,
    }
}
