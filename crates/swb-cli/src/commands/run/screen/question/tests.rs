//! Who may decide what with which key.

use super::*;
use serde_json::json;

fn permission(questions: &mut Questions, id: &str, tool: &str, risk: &str) {
    let options = [ALLOW.to_owned(), DENY.to_owned()];
    questions.ask(
        id,
        &json!({ "tool": tool, "arguments": { "command": "x" } }),
        risk,
        &options,
        false,
        "why",
    );
}

fn option(answer: Option<(AddedCommand, Line)>) -> Option<(String, Option<String>)> {
    match answer?.0 {
        AddedCommand::Answer { ask_id, option, text, .. } => Some((ask_id, option.or(text))),
        _ => None,
    }
}

fn answered(id: &str, what: &str) -> Option<(String, Option<String>)> {
    Some((id.to_owned(), Some(what.to_owned())))
}

#[test]
fn always_holds_for_the_same_tool_and_nothing_riskier() {
    let mut questions = Questions::default();
    permission(&mut questions, "1", "bash", "medium");
    assert_eq!(option(questions.standing_answer()), None);
    assert_eq!(option(questions.key(Key::Char('a'))), answered("1", ALLOW));
    permission(&mut questions, "2", "bash", "low");
    assert_eq!(option(questions.standing_answer()), answered("2", ALLOW));
    for (id, tool, risk) in [("3", "bash", "high"), ("4", "write", "low"), ("5", "bash", "unheard of")] {
        permission(&mut questions, id, tool, risk);
        assert_eq!(option(questions.standing_answer()), None, "{tool} {risk}");
        assert_eq!(option(questions.key(Key::Char('n'))), answered(id, DENY));
    }
}

#[test]
fn deny_everything_holds_for_everything() {
    let mut questions = Questions::default();
    permission(&mut questions, "1", "bash", "low");
    assert_eq!(option(questions.key(Key::Char('d'))), answered("1", DENY));
    permission(&mut questions, "2", "write", "low");
    assert_eq!(option(questions.standing_answer()), answered("2", DENY));
}

#[test]
fn no_other_key_decides_anything() {
    let mut questions = Questions::default();
    permission(&mut questions, "1", "bash", "low");
    for key in [Key::Enter, Key::End, Key::Backspace, Key::Char(' '), Key::Char('x'), Key::Char('1')] {
        assert_eq!(option(questions.key(key)), None);
    }
    assert!(questions.is_open());
}

#[test]
fn without_free_text_only_options_are_taken() {
    let mut questions = Questions::default();
    questions.ask("1", &json!({ "tool": "ask_user" }), "low", &["red".to_owned()], false, "Which?");
    let mut type_in = |text: &str| {
        let mut last = None;
        for key in text.chars().map(|c| if c == '\r' { Key::Enter } else { Key::Char(c) }) {
            last = option(questions.key(key));
        }
        last
    };
    assert_eq!(type_in("green\r"), None);
    assert_eq!(type_in("2\r"), None);
    assert_eq!(type_in("0\r"), None);
    assert_eq!(type_in("1\r"), answered("1", "red"));
    questions.ask("2", &json!({ "tool": "ask_user" }), "low", &[], true, "Why?");
    let declined = questions.key(Key::End).map(|answer| answer.0);
    assert!(matches!(declined, Some(AddedCommand::Answer { declined: true, .. })), "{declined:?}");
}

#[test]
fn everything_that_would_be_done_is_written_out() {
    let mut questions = Questions::default();
    let command = format!("ls\n{}; rm -rf /\u{1b}[8m", "x ".repeat(2000));
    let options = [ALLOW.to_owned(), DENY.to_owned()];
    questions.ask(
        "1",
        &json!({ "tool": "bash", "arguments": { "command": command } }),
        "high",
        &options,
        false,
        "",
    );
    let lines: Vec<String> = questions
        .announce(80)
        .iter()
        .map(|line| line.spans.iter().map(|span| span.text.as_str()).collect())
        .collect();
    assert_eq!(lines[1], "  ls");
    assert!(lines.last().unwrap().ends_with("; rm -rf /"), "{lines:?}");
    assert!(questions.announce(80).is_empty(), "once");
    assert!(questions.is_new() && !questions.is_new());
    assert!(questions.close("1") && !questions.is_open());
}

#[test]
fn what_the_daemon_asks_is_allowed_for_the_session_by_the_daemon_and_denied_once_only() {
    let mut questions = Questions::default();
    let subject = json!({ "tool": "bash", "arguments": { "command": "x" }, "details": "rules: r\ncwd: /w" });
    let ask = |questions: &mut Questions, id: &str, options: &[&str]| {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        questions.ask(id, &subject, "low", &options, false, "why");
    };
    ask(&mut questions, "1", &[ALLOW, ALLOW_FOR_SESSION, DENY]);
    assert_eq!(questions.details(Key::Char('d'), 80).len(), 2);
    assert_eq!(option(questions.key(Key::Char('d'))), None, "details decide nothing");
    assert_eq!(questions.details(Key::Char('d'), 80).len(), 0, "they are shown once");
    assert_eq!(option(questions.key(Key::Char('a'))), answered("1", ALLOW_FOR_SESSION));
    ask(&mut questions, "2", &[ALLOW, DENY]);
    assert_eq!(option(questions.standing_answer()), None, "the daemon remembers, not we");
    assert_eq!(option(questions.key(Key::Char('a'))), None, "where it cannot be allowed for long");
    assert_eq!(option(questions.key(Key::Char('n'))), answered("2", DENY));
}
