//! Signals on their way to the one they are meant for.

use std::io;

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind};

/// What a person or a daemon may want to say to a child.
const RELAYED: [Signal; 8] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::CONT,
    Signal::WINCH,
];

/// Signals that are caught from now on.
pub(crate) struct Signals {
    runtime: Runtime,
    relayed: Vec<(Signal, unix::Signal)>,
    child: unix::Signal,
}

impl Signals {
    /// Catches what [`Signals::relay`] passes on. To be called before the process it is meant for is started.
    pub(crate) fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (relayed, child) = runtime.block_on(async {
            let relayed = RELAYED.map(|signal| {
                let caught = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
                Ok::<_, io::Error>((signal, caught))
            });
            Ok::<_, io::Error>((
                relayed.into_iter().collect::<Result<_, _>>()?,
                unix::signal(SignalKind::child())?,
            ))
        })?;
        Ok(Signals { runtime, relayed, child })
    }

    /// Passes signals on until `ended`, which is asked whenever a child ended, has an answer.
    pub(crate) fn relay<T>(&mut self, to: Pid, mut ended: impl FnMut() -> Option<T>) -> io::Result<T> {
        let Signals { runtime, relayed, child } = self;
        runtime.block_on(async {
            loop {
                if let Some(answer) = ended() {
                    return Ok(answer);
                }
                let caught = std::future::poll_fn(|cx| {
                    let caught = relayed.iter_mut().find_map(|(signal, caught)| {
                        caught.poll_recv(cx).is_ready().then_some(Some(*signal))
                    });
                    let ended = child.poll_recv(cx).is_ready().then_some(None);
                    caught.or(ended).map_or(std::task::Poll::Pending, std::task::Poll::Ready)
                });
                if let Some(signal) = caught.await {
                    // It may have ended in this moment, which the next round finds out.
                    let _ = kill_process(to, signal);
                }
            }
        })
    }
}
