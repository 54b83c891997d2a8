//! Signals in the middle of a turn: a first Ctrl-C and a second, Ctrl-Z and back, another size, the end.

use std::io::Write;
use std::time::Duration;

use rustix::process::{getpid, kill_process};
use swb_proto::agent::Command;
use tokio::time::Instant;

use super::{Bond, Cut, Drive, Stage};
use crate::commands::run::screen::Size;
use crate::commands::run::signals::Signal;
use crate::exit_code;

/// How long a first Ctrl-C waits for a second where that leaves the run at work.
const SECOND_THOUGHT: Duration = Duration::from_millis(700);
const ABORTING: &str = "aborting; Ctrl-C again leaves at once";
const MAY_LEAVE: &str = "aborting; Ctrl-C again now leaves it at work";
const ABORT: &str = "run-abort";

impl Drive {
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Cut> {
        match signal {
            Signal::Interrupt if self.interrupted || self.stage != Stage::Running => {
                return Err(Cut::Left(exit_code::ABORTED));
            }
            Signal::Interrupt if self.bond == Bond::Watch => return Err(Cut::Left(exit_code::ABORTED)),
            Signal::Interrupt => {
                self.interrupted = true;
                match self.view.screen().filter(|_| self.bond == Bond::Run) {
                    Some(screen) => {
                        screen.aborting(MAY_LEAVE);
                        self.abort_at = Some(Instant::now() + SECOND_THOUGHT);
                    }
                    None => self.abort(),
                }
            }
            Signal::HangUp => return Err(Cut::Left(exit_code::HUNG_UP)),
            Signal::Terminate => return Err(Cut::Left(exit_code::TERMINATED)),
            Signal::Resize => {
                if let Some(screen) = self.view.screen() {
                    screen.resized(Size::now());
                }
            }
            Signal::Stop => self.stop(),
            Signal::Continue => self.resume(),
        }
        Ok(())
    }

    pub(super) fn abort(&mut self) {
        self.abort_at = None;
        self.link.send(Command::Abort { id: ABORT.to_owned() });
        if let Some(screen) = self.view.screen() {
            screen.aborting(ABORTING);
        }
    }

    /// Ctrl-Z: the shell gets its terminal back as it was, until we go on.
    fn stop(&mut self) {
        let mut out = Vec::new();
        if let Some(screen) = self.view.screen() {
            screen.pause(&mut out);
        }
        let _ = std::io::stdout().lock().write_all(&out).and_then(|()| std::io::stdout().flush());
        if let Some(keyboard) = &self.keyboard {
            keyboard.restore();
        }
        let _ = kill_process(getpid(), rustix::process::Signal::STOP);
    }

    fn resume(&mut self) {
        if let Some(keyboard) = &self.keyboard {
            keyboard.quieten();
        }
        if let Some(screen) = self.view.screen() {
            screen.resized(Size::now());
        }
    }
}
