//! A turn on a terminal: the answer as it comes, tools at work, questions, and one line of what is going on.
//!
//! Frames change what is to be shown; [`Screen::draw`] turns it into bytes a few times a second. What is settled is
//! written once; below it live the block of the answer that still grows, the tools that run, the open question or the
//! line of status. All of it fits on the screen: a block that does not is settled from its top, tools show less.
//! Everything that others wrote passes [`crate::plain`] on its way in.

mod checklist;
mod hearing;
mod question;
mod status;
mod tools;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anstyle::Style;
use serde_json::Value;
use swb_proto::agent::AddedCommand;

use super::view::Outcome;
use crate::io::{BAD, DIM};
use crate::plain::{self, Plain};
use crate::terminal::keyboard::Key;
use crate::terminal::line::{Line, Span, wrap};
use crate::terminal::region::Region;
use crate::terminal::stream::Stream;
use checklist::Checklist;
pub(super) use question::ALLOW_FOR_SESSION;
use question::Questions;
use status::Status;
use tools::Tools;

/// How often the screen may change.
pub(super) const FRAME: Duration = Duration::from_millis(40);
/// Wider lines are hard to read.
const WIDEST: usize = 100;
const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";
const THINKING: Style = Style::new().dimmed().italic();

/// The size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Size {
    pub(super) fn now() -> Self {
        let (columns, rows) = terminal_size::terminal_size_of(std::io::stdout())
            .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        Size { columns: columns.max(10), rows: rows.max(4) }
    }

    fn text(self) -> usize {
        self.columns.min(WIDEST)
    }
}

/// The kinds of things that stand one below the other, parted by an empty line where the kind changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Tool,
    Note,
}

/// What is shown of a turn.
#[derive(Debug)]
pub(super) struct Screen {
    size: Size,
    region: Region,
    /// Lines that are settled and not written yet.
    settled: Vec<Line>,
    last: Option<Kind>,
    text: Stream,
    text_plain: Plain,
    thinking: Stream,
    thinking_plain: Plain,
    tools: Tools,
    checklist: Checklist,
    questions: Questions,
    status: Status,
    due: bool,
    /// The cursor is hidden.
    hidden: bool,
    finished: bool,
}

impl Screen {
    pub(super) fn new(size: Size, colour: bool, now: Instant) -> Self {
        Screen {
            size,
            region: Region::new(colour),
            settled: Vec::new(),
            last: None,
            text: Stream::default(),
            text_plain: Plain::default(),
            thinking: Stream::words(THINKING),
            thinking_plain: Plain::default(),
            tools: Tools::default(),
            checklist: Checklist::default(),
            questions: Questions::default(),
            status: Status::new(now),
            due: true,
            hidden: false,
            finished: false,
        }
    }

    /// One on which nothing moves: for what is over.
    pub(super) fn still(size: Size, colour: bool, now: Instant) -> Self {
        Screen { finished: true, ..Screen::new(size, colour, now) }
    }

    /// How much was taken in and is not written yet.
    pub(super) fn backlog(&self) -> usize {
        self.text.len() + self.thinking.len() + self.settled.len() * 64
    }

    /// Time has passed: what changed may be drawn.
    pub(super) fn tick(&mut self) {
        self.due = true;
    }

    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    pub(super) fn resized(&mut self, size: Size) {
        self.size = size;
        self.due = true;
    }

    /// Leaves the screen to others for a while.
    pub(super) fn pause(&mut self, out: &mut Vec<u8>) {
        self.region.abandon(out);
        out.extend_from_slice(SHOW_CURSOR);
        (self.due, self.hidden) = (true, false);
    }

    pub(super) fn has_question(&self) -> bool {
        self.questions.is_open()
    }

    /// Whether a question is open that was not when this was last asked.
    pub(super) fn has_new_question(&mut self) -> bool {
        self.questions.is_new()
    }

    /// An answer that was given once for all of a kind, if the open question is of it.
    pub(super) fn standing_answer(&mut self) -> Option<AddedCommand> {
        let (command, line) = self.questions.standing_answer()?;
        self.settle(Kind::Tool, vec![line]);
        Some(command)
    }

    pub(super) fn key(&mut self, key: Key) -> Option<AddedCommand> {
        self.due = true;
        let details = self.questions.details(key, self.size.text());
        self.settle(Kind::Tool, details);
        let (command, line) = self.questions.key(key)?;
        self.settle(Kind::Tool, vec![line]);
        Some(command)
    }

    /// The turn is to end, or will if nothing else is said.
    pub(super) fn aborting(&mut self, words: &'static str) {
        self.status.aborting = Some(words);
        self.due = true;
    }

    /// Something that belongs to no answer.
    pub(super) fn aside(&mut self, text: &str) {
        self.note(DIM, text);
        self.due = true;
    }

    /// The turn is over: everything is settled, and the last line says how it went.
    pub(super) fn finish(&mut self, outcome: &Outcome, stats: Option<&BTreeMap<String, Value>>) {
        self.leave();
        if let Outcome::Failed(message) = outcome {
            self.note(BAD, &format!("✗ {message}"));
        }
        let line = self.status.summary(outcome, stats, Instant::now()).cut(self.size.columns);
        self.settle(Kind::Note, vec![line]);
    }

    /// The turn goes on without us: what there is stays as it is.
    pub(super) fn leave(&mut self) {
        self.end_words();
        let left = self.tools.abandon(self.size.columns);
        self.settle(Kind::Tool, left);
        (self.finished, self.due) = (true, true);
    }

    fn note(&mut self, style: Style, message: &str) {
        self.end_words();
        let spans = [Span { text: plain::text(message), style }];
        let lines = wrap(&spans, &Line::default(), &Line::default(), self.size.text());
        self.settle(Kind::Note, lines);
    }

    fn end_words(&mut self) {
        self.end_thinking();
        self.end_text();
    }

    fn end_text(&mut self) {
        let lines = self.text.finish(self.size.text());
        self.settle(Kind::Text, lines);
        // A tool may stand between two answers, which are two texts then.
        self.text_plain = Plain::default();
    }

    fn end_thinking(&mut self) {
        let lines = self.thinking.finish(self.size.text());
        self.settle(Kind::Thinking, lines);
        self.thinking_plain = Plain::default();
    }

    fn settle(&mut self, kind: Kind, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if self.parted(kind) {
            self.settled.push(Line::default());
        }
        self.last = Some(kind);
        self.settled.extend(lines);
    }

    /// Whether an empty line stands before something of this kind.
    fn parted(&self, kind: Kind) -> bool {
        self.last.is_some_and(|last| last != kind)
    }

    /// What is to be written now.
    pub(super) fn draw(&mut self) -> Vec<u8> {
        self.due = false;
        let mut out = Vec::new();
        let (thought, said) = (self.thinking.settle(self.size.text()), self.text.settle(self.size.text()));
        self.settle(Kind::Thinking, thought);
        self.settle(Kind::Text, said);
        let asked = self.questions.announce(self.size.text());
        self.settle(Kind::Tool, asked);
        let live = if self.finished { Vec::new() } else { self.live() };
        let settled = std::mem::take(&mut self.settled);
        if !self.finished && !std::mem::replace(&mut self.hidden, true) {
            out.extend_from_slice(HIDE_CURSOR);
        }
        self.region.draw(settled, live, self.size.columns, &mut out);
        if self.finished && self.hidden {
            out.extend_from_slice(SHOW_CURSOR);
        }
        out
    }

    /// The lines that may still change, as many as fit.
    fn live(&mut self) -> Vec<Line> {
        let columns = self.size.columns;
        let now = Instant::now();
        let mut below = self.tools.live(columns, now);
        // Words are settled when a tool begins, so nothing else grows above it.
        if !below.is_empty() && self.parted(Kind::Tool) {
            below.insert(0, Line::default());
        }
        match self.questions.lines(self.size.text()) {
            Some(question) => {
                below.push(Line::default());
                below.extend(question);
            }
            None => {
                below.push(Line::default());
                below.push(self.status.line(now).cut(columns));
            }
        }
        let rows = |lines: &[Line]| lines.iter().map(|line| line.rows(columns)).sum::<usize>();
        // One row less than there are, so that nothing of it scrolls away.
        let room = self.size.rows - 1;
        while rows(&below) > room {
            below.remove(0);
        }
        // Only one of them grows at a time.
        let kind = if self.thinking.is_empty() { Kind::Text } else { Kind::Thinking };
        let stream = if kind == Kind::Text { &mut self.text } else { &mut self.thinking };
        let mut above = stream.live(self.size.text());
        let fits = |lines: &[Line]| rows(lines) + rows(&below) < room;
        let given = (0..above.len()).find(|from| fits(&above[*from..])).unwrap_or(above.len());
        if given > 0 {
            // There is no room for the first lines: they stay as they are now.
            stream.give(given);
            self.settle(kind, above.drain(..given).collect());
        }
        if !above.is_empty() && self.parted(kind) {
            above.insert(0, Line::default());
        }
        above.extend(below);
        above
    }
}
