//! Words with a style, in lines that fit.

use std::io::Write;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// One line of the screen, or more if it is wider than that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
}

impl Line {
    /// A line of one piece.
    pub(crate) fn of(text: impl Into<String>, style: Style) -> Self {
        let mut line = Line::default();
        line.push(text, style);
        line
    }

    pub(crate) fn push(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.text.push_str(&text),
            _ => self.spans.push(Span { text, style }),
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// How many rows of a screen it takes.
    pub(crate) fn rows(&self, columns: usize) -> usize {
        self.width().div_ceil(columns.max(1)).max(1)
    }

    /// The line without what does not fit.
    pub(crate) fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut line = Line::default();
        for span in self.spans {
            let left = columns.saturating_sub(line.width());
            let whole = span.text.width() <= left;
            line.push(crate::plain::cut(&span.text, left), span.style);
            if !whole {
                break;
            }
        }
        line
    }

    /// Appends its bytes, with styles if there is colour.
    pub(crate) fn write(&self, colour: bool, out: &mut Vec<u8>) {
        for Span { text, style } in &self.spans {
            // Writing to memory does not fail.
            let _ = match *style == Style::new() || !colour {
                true => out.write_all(text.as_bytes()),
                false => write!(out, "{style}{text}{style:#}"),
            };
        }
    }
}

/// Fills lines of so many columns with words. The first line begins with `first`, the others with `next`.
pub(crate) fn wrap(spans: &[Span], first: &Line, next: &Line, columns: usize) -> Vec<Line> {
    let mut wrap = Wrap { lines: Vec::new(), line: first.clone(), begin: first.width(), next, columns };
    let mut word: Vec<Span> = Vec::new();
    for span in spans {
        let mut piece = String::new();
        for character in span.text.chars() {
            if character == ' ' || character == '\n' {
                add(&mut word, &mut piece, span.style);
                wrap.word(&mut word);
                if character == '\n' {
                    wrap.end_line();
                } else {
                    wrap.space(span.style);
                }
            } else {
                piece.push(character);
            }
        }
        add(&mut word, &mut piece, span.style);
    }
    wrap.word(&mut word);
    wrap.trim();
    wrap.lines.push(wrap.line);
    wrap.lines
}

fn add(word: &mut Vec<Span>, piece: &mut String, style: Style) {
    if !piece.is_empty() {
        word.push(Span { text: std::mem::take(piece), style });
    }
}

struct Wrap<'a> {
    lines: Vec<Line>,
    line: Line,
    /// The width of what the line began with.
    begin: usize,
    next: &'a Line,
    columns: usize,
}

impl Wrap<'_> {
    fn word(&mut self, word: &mut Vec<Span>) {
        let width: usize = word.iter().map(|span| span.text.width()).sum();
        if width == 0 {
            word.clear();
            return;
        }
        if self.line.width() + width > self.columns && self.line.width() > self.begin {
            self.trim();
            self.end_line();
        }
        for span in word.drain(..) {
            self.force(&span);
        }
    }

    /// Puts a piece where it fits, broken if it fits nowhere.
    fn force(&mut self, span: &Span) {
        if self.line.width() + span.text.width() <= self.columns {
            self.line.push(span.text.as_str(), span.style);
            return;
        }
        let mut used = self.line.width();
        for character in span.text.chars() {
            let width = character.width().unwrap_or(0);
            if used + width > self.columns && used > self.begin {
                self.end_line();
                used = self.line.width();
            }
            self.line.push(character, span.style);
            used += width;
        }
    }

    fn space(&mut self, style: Style) {
        // A line does not begin with the space that parted it from the one before.
        if self.line.width() > self.begin && self.line.width() < self.columns {
            self.line.push(" ", style);
        }
    }

    fn trim(&mut self) {
        while self.line.width() > self.begin
            && let Some(last) = self.line.spans.last_mut()
            && last.text.ends_with(' ')
        {
            last.text.pop();
            if last.text.is_empty() {
                self.line.spans.pop();
            }
        }
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::replace(&mut self.line, self.next.clone()));
        self.begin = self.next.width();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOLD: Style = Style::new().bold();

    fn span(text: &str, style: Style) -> Span {
        Span { text: text.to_owned(), style }
    }

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[span(text, Style::new())], &Line::default(), &Line::default(), columns);
        lines.iter().map(plain).collect()
    }

    fn plain(line: &Line) -> String {
        line.spans.iter().map(|span| span.text.as_str()).collect()
    }

    #[test]
    fn words_go_to_the_next_line_and_long_ones_are_broken() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("a\nb", 8), ["a", "b"]);
        assert_eq!(wrapped("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_word_in_two_styles_stays_one_word() {
        let spans = [span("one tw", Style::new()), span("o", BOLD), span(" x", Style::new())];
        let lines = wrap(&spans, &Line::default(), &Line::default(), 6);
        assert_eq!(lines.iter().map(plain).collect::<Vec<_>>(), ["one", "two x"]);
        assert_eq!(lines[1].spans[1], span("o", BOLD));
    }

    #[test]
    fn further_lines_hang_below_the_first() {
        let (first, next) = (Line::of("- ", BOLD), Line::of("  ", Style::new()));
        let lines = wrap(&[span("one two", Style::new())], &first, &next, 6);
        assert_eq!(lines.iter().map(plain).collect::<Vec<_>>(), ["- one", "  two"]);
    }

    #[test]
    fn colour_is_left_out_when_there_is_none() {
        let mut bytes = Vec::new();
        Line::of("x", BOLD).write(false, &mut bytes);
        assert_eq!(bytes, b"x");
        Line::of("x", BOLD).write(true, &mut bytes);
        assert_eq!(bytes, b"x\x1b[1mx\x1b[0m");
    }

    proptest! {
        #[test]
        fn every_word_comes_out_and_every_line_fits(words in prop::collection::vec("[a-z漢]{1,12}", 0..20), columns in 2usize..30) {
            let lines = wrapped(&words.join(" "), columns);
            prop_assert!(lines.iter().all(|line| line.width() <= columns));
            prop_assert_eq!(lines.concat().replace(' ', ""), words.concat());
        }
    }
}
