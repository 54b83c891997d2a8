//! Questions: what an agent may not decide alone, put to the person at the keyboard.
//!
//! One question is open at a time, the others wait. A permission is given or refused with one key. Where the daemon asks,
//! `a` allows the like for the session, which the daemon remembers, and `d` shows more; where an agent asks that we run
//! ourselves, `a` and `d` answer for the rest of this run, but never for something riskier than what was seen. Other
//! questions take the number of an option or words. Nothing is decided by what was typed before the question was there, and nothing is hidden: what is to
//! be done is written in full above the question, however long it is.

use std::collections::VecDeque;

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use swb_proto::agent::AddedCommand;

use crate::io::{BAD, BOLD, DIM, GOOD, WARN};
use crate::plain;
use crate::terminal::keyboard::Key;
use crate::terminal::line::{Line, Span, wrap};

const ALLOW: &str = "allow";
const DENY: &str = "deny";
/// The daemon need not ask again about the like in this session.
pub(in crate::commands::run) const ALLOW_FOR_SESSION: &str = "allow_for_session";
const ASKED: Style = AnsiColor::Cyan.on_default();
const MARK: Style = AnsiColor::Magenta.on_default().bold();
const LONGEST_ANSWER: usize = 4096;

/// The questions that are open, the first of which is shown.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    /// The tools that were allowed for the rest of the run, with the highest risk of it.
    allowed: Vec<(String, Risk)>,
    deny_all: bool,
    /// The one that is open was known to be.
    known: Option<String>,
    /// What is being typed.
    typed: String,
    answers: u64,
}

#[derive(Debug)]
struct Question {
    ask_id: String,
    tool: String,
    /// What is to be done, in full.
    what: String,
    announced: bool,
    who: String,
    risk: Risk,
    reason: String,
    options: Vec<String>,
    free_text: bool,
    /// More about it, if the daemon asks; empty once it was shown.
    details: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Risk {
    Low,
    Medium,
    High,
    Critical,
}

impl Risk {
    /// A word that is not known is taken for the worst.
    fn from_name(name: &str) -> Self {
        match name {
            "low" => Risk::Low,
            "medium" => Risk::Medium,
            "high" => Risk::High,
            _ => Risk::Critical,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Critical => "critical",
        }
    }

    fn style(self) -> Style {
        match self {
            Risk::Low => DIM,
            Risk::Medium => WARN,
            Risk::High | Risk::Critical => BAD,
        }
    }
}

impl Question {
    /// A yes or no about something that a tool would do.
    fn is_permission(&self) -> bool {
        let is_one = |option: &String| matches!(option.as_str(), ALLOW | DENY | ALLOW_FOR_SESSION);
        self.options.len() >= 2 && self.options.iter().all(is_one)
    }

    fn keys(&self) -> Vec<(char, &'static str)> {
        let mut keys = vec![('y', "yes"), ('n', "no")];
        if self.details.is_none() {
            keys.extend([('a', "always, this run"), ('d', "deny everything")]);
            return keys;
        }
        if self.options.iter().any(|option| option == ALLOW_FOR_SESSION) {
            keys.push(('a', "allow for this session"));
        }
        keys.push(('d', "details"));
        keys
    }
}

impl Questions {
    pub(super) fn ask(
        &mut self,
        ask_id: &str,
        subject: &Value,
        risk: &str,
        options: &[String],
        free_text: bool,
        reason: &str,
    ) {
        let tool = subject["tool"].as_str().unwrap_or("it");
        let agents = subject["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
        let who: Vec<_> = agents.iter().filter_map(Value::as_str).collect();
        self.open.push_back(Question {
            ask_id: ask_id.to_owned(),
            tool: plain::line(tool, 60),
            what: in_full(tool, &subject["arguments"]),
            announced: false,
            who: plain::line(&who.join(" › "), 60),
            risk: Risk::from_name(risk),
            reason: plain::text(reason),
            options: options.to_vec(),
            free_text,
            details: subject["details"].as_str().map(plain::text),
        });
    }

    /// Forgets a question that cannot be answered any more; tells whether there was one.
    pub(super) fn close(&mut self, ask_id: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|question| question.ask_id != ask_id);
        self.open.len() < before
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a question is open that was not when this was last asked.
    pub(super) fn is_new(&mut self) -> bool {
        let open = self.open.front().map(|question| question.ask_id.clone());
        let new = open.is_some() && open != self.known;
        self.known = open;
        new
    }

    /// What the question is about, once and in full, for lines that scroll away.
    pub(super) fn announce(&mut self, columns: usize) -> Vec<Line> {
        let Some(question) = self.open.front_mut().filter(|question| !question.announced) else {
            return Vec::new();
        };
        question.announced = true;
        if !question.is_permission() {
            return Vec::new();
        }
        let mut head = Line::of("? ", MARK);
        head.push(question.tool.as_str(), BOLD);
        let mut lines = vec![head];
        for line in question.what.lines() {
            let words = [Span { text: line.to_owned(), style: ASKED }];
            lines.extend(wrap(&words, &Line::of("  ", ASKED), &Line::of("  ", ASKED), columns));
        }
        lines
    }

    /// What was said once for all, if it holds for the question that is open now.
    pub(super) fn standing_answer(&mut self) -> Option<(AddedCommand, Line)> {
        let question = self.open.front().filter(|question| question.is_permission())?;
        let allowed =
            self.allowed.iter().any(|(tool, risk)| *tool == question.tool && *risk >= question.risk);
        match (self.deny_all, allowed) {
            (true, _) => self.answer(Some(DENY.to_owned()), None),
            (false, true) => self.answer(Some(ALLOW.to_owned()), None),
            (false, false) => None,
        }
    }

    /// More about what the daemon asks, once, for the key that wants it.
    pub(super) fn details(&mut self, key: Key, columns: usize) -> Vec<Line> {
        if !matches!(key, Key::Char('d' | 'D')) {
            return Vec::new();
        }
        let details = self.open.front_mut().and_then(|question| question.details.as_mut());
        let text = details.map(std::mem::take).unwrap_or_default();
        let indent = Line::of("  ", DIM);
        let words = |line: &str| [Span { text: line.to_owned(), style: DIM }];
        text.lines().flat_map(|line| wrap(&words(line), &indent, &indent, columns)).collect()
    }

    pub(super) fn key(&mut self, key: Key) -> Option<(AddedCommand, Line)> {
        let question = self.open.front()?;
        if !question.is_permission() {
            return self.type_key(key);
        }
        if question.details.is_some() {
            let may_for_session = question.options.iter().any(|option| option == ALLOW_FOR_SESSION);
            return match key {
                Key::Char('y' | 'Y') => self.answer(Some(ALLOW.to_owned()), None),
                Key::Char('n' | 'N') => self.answer(Some(DENY.to_owned()), None),
                Key::Char('a' | 'A') if may_for_session => {
                    self.answer(Some(ALLOW_FOR_SESSION.to_owned()), None)
                }
                _ => None,
            };
        }
        let (tool, risk) = (question.tool.clone(), question.risk);
        match key {
            Key::Char('y' | 'Y') => self.answer(Some(ALLOW.to_owned()), None),
            Key::Char('n' | 'N') => self.answer(Some(DENY.to_owned()), None),
            Key::Char('a' | 'A') => {
                self.allowed.push((tool, risk));
                self.answer(Some(ALLOW.to_owned()), None)
            }
            Key::Char('d' | 'D') => {
                self.deny_all = true;
                self.answer(Some(DENY.to_owned()), None)
            }
            _ => None,
        }
    }

    fn type_key(&mut self, key: Key) -> Option<(AddedCommand, Line)> {
        match key {
            Key::Char(character) if self.typed.len() < LONGEST_ANSWER && !character.is_control() => {
                self.typed.push(character);
            }
            Key::Backspace => {
                self.typed.pop();
            }
            Key::EraseLine => self.typed.clear(),
            Key::EraseWord => {
                let kept = self.typed.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.typed.truncate(kept);
            }
            Key::Enter => return self.enter(),
            Key::End => return self.answer(None, None),
            Key::Char(_) => {}
        }
        None
    }

    /// What was typed: the number of an option, the option itself, or words.
    fn enter(&mut self) -> Option<(AddedCommand, Line)> {
        let question = self.open.front()?;
        let typed = self.typed.trim().to_owned();
        let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = number
            .and_then(|number| question.options.get(number))
            .or_else(|| question.options.iter().find(|option| option.eq_ignore_ascii_case(&typed)))
            .cloned();
        match chosen {
            Some(option) => self.answer(Some(option), None),
            None if question.free_text && !typed.is_empty() => self.answer(None, Some(typed)),
            None => {
                self.typed.clear();
                None
            }
        }
    }

    fn answer(&mut self, option: Option<String>, text: Option<String>) -> Option<(AddedCommand, Line)> {
        let question = self.open.pop_front()?;
        self.typed.clear();
        self.answers += 1;
        let said: Vec<_> = option.iter().chain(&text).map(|text| plain::line(text, 60)).collect();
        let said = if said.is_empty() { "no answer".to_owned() } else { said.join(" ") };
        let style = match option.as_deref() {
            Some(ALLOW | ALLOW_FOR_SESSION) => GOOD,
            Some(DENY) => BAD,
            _ => MARK,
        };
        let mut line = Line::of("? ", MARK);
        line.push(question.tool, BOLD);
        line.push(" → ", DIM);
        line.push(said, style);
        let id = format!("answer-{}", self.answers);
        let declined = option.is_none() && text.is_none();
        Some((AddedCommand::Answer { id, ask_id: question.ask_id, option, text, declined }, line))
    }

    /// The question that is open, in lines.
    pub(super) fn lines(&self, columns: usize) -> Option<Vec<Line>> {
        let question = self.open.front()?;
        let indent = Line::of("  ", Style::new());
        let mut head = Vec::new();
        let mut say = |text: &str, style: Style| head.push(Span { text: text.to_owned(), style });
        if !question.who.is_empty() {
            say(&format!("{}: ", question.who), DIM);
        }
        if question.is_permission() {
            say("May ", Style::new());
            say(&question.tool, BOLD);
            say(" do this? ", Style::new());
            say(&format!("{} risk: ", question.risk.name()), question.risk.style());
            say(&question.reason, Style::new());
        } else {
            say(&question.reason, BOLD);
        }
        let mut lines = wrap(&head, &Line::of("? ", MARK), &indent, columns);
        if question.is_permission() {
            lines.push(keys(&question.keys(), columns));
        } else {
            for (at, option) in question.options.iter().enumerate() {
                lines.push(
                    Line::of(format!("  {}. {}", at + 1, plain::line(option, columns)), Style::new())
                        .cut(columns),
                );
            }
            let mut typed = Line::of(self.typed.as_str(), Style::new());
            typed.push("▏", DIM);
            lines.extend(wrap(&typed.spans, &Line::of("  › ", MARK), &Line::of("    ", MARK), columns));
        }
        if self.open.len() > 1 {
            lines.push(Line::of(format!("  ({} more questions)", self.open.len() - 1), DIM));
        }
        Some(lines)
    }
}

/// What would be done. A command line keeps its lines: two commands must not look like one.
fn in_full(tool: &str, arguments: &Value) -> String {
    let text = match arguments["command"].as_str() {
        Some(command) if tool == "bash" => command.to_owned(),
        _ => serde_json::to_string_pretty(arguments).unwrap_or_default(),
    };
    plain::text(&text)
}

fn keys(keys: &[(char, &str)], columns: usize) -> Line {
    let mut line = Line::of("  ", Style::new());
    for (key, meaning) in keys {
        line.push(format!("[{key}]"), MARK);
        line.push(format!(" {meaning}  "), DIM);
    }
    line.cut(columns)
}

#[cfg(test)]
mod tests;
