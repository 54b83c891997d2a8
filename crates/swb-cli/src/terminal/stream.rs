//! Text that is still coming, as Markdown or as plain words.
//!
//! Text comes in small pieces, and what a piece means may depend on what follows. Whole blocks at the beginning are
//! settled and leave; the last block is rendered anew whenever somebody looks. A block that grows too long for that is
//! settled in parts: a program listing line by line, anything else at the end of a line.

use anstyle::Style;
use pulldown_cmark::{Event, Parser};

use super::line::{Line, Span, wrap};
use super::markdown::{options, render};

/// A block longer than this is not kept back as a whole.
const LONGEST_BLOCK: usize = 8 * 1024;

/// How text is turned into lines.
#[derive(Debug, Default, Clone, Copy)]
enum Form {
    #[default]
    Markdown,
    Words(Style),
}

/// Text on its way to lines.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    form: Form,
    /// What is not settled yet.
    pending: String,
    /// The pending block goes on with one that was settled in parts.
    goes_on: bool,
    /// Lines of the pending block that had to be settled because the screen was too small for them.
    given: usize,
    /// Whether something was settled before.
    begun: bool,
}

impl Stream {
    /// For plain words in one style.
    pub(crate) fn words(style: Style) -> Self {
        Stream { form: Form::Words(style), ..Stream::default() }
    }

    /// Takes a piece.
    pub(crate) fn push(&mut self, piece: &str) {
        self.pending.push_str(piece);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.trim().is_empty()
    }

    /// How much is held back.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// The lines that are settled now.
    pub(crate) fn settle(&mut self, columns: usize) -> Vec<Line> {
        let mut settled = Vec::new();
        loop {
            let end = match self.form {
                Form::Markdown => last_block(&self.pending),
                Form::Words(_) => self.pending.rfind('\n').map_or(0, |at| at + 1),
            };
            let (end, in_parts) = match end {
                0 if self.pending.len() > LONGEST_BLOCK => (break_point(&self.pending), true),
                0 => return settled,
                end => (end, false),
            };
            let lines = self.lines_of(&self.pending[..end], columns);
            settled.extend(lines.into_iter().skip(self.given));
            let listing = in_parts && matches!(self.form, Form::Markdown);
            let fence = if listing { open_fence(&self.pending[..end]) } else { None };
            self.pending.drain(..end);
            if let Some(fence) = fence {
                // What follows is still the listing, and no block of its own.
                self.pending.insert_str(0, &format!("{fence}\n"));
            }
            (self.given, self.begun, self.goes_on) = (0, true, in_parts);
        }
    }

    /// The lines of the last block as it stands now.
    pub(crate) fn live(&self, columns: usize) -> Vec<Line> {
        if self.is_empty() {
            return Vec::new();
        }
        self.lines_of(&self.pending, columns).into_iter().skip(self.given).collect()
    }

    /// Settles the first live lines as they are: the screen has no room for them.
    pub(crate) fn give(&mut self, count: usize) {
        self.given += count;
    }

    /// Settles everything.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<Line> {
        let mut settled = self.settle(columns);
        settled.extend(self.live(columns));
        *self = Stream { form: self.form, ..Stream::default() };
        settled
    }

    fn lines_of(&self, text: &str, columns: usize) -> Vec<Line> {
        let mut lines = match self.form {
            Form::Markdown => render(text, columns),
            Form::Words(style) => {
                let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
                return wrap(&[Span { text, style }], &Line::default(), &Line::default(), columns);
            }
        };
        if self.begun && !self.goes_on && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }
}

/// Where the last block begins: everything before it is settled. A line that is still coming may mean anything.
fn last_block(text: &str) -> usize {
    let text = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let mut depth = 0usize;
    let mut begin = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    begin = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => begin = range.start,
            _ => {}
        }
    }
    begin
}

/// Where a block that is too long may be cut: behind its last whole line, else behind its last word.
fn break_point(text: &str) -> usize {
    let line = text.rfind('\n').map(|at| at + 1).filter(|at| *at > LONGEST_BLOCK / 2);
    let word = || text.rfind(' ').map(|at| at + 1).filter(|at| *at > LONGEST_BLOCK / 2);
    line.or_else(word).unwrap_or(text.len())
}

/// The fence that opens a listing which does not end within the text.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let length = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        match open {
            None if length >= 3 => open = Some(&line[..length]),
            Some(fence)
                if length >= fence.len() && line.starts_with(fence) && line[length..].trim().is_empty() =>
            {
                open = None;
            }
            _ => {}
        }
    }
    open.map(str::to_owned)
}

#[cfg(test)]
mod tests;
