//! Driving one turn: the prompt goes out, frames come in, a person may interrupt or be asked something.
//!
//! One loop waits for whatever comes next. It takes frames only while what they make can be written, so a reader that does
//! not read stops the agent and costs no memory; signals and keys are heard all the time. The first Ctrl-C aborts the
//! turn and waits for its end, the second leaves. A run of the daemon outlives us: there the first Ctrl-C waits a moment
//! for a second one, which leaves the run as it is.

mod ending;
mod interrupts;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use swb_proto::agent::{Command, Event, Frame, PROTOCOL_VERSION};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::link::{Incoming, Link};
use super::prompt::ID;
use super::screen::FRAME;
use super::signals::Signals;
use super::view::{Outcome, View};
use crate::exit_code;
use crate::failure::Failure;
use crate::terminal::keyboard::{Key, Keyboard};
use crate::terminal::out::Out;
use ending::{gone, in_the_end, outcome};

/// How long an agent may take until it says `ready`.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How long the figures at the end are waited for.
const STATS_PATIENCE: Duration = Duration::from_secs(2);
/// How long the last words may take when somebody wants to leave.
const LAST_WORDS: Duration = Duration::from_millis(200);
const STATS: &str = "run-stats";
const STATE: &str = "run-state";
/// In the answer to a prompt: how many calls were denied because nobody could be asked.
pub(super) const DENIED: &str = "denied";

/// How a run ended before its turn did.
enum Cut {
    /// Left by the second Ctrl-C, or by a signal; the exit code says which.
    Left(u8),
    /// Whoever read our output has gone.
    ReaderGone,
    /// The agent has gone.
    AgentGone,
    Failed(Failure),
}

/// Where a turn stands.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    Running,
    /// The turn is over and the figures are waited for.
    Counting,
    Over,
}

/// What a run is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bond {
    /// A child, which ends with us.
    Child,
    /// Wanted by us, at work without us.
    Run,
    /// Somebody else's: we only look.
    Watch,
}

/// How a run ended for us.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) code: u8,
    /// Somebody has left before the turn was over.
    pub(super) left: bool,
}

/// One run.
#[derive(Debug)]
pub(super) struct Drive {
    link: Link,
    view: View,
    out: Out,
    keyboard: Option<Keyboard>,
    signals: Signals,
    stage: Stage,
    /// When what is waited for now should have come.
    deadline: Instant,
    outcome: Outcome,
    stats: Option<BTreeMap<String, Value>>,
    /// What an error with the prompt's id said: the turn has failed, or was never begun.
    refused: Option<String>,
    interrupted: bool,
    bond: Bond,
    /// When the turn is aborted, unless somebody leaves before.
    abort_at: Option<Instant>,
    /// Calls that were denied because nobody could be asked.
    denied: u64,
}

impl Drive {
    pub(super) fn new(
        link: Link,
        view: View,
        keyboard: Option<Keyboard>,
        signals: Signals,
        bond: Bond,
    ) -> Self {
        Drive {
            link,
            view,
            out: Out::start(),
            keyboard,
            signals,
            stage: Stage::Starting,
            deadline: Instant::now() + START_PATIENCE,
            outcome: Outcome::Done,
            stats: None,
            refused: None,
            interrupted: false,
            bond,
            abort_at: None,
            denied: 0,
        }
    }

    /// Runs the turn. Without a prompt it is under way already.
    pub(super) async fn run(mut self, prompt: Option<&Command>) -> Result<Finish, Failure> {
        let cut = self.turn(prompt).await.err();
        match &cut {
            None => self.view.finish(&self.outcome, self.stats.as_ref()),
            Some(_) => self.view.leave(),
        }
        let told = self.view.screen().is_some();
        let Drive { link, view, out, keyboard, mut signals, outcome, stage, denied, .. } = self;
        match &cut {
            Some(Cut::ReaderGone) => {}
            // A terminal that was stopped does not hold up somebody who wants to leave.
            Some(Cut::Left(_)) => drop(timeout(LAST_WORDS, write_rest(view, out)).await),
            _ => tokio::select! {
                () = write_rest(view, out) => {}
                () = signals.end() => {}
            },
        }
        link.send(Command::Shutdown);
        let ended = link.close().await;
        drop(keyboard);
        let code = match cut {
            None => in_the_end(outcome, denied, told)?,
            Some(Cut::Left(code)) => return Ok(Finish { code, left: true }),
            // A terminal that cannot be written on any more is one whose signal is still on its way.
            Some(Cut::ReaderGone) if told => exit_code::HUNG_UP,
            Some(Cut::ReaderGone) => exit_code::SUCCESS,
            Some(Cut::Failed(failure)) => return Err(failure),
            Some(Cut::AgentGone) => return Err(gone(stage == Stage::Starting, ended)),
        };
        Ok(Finish { code, left: false })
    }

    async fn turn(&mut self, prompt: Option<&Command>) -> Result<(), Cut> {
        let mut ticks = interval(FRAME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let moves = self.view.screen().is_some();
        while self.stage != Stage::Over {
            let waits = self.stage != Stage::Running;
            tokio::select! {
                biased;
                signal = self.signals.next() => self.signal(signal)?,
                () = self.out.gone() => return Err(Cut::ReaderGone),
                key = next_key(&mut self.keyboard), if self.view.wants_keys() => {
                    if let Some(answer) = self.view.key(key) {
                        self.link.send(answer);
                        self.next_question();
                    }
                }
                () = self.out.room(), if self.view.has_output() => self.out.send(self.view.output()),
                incoming = self.link.frames.recv(), if self.view.has_room() => match incoming {
                    Some(incoming) => self.frame(&incoming, prompt)?,
                    None => return Err(Cut::AgentGone),
                },
                _ = ticks.tick(), if moves => {
                    if let Some(screen) = self.view.screen() {
                        screen.tick();
                    }
                }
                () = until(self.abort_at), if self.abort_at.is_some() => self.abort(),
                () = sleep_until(self.deadline), if waits => match self.stage {
                    Stage::Starting => return Err(Cut::Failed(Failure::new("the agent does not get ready"))),
                    _ => self.stage = Stage::Over,
                },
            }
        }
        Ok(())
    }

    fn frame(&mut self, incoming: &Incoming, prompt: Option<&Command>) -> Result<(), Cut> {
        let Frame::Contract(event) = &incoming.frame else {
            self.view.frame(incoming);
            self.next_question();
            return Ok(());
        };
        match event {
            Event::Ready { protocol_version, .. } if *protocol_version != PROTOCOL_VERSION => {
                let what = format!("the agent speaks version {protocol_version} of the protocol");
                return Err(Cut::Failed(Failure::new(what)));
            }
            // What we have asked for ourselves is not part of the turn.
            Event::Response { id, body, .. } if id == STATS => {
                self.stats = Some(body.clone());
                self.stage = Stage::Over;
                return Ok(());
            }
            Event::Response { id, body, .. } if id == STATE => {
                self.state(body);
                return Ok(());
            }
            _ => self.view.frame(incoming),
        }
        match event {
            Event::Ready { .. } if self.stage == Stage::Starting => {
                if let Some(prompt) = prompt {
                    self.link.send(prompt.clone());
                }
                self.stage = Stage::Running;
            }
            Event::Error { id: Some(id), message } if id == ID => {
                self.refused = Some(message.clone());
                self.link.send(Command::GetState { id: STATE.to_owned() });
            }
            Event::Response { id, body, .. } if id == ID => {
                self.outcome = outcome(body);
                self.denied = body.get(DENIED).and_then(Value::as_u64).unwrap_or(0);
                self.count();
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers come in order: a prompt that was refused, and whose turn is neither over nor under way, has none.
    fn state(&mut self, body: &BTreeMap<String, Value>) {
        let streaming = body.get("streaming").and_then(Value::as_bool).unwrap_or(false);
        if self.stage == Stage::Running
            && !streaming
            && let Some(reason) = self.refused.take()
        {
            self.outcome = Outcome::Failed(reason);
            self.count();
        }
    }

    /// A person likes to know what it took; a program sees it in the frames.
    fn count(&mut self) {
        if self.view.screen().is_none() {
            self.stage = Stage::Over;
            return;
        }
        self.link.send(Command::GetSessionStats { id: STATS.to_owned() });
        (self.stage, self.deadline) = (Stage::Counting, Instant::now() + STATS_PATIENCE);
    }

    /// What is asked now may have been answered already; else only keys that are pressed from now on count.
    fn next_question(&mut self) {
        let Some(screen) = self.view.screen() else { return };
        while let Some(answer) = screen.standing_answer() {
            self.link.send(answer);
        }
        if screen.has_new_question()
            && let Some(keyboard) = &mut self.keyboard
        {
            keyboard.forget();
        }
    }
}

async fn next_key(keyboard: &mut Option<Keyboard>) -> Key {
    match keyboard {
        Some(keyboard) => keyboard.next().await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn write_rest(mut view: View, out: Out) {
    while view.has_output() {
        tokio::select! {
            () = out.room() => out.send(view.output()),
            () = out.gone() => return,
        }
    }
    out.finish().await;
}
