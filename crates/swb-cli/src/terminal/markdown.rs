//! Markdown as lines of a terminal.
//!
//! A walk over the events of `pulldown-cmark`: words are collected with their styles until their block ends, then wrapped
//! behind whatever the blocks around it put in front (bullets, bars, indents). Blocks are parted by one empty line; lists
//! without empty lines stay tight. Links show where they lead, because a name may lie. Raw HTML is shown as it is.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::line::{Line, Span, wrap};
use super::table::Table;

const CODE: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The lines of a text.
pub(crate) fn render(text: &str, columns: usize) -> Vec<Line> {
    let mut writer = Writer::new(columns);
    for event in Parser::new_ext(text, options()) {
        writer.take(event);
    }
    writer.end_block();
    writer.lines
}

/// Something that puts a mark in front of each of its lines.
struct Frame {
    /// In front of the first line.
    first: Line,
    /// In front of the others.
    next: Line,
    used: bool,
}

struct Writer {
    columns: usize,
    lines: Vec<Line>,
    frames: Vec<Frame>,
    /// The numbers of ordered lists, `None` for bullets.
    lists: Vec<Option<u64>>,
    spans: Vec<Span>,
    styles: Vec<Style>,
    links: Vec<(String, usize)>,
    code: Option<String>,
    table: Option<Table>,
    /// Whether the next block is parted from the one before.
    gap: bool,
}

impl Writer {
    fn new(columns: usize) -> Self {
        Writer {
            columns,
            lines: Vec::new(),
            frames: Vec::new(),
            lists: Vec::new(),
            spans: Vec::new(),
            styles: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Code(text) => {
                let style = self.style().fg_color(CODE.get_fg_color());
                self.span(&text, style);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.span(&text, DIM),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.room().min(40));
                self.put(&[Span { text: rule, style: DIM }]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.styles.push(heading(level));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Line::of("▌ ", DIM);
                self.frames.push(Frame { first: bar.clone(), next: bar, used: false });
                self.styles.push(self.style().dimmed());
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                if !language.is_empty() {
                    self.put_line(Line::of(format!("  {language}"), DIM));
                }
                self.code = Some(String::new());
            }
            Tag::List(number) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_words();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.begin_block();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let indent = " ".repeat(mark.chars().count());
                let frame = Frame { first: Line::of(mark, DIM), next: Line::of(indent, PLAIN), used: false };
                self.frames.push(frame);
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.styles.push(self.style().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.text("image: ");
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.styles.push(self.style());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.styles.pop();
                self.end_words();
                self.frames.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_words();
                if let Some(frame) = self.frames.pop_if(|frame| !frame.used) {
                    // An item in which nothing stands, or stands yet.
                    self.frames.push(frame);
                    self.put(&[]);
                }
                self.frames.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room()) {
                        self.put_line(line);
                    }
                }
                self.gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(PLAIN)
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.span(text, self.style()),
        }
    }

    fn span(&mut self, text: &str, style: Style) {
        self.spans.push(Span { text: text.to_owned(), style });
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((target, from)) = self.links.pop() else { return };
        let name: String =
            self.spans[from.min(self.spans.len())..].iter().map(|span| span.text.as_str()).collect();
        if name != target && format!("mailto:{name}") != target {
            self.span(&format!(" ({target})"), DIM);
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        self.gap = true;
        if code.is_empty() {
            return;
        }
        for line in code.trim_end_matches('\n').split('\n') {
            // Not wrapped: what is copied from the screen shall be what was written.
            let mut shown = self.prefix();
            shown.push("  ", PLAIN);
            shown.push(line, CODE);
            self.lines.push(shown);
        }
    }

    /// An empty line, if a block was there before.
    fn begin_block(&mut self) {
        self.end_words();
        // The first block of an item stands on the line of its mark.
        let fresh = self.frames.last().is_some_and(|frame| !frame.used);
        if std::mem::take(&mut self.gap) && !fresh && !self.lines.is_empty() {
            let mut line = Line::default();
            for frame in &self.frames {
                line.spans.extend(frame.next.spans.iter().cloned());
            }
            self.lines.push(line);
        }
    }

    fn end_block(&mut self) {
        self.end_words();
        self.gap = true;
    }

    fn end_words(&mut self) {
        if self.table.is_none() && !self.spans.is_empty() {
            let mut spans = std::mem::take(&mut self.spans);
            if let Some(last) = spans.last_mut() {
                last.text.truncate(last.text.trim_end_matches('\n').len());
            }
            self.put(&spans);
        }
    }

    /// What stands in front of the next line.
    fn prefix(&mut self) -> Line {
        let mut line = Line::default();
        for frame in &mut self.frames {
            let part = if std::mem::replace(&mut frame.used, true) { &frame.next } else { &frame.first };
            line.spans.extend(part.spans.iter().cloned());
        }
        line
    }

    fn put(&mut self, spans: &[Span]) {
        let (first, next) = (self.prefix(), self.prefix());
        self.lines.extend(wrap(spans, &first, &next, self.columns));
    }

    fn put_line(&mut self, line: Line) {
        let mut shown = self.prefix();
        shown.spans.extend(line.spans);
        self.lines.push(shown);
    }

    /// The columns that are left behind what stands in front.
    fn room(&self) -> usize {
        let used: usize = self.frames.iter().map(|frame| frame.next.width()).sum();
        self.columns.saturating_sub(used).max(4)
    }
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => Style::new().bold().underline(),
        HeadingLevel::H2 => Style::new().bold(),
        _ => Style::new().bold().dimmed(),
    }
}

#[cfg(test)]
mod tests;
