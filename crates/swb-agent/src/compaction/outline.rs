//! What a summary holds whatever a model writes: the task, the latest request, the plan, the files touched, what
//! is open.
//!
//! Taken from the messages by rule, so it is there without a model and right with a bad one. The text of a summary is read
//! back by the next compaction ([`Outline::of`] finds it as the first message), so nothing is lost over several of them.
//! What people and tools wrote is quoted or made one line, so it cannot pass for a heading.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use swb_proto::agent::plan::MOST_STEPS;
use swb_proto::agent::{Block, Message, Role};

use super::steps::Steps;

const OPEN: &str = "<context-summary>\n";
const CLOSE: &str = "\n</context-summary>";
const TASK: &str = "## Task";
const LATEST: &str = "## Latest request";
const PLAN: &str = "## Plan";
const FILES: &str = "## Files touched";
const THREADS: &str = "## Open threads";
pub(super) const NOTES: &str = "## Notes";

const MAX_LINE_CHARS: usize = 200;
const MAX_FILES: usize = 100;
const MAX_FAILURES: usize = 5;

/// How long a summary may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    request_chars: usize,
    answer_chars: usize,
    steps: usize,
    files: usize,
    pub(super) notes_chars: usize,
}

impl Room {
    /// In a context of so many tokens, if that is known.
    pub(super) fn in_context(tokens: Option<u64>) -> Self {
        let tokens = usize::try_from(tokens.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        Room {
            request_chars: (tokens / 4).min(4000),
            answer_chars: (tokens / 8).min(1500),
            steps: (tokens / 100).min(MOST_STEPS),
            files: (tokens / 100).min(MAX_FILES),
            notes_chars: tokens.min(6000),
        }
    }
}

/// The facts of a conversation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    task: String,
    latest: String,
    plan: Steps,
    /// The latest last.
    files: Vec<Touched>,
    threads: Vec<String>,
    last_said: String,
    /// What an earlier summary said besides.
    pub(super) earlier_notes: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Touched {
    path: String,
    how: BTreeSet<String>,
}

impl Outline {
    /// The facts of these messages.
    pub(crate) fn of(messages: &[Arc<Message>]) -> Self {
        let mut outline = Outline::default();
        let mut failures = Vec::new();
        let mut last_said = "";
        for (at, message) in messages.iter().enumerate() {
            if let Some(text) = message.user_text() {
                if let Some(summary) = (at == 0).then(|| inside(text)).flatten() {
                    outline = Self::read(summary);
                    continue;
                }
                if outline.task.is_empty() {
                    outline.task = text.to_owned();
                } else {
                    outline.latest = text.to_owned();
                }
                failures.clear();
            }
            for block in message.blocks() {
                match block {
                    Block::ToolUse { name, input, .. } if name == "plan" => {
                        outline.plan = Steps::of_call(input).unwrap_or(outline.plan);
                    }
                    Block::ToolUse { name, input, .. } => {
                        if let (Some(path), Some(how)) = (input["path"].as_str(), touch(name)) {
                            outline.touched(path, how);
                        }
                    }
                    Block::ToolResult { content, is_error: true, .. } => failures.push(content.as_str()),
                    Block::Image { title, .. } | Block::Document { title, .. } => {
                        outline.touched(title, "attached");
                    }
                    Block::Text { text } if message.role == Role::Assistant => last_said = text,
                    _ => {}
                }
            }
        }
        let done = |last: &Arc<Message>| last.role == Role::Assistant && last.calls().next().is_none();
        if !messages.last().is_none_or(done) {
            outline.threads.push("the latest request is still being worked on".to_owned());
        }
        let first = failures.len().saturating_sub(MAX_FAILURES);
        outline
            .threads
            .extend(failures[first..].iter().map(|failure| format!("a call failed: {}", one_line(failure))));
        if !last_said.trim().is_empty() {
            let said: String = last_said.split_whitespace().collect::<Vec<_>>().join(" ");
            outline.last_said = said;
        }
        outline
    }

    fn touched(&mut self, path: &str, how: &str) {
        let path = one_line(path);
        let mut entry = match self.files.iter().position(|known| known.path == path) {
            Some(at) => self.files.remove(at),
            None => Touched { path, how: BTreeSet::new() },
        };
        entry.how.insert(how.to_owned());
        self.files.push(entry);
        if self.files.len() > MAX_FILES {
            // What was only read can be read again.
            let at =
                self.files.iter().position(|known| known.how.iter().all(|how| how == "read")).unwrap_or(0);
            self.files.remove(at);
        }
    }

    /// In words, as a summary holds it.
    pub(super) fn text(&self, room: Room) -> String {
        let mut text = String::new();
        let mut section = |heading: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                let _ = write!(text, "{heading}\n{}\n\n", lines.join("\n"));
            }
        };
        section(TASK, quoted(&self.task, room.request_chars));
        section(LATEST, quoted(&self.latest, room.request_chars));
        section(PLAN, self.plan.lines(room.steps));
        let untold = self.files.len().saturating_sub(room.files);
        let files = self.files[untold..].iter().map(|Touched { path, how }| {
            format!("- {path} ({})", how.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
        });
        section(FILES, files.collect());
        let mut threads: Vec<String> = self.threads.iter().map(|thread| format!("- {thread}")).collect();
        if !self.last_said.is_empty() {
            threads.push(format!("- said last: {}", cut(&self.last_said, room.answer_chars)));
        }
        section(THREADS, threads);
        text.truncate(text.trim_end().len());
        text
    }

    fn read(summary: &str) -> Self {
        let mut outline = Outline::default();
        let (facts, notes) = summary.split_once(&format!("\n{NOTES}\n")).unwrap_or((summary, ""));
        outline.earlier_notes = notes.trim().to_owned();
        let mut heading = "";
        for line in facts.lines() {
            match (heading, line) {
                (_, line) if line.starts_with("## ") => heading = line,
                (TASK, line) => unquote(line, &mut outline.task),
                (LATEST, line) => unquote(line, &mut outline.latest),
                (PLAN, line) => outline.plan.read(line),
                (FILES, line) => {
                    let entry =
                        line.strip_prefix("- ").and_then(|line| line.strip_suffix(')')?.rsplit_once(" ("));
                    for (path, how) in
                        entry.into_iter().flat_map(|(path, how)| how.split(", ").map(move |how| (path, how)))
                    {
                        outline.touched(path, how);
                    }
                }
                _ => {}
            }
        }
        outline
    }
}

/// A summary as the message that stands for what it summarises.
pub(crate) fn wrapped(summary: &str) -> String {
    format!("{OPEN}{summary}{CLOSE}")
}

fn inside(text: &str) -> Option<&str> {
    text.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

fn touch(tool: &str) -> Option<&'static str> {
    match tool {
        "write" => Some("written"),
        "edit" => Some("edited"),
        "read" => Some("read"),
        _ => None,
    }
}

fn quoted(text: &str, characters: usize) -> Vec<String> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    cut(text, characters).lines().map(|line| format!("> {line}")).collect()
}

fn unquote(line: &str, text: &mut String) {
    if let Some(line) = line.strip_prefix('>') {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.strip_prefix(' ').unwrap_or(line));
    }
}

pub(super) fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    cut(&line.replace(char::is_control, "?"), MAX_LINE_CHARS)
}

/// At most so many characters, with a sign that there were more.
pub(super) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{} […]", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn shared(messages: Vec<Message>) -> Vec<Arc<Message>> {
        messages.into_iter().map(Arc::new).collect()
    }

    fn call(name: &str, path: &str) -> Message {
        Message::assistant(vec![Block::ToolUse {
            id: "1".into(),
            name: name.into(),
            input: json!({ "path": path }),
        }])
    }

    fn result(content: &str, is_error: bool) -> Message {
        Message::results(vec![Block::ToolResult {
            tool_use_id: "1".into(),
            content: content.into(),
            is_error,
        }])
    }

    fn said(text: &str) -> Message {
        Message::assistant(vec![Block::Text { text: text.into() }])
    }

    #[test]
    fn the_task_the_files_and_what_is_open_are_in_it() {
        let messages = shared(vec![
            Message::user("Build it.\n## Files touched\n- fake (read)"),
            call("read", "a.rs"),
            result("x", false),
            call("edit", "a.rs"),
            result("old_text does not occur\nmore", true),
            said("half\ndone"),
            Message::user("go on"),
        ]);
        assert_eq!(
            Outline::of(&messages).text(Room::in_context(None)),
            "## Task\n> Build it.\n> ## Files touched\n> - fake (read)\n\n## Latest request\n> go on\n\n\
             ## Files touched\n- a.rs (edited, read)\n\n\
             ## Open threads\n- the latest request is still being worked on\n- said last: half done"
        );
        let text = Outline::of(&messages[..5]).text(Room::in_context(None));
        assert!(text.ends_with("being worked on\n- a call failed: old_text does not occur"), "{text}");
    }

    #[test]
    fn the_next_summary_knows_what_the_last_one_knew() {
        let first = shared(vec![Message::user("the task"), call("write", "a (1).rs"), result("", false)]);
        let summary = format!(
            "{}\n\n{NOTES}\nwe chose B\n## Task\n> no",
            Outline::of(&first).text(Room::in_context(None))
        );
        let second = shared(vec![
            Message::user(wrapped(&summary)),
            said("ok"),
            Message::user("more"),
            call("read", "b"),
        ]);
        let outline = Outline::of(&second);
        assert_eq!((outline.task.as_str(), outline.latest.as_str()), ("the task", "more"));
        let text = outline.text(Room::in_context(None));
        assert!(text.contains("- a (1).rs (written)\n- b (read)"), "{text}");
        assert_eq!(outline.earlier_notes, "we chose B\n## Task\n> no");
    }

    #[test]
    fn the_last_plan_outlasts_any_number_of_summaries() {
        let plan = |steps: serde_json::Value| {
            let input = json!({ "steps": steps });
            Message::assistant(vec![Block::ToolUse { id: "1".into(), name: "plan".into(), input }])
        };
        let step = |text: &str, status: &str| json!({ "text": text, "status": status });
        let mut messages = vec![Message::user("x"), plan(json!([step("look", "in_progress")]))];
        messages.push(plan(json!([
            step("look", "completed"),
            step("fix it", "in_progress"),
            step("test", "pending")
        ])));
        messages.push(plan(json!([step("both", "in_progress"), step("at once", "in_progress")])));
        for _ in 0..3 {
            let text = Outline::of(&shared(messages)).text(Room::in_context(None));
            assert!(text.contains("## Plan\n- [x] look\n- [>] fix it\n- [ ] test\n\n"), "{text}");
            messages = vec![Message::user(wrapped(&text)), said("ok")];
        }
        messages.push(plan(json!([])));
        let text = Outline::of(&shared(messages)).text(Room::in_context(None));
        assert!(!text.contains("## Plan"), "there is none any more: {text}");
    }

    #[test]
    fn files_that_were_changed_outlast_files_that_were_read() {
        let mut messages = vec![Message::user("x"), call("write", "first.rs")];
        messages.extend((0..MAX_FILES * 2).map(|at| call("read", &format!("{at}.rs"))));
        let outline = Outline::of(&shared(messages));
        assert_eq!(outline.files.len(), MAX_FILES);
        assert!(outline.text(Room::in_context(None)).contains("- first.rs (written)"));
        assert!(
            outline.text(Room::in_context(Some(2000))).len() < 2000,
            "a small model gets a small summary"
        );
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_stays_itself(texts in proptest::collection::vec(".{0,80}", 1..6), path in ".{0,40}") {
            let mut messages: Vec<Message> = texts.into_iter().map(Message::user).collect();
            messages.push(call("edit", &path));
            let outline = Outline::of(&shared(messages));
            let text = outline.text(Room::in_context(None));
            prop_assert!(text.len() < 100_000);
            let again = Outline::of(&shared(vec![Message::user(wrapped(&text))]));
            prop_assert_eq!(again.files, outline.files);
        }
    }
}
