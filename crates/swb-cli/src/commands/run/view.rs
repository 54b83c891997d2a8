//! What is shown of a turn: for a person at a terminal ([`super::screen`]), for a file, for a program.

use serde_json::Value;
use std::collections::BTreeMap;
use swb_proto::agent::{AddedCommand, AssistantEvent, Event, Frame};

use super::link::Incoming;
use super::screen::Screen;
use crate::plain::Plain;
use crate::terminal::keyboard::Key;

/// While more than this waits to be written, the agent waits.
const MOST_PENDING: usize = 256 * 1024;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Aborted,
    Failed(String),
}

/// One of the three.
#[derive(Debug)]
pub(super) enum View {
    Screen(Box<Screen>),
    Answer(Answer),
    Json(Vec<u8>),
}

impl View {
    /// Takes in what the agent said.
    pub(super) fn frame(&mut self, incoming: &Incoming) {
        match self {
            View::Screen(screen) => {
                screen.frame(&incoming.frame);
                if let Some(aside) = &incoming.aside {
                    screen.aside(aside);
                }
            }
            View::Answer(answer) => answer.frame(&incoming.frame),
            View::Json(_) if incoming.line.is_empty() => {}
            View::Json(pending) => {
                pending.extend_from_slice(&incoming.line);
                pending.push(b'\n');
            }
        }
    }

    /// Whether more can be taken in.
    pub(super) fn has_room(&self) -> bool {
        match self {
            View::Screen(screen) => screen.backlog() < MOST_PENDING,
            View::Answer(answer) => answer.pending.len() < MOST_PENDING,
            View::Json(pending) => pending.len() < MOST_PENDING,
        }
    }

    /// Whether there is something to be written.
    pub(super) fn has_output(&self) -> bool {
        match self {
            View::Screen(screen) => screen.is_due(),
            View::Answer(answer) => !answer.pending.is_empty(),
            View::Json(pending) => !pending.is_empty(),
        }
    }

    /// How much would be written.
    pub(super) fn waiting(&self) -> usize {
        match self {
            View::Screen(screen) => screen.backlog(),
            View::Answer(answer) => answer.pending.len(),
            View::Json(pending) => pending.len(),
        }
    }

    /// What is to be written now.
    pub(super) fn output(&mut self) -> Vec<u8> {
        match self {
            View::Screen(screen) => screen.draw(),
            View::Answer(answer) => std::mem::take(&mut answer.pending).into_bytes(),
            View::Json(pending) => std::mem::take(pending),
        }
    }

    /// Only a screen moves by itself, has a size, and can be asked something.
    pub(super) fn screen(&mut self) -> Option<&mut Screen> {
        match self {
            View::Screen(screen) => Some(screen),
            _ => None,
        }
    }

    /// A key; what it makes is for the agent.
    pub(super) fn key(&mut self, key: Key) -> Option<AddedCommand> {
        self.screen()?.key(key)
    }

    /// Whether a key would be an answer to something.
    pub(super) fn wants_keys(&self) -> bool {
        matches!(self, View::Screen(screen) if screen.has_question())
    }

    /// The turn is not over, but we are.
    pub(super) fn leave(&mut self) {
        match self {
            View::Screen(screen) => screen.leave(),
            View::Answer(answer) => answer.finish(),
            View::Json(_) => {}
        }
    }

    /// The turn is over.
    pub(super) fn finish(&mut self, outcome: &Outcome, stats: Option<&BTreeMap<String, Value>>) {
        match self {
            View::Screen(screen) => screen.finish(outcome, stats),
            View::Answer(answer) => answer.finish(),
            View::Json(_) => {}
        }
    }
}

/// The words of the answer and nothing else.
#[derive(Debug, Default)]
pub(super) struct Answer {
    plain: Plain,
    pending: String,
    begun: bool,
    /// What was written ends in the middle of a line.
    open_line: bool,
    /// Something else came between: the next words are a paragraph of their own.
    parted: bool,
}

impl Answer {
    fn frame(&mut self, frame: &Frame) {
        let Frame::Contract(Event::MessageUpdate { event }) = frame else { return };
        match event {
            AssistantEvent::TextDelta { delta } => {
                let mut text = String::new();
                self.plain.push(delta, &mut text);
                if text.is_empty() {
                    return;
                }
                if std::mem::take(&mut self.parted) {
                    self.pending.push_str(if self.open_line { "\n\n" } else { "\n" });
                }
                self.begun = true;
                self.open_line = !text.ends_with('\n');
                self.pending.push_str(&text);
            }
            AssistantEvent::ToolcallStart { .. } => self.parted = self.begun,
            _ => {}
        }
    }

    fn finish(&mut self) {
        if std::mem::take(&mut self.open_line) {
            self.pending.push('\n');
        }
    }
}
