//! Tools at work: one line of what is done, the last lines of what they print, and what came of it in short.

use std::collections::VecDeque;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use swb_proto::agent::Plan;

use super::checklist;
use super::status::{elapsed, spinner};
use crate::io::{BAD, BOLD, DIM, GOOD};
use crate::plain::{self, Plain};
use crate::terminal::line::Line;

/// How much of what a running tool prints is shown.
const TAIL_LINES: usize = 4;
/// How much of a result is shown.
const RESULT_LINES: usize = 4;
const LONGEST_LINE: usize = 4096;
const BUSY: Style = AnsiColor::Yellow.on_default();

/// What is at work now.
#[derive(Debug, Default)]
pub(super) struct Tools {
    running: Vec<Running>,
    subagents: Vec<Subagent>,
}

#[derive(Debug)]
struct Running {
    id: String,
    name: String,
    about: String,
    begun: Instant,
    plain: Plain,
    tail: VecDeque<String>,
    /// What is shown of it instead of its result.
    shown: Option<Vec<Line>>,
}

#[derive(Debug)]
struct Subagent {
    id: u64,
    name: String,
    task: String,
    status: String,
}

impl Tools {
    pub(super) fn start(&mut self, id: &str, name: &str, now: Instant) {
        let tool = Running {
            id: id.to_owned(),
            name: plain::line(name, 40),
            about: String::new(),
            begun: now,
            plain: Plain::default(),
            tail: VecDeque::new(),
            shown: None,
        };
        self.running.push(tool);
    }

    pub(super) fn input(&mut self, id: &str, input: &Value) {
        if let Some(tool) = self.find(id) {
            tool.about = about(&tool.name, input);
        }
    }

    pub(super) fn output(&mut self, id: &str, delta: &str) {
        let Some(tool) = self.find(id) else { return };
        let mut text = String::new();
        tool.plain.push(delta, &mut text);
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 || tool.tail.is_empty() {
                tool.tail.push_back(String::new());
            }
            if let Some(last) = tool.tail.back_mut().filter(|last| last.len() < LONGEST_LINE) {
                last.push_str(part);
            }
            if tool.tail.len() > TAIL_LINES + 1 {
                tool.tail.pop_front();
            }
        }
    }

    /// What stays of a call that is over.
    pub(super) fn result(&mut self, id: &str, result: &str, columns: usize) -> Vec<Line> {
        let Some(at) = self.running.iter().position(|tool| tool.id == id) else { return Vec::new() };
        let tool = self.running.remove(at);
        let failed = ["Denied: ", "Tool execution failed: ", "Unknown tool: ", "Canceled by user"]
            .iter()
            .any(|word| result.starts_with(word));
        let (sign, style) = if failed { ("✗", BAD) } else { ("●", GOOD) };
        let mut lines = vec![tool.head(sign, style).cut(columns)];
        match tool.shown {
            Some(shown) if !failed => lines.extend(shown),
            _ => lines.extend(in_short(result, columns)),
        }
        lines
    }

    /// A plan, with what is new in it: the call that told of it shows that, or nothing does.
    pub(super) fn plan(&mut self, id: &str, plan: &Plan, changes: Vec<Line>, columns: usize) -> Vec<Line> {
        let about = checklist::in_short(plan);
        if let Some(tool) = self.find(id) {
            (tool.about, tool.shown) = (about, Some(changes));
            return Vec::new();
        }
        let mut head = Line::of("● ", GOOD);
        head.push("plan", BOLD);
        head.push(format!("  {about}"), Style::new());
        [head.cut(columns)].into_iter().chain(changes).collect()
    }

    /// What stays of calls that nobody will answer any more.
    pub(super) fn abandon(&mut self, columns: usize) -> Vec<Line> {
        self.subagents.clear();
        self.running.drain(..).map(|tool| tool.head("■", DIM).cut(columns)).collect()
    }

    pub(super) fn subagent(&mut self, id: u64, name: &str, task: &str) {
        let (name, task) = (plain::line(name, 40), plain::line(task, 200));
        self.subagents.push(Subagent { id, name, task, status: String::new() });
    }

    pub(super) fn subagent_status(&mut self, id: u64, status: &str) {
        if let Some(subagent) = self.subagents.iter_mut().find(|subagent| subagent.id == id) {
            subagent.status = plain::line(status, 100);
        }
    }

    pub(super) fn subagent_done(&mut self, id: u64, result: &str, seconds: f64) -> Vec<Line> {
        let Some(at) = self.subagents.iter().position(|subagent| subagent.id == id) else {
            return Vec::new();
        };
        let subagent = self.subagents.remove(at);
        let failed = result.starts_with("ERROR");
        let mut head = Line::of("◆ ", if failed { BAD } else { GOOD });
        head.push(subagent.name, BOLD);
        head.push(format!("  {}  ", subagent.task), Style::new());
        head.push(format!("{seconds:.1} s"), DIM);
        vec![head.cut(100), Line::of(format!("  {}", plain::line(result, 90)), DIM)]
    }

    /// How they stand now.
    pub(super) fn live(&self, columns: usize, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        for tool in &self.running {
            let mut head = tool.head(spinner(now.duration_since(tool.begun)), BUSY);
            head.push(format!("  {}", elapsed(now.duration_since(tool.begun))), DIM);
            lines.push(head.cut(columns));
            for line in tool.tail.iter().filter(|line| !line.is_empty()) {
                lines.push(Line::of(format!("  {line}"), DIM).cut(columns));
            }
        }
        for subagent in &self.subagents {
            let mut line = Line::of("◆ ", BUSY);
            line.push(subagent.name.as_str(), BOLD);
            line.push(format!("  {}", subagent.task), Style::new());
            line.push(format!("  {}", subagent.status), DIM);
            lines.push(line.cut(columns));
        }
        lines
    }

    fn find(&mut self, id: &str) -> Option<&mut Running> {
        self.running.iter_mut().find(|tool| tool.id == id)
    }
}

impl Running {
    fn head(&self, sign: &str, style: Style) -> Line {
        let mut line = Line::of(format!("{sign} "), style);
        line.push(self.name.as_str(), BOLD);
        if !self.about.is_empty() {
            line.push(format!("  {}", self.about), Style::new());
        }
        line
    }
}

/// What a call is about, in as few words as possible.
fn about(name: &str, input: &Value) -> String {
    let text = |key: &str| input[key].as_str();
    let about = match name {
        "bash" => text("command").map(|command| format!("$ {command}")),
        "grep" | "find" => text("pattern").map(|pattern| match text("path") {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        }),
        "ask_user" => text("question").map(str::to_owned),
        "subagent" => text("task").or(text("prompt")).map(str::to_owned),
        "bus_post" => text("body").map(str::to_owned),
        _ => text("path").map(str::to_owned),
    };
    let about = about.unwrap_or_else(|| match input.as_object() {
        Some(input) if input.is_empty() => String::new(),
        _ => input.to_string(),
    });
    plain::line(&about, 500)
}

/// The first lines of a result, and how many more there are.
fn in_short(result: &str, columns: usize) -> Vec<Line> {
    let result = plain::text(result);
    let mut lines: Vec<Line> = Vec::new();
    let mut rest = result.trim_end().lines().filter(|line| !line.trim().is_empty());
    for line in rest.by_ref().take(RESULT_LINES) {
        lines.push(Line::of(format!("  {line}"), DIM).cut(columns));
    }
    match rest.count() {
        0 => {}
        1 => lines.push(Line::of("  … and one more line", DIM)),
        count => lines.push(Line::of(format!("  … and {count} more lines"), DIM)),
    }
    lines
}
