//! Hostile command lines, and the decision each deserves under the default rules.
//!
//! `bypass/command-lines.jsonl` was begun before the parser was read again: a line says what it deserves, not what it got.
//! The scene: an agent in `/home/ann/project`, home `/home/ann`, contained. Without containment nothing runs unasked.

use serde::Deserialize;
use swb_rules::policy::{Actor, Answer, Approved, Input, Resource, Rules, ShellFacts};
use swb_rules::shell::{Mode, Scope, parse};

#[derive(Deserialize)]
struct Row {
    class: String,
    deserves: String,
    line: String,
}

fn rows() -> Vec<Row> {
    include_str!("bypass/command-lines.jsonl")
        .lines()
        .map(|row| serde_json::from_str(row).unwrap_or_else(|error| panic!("{row}: {error}")))
        .collect()
}

fn scope() -> Scope {
    Scope {
        mode: Mode::Workspace,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    }
}

fn input(line: &str, contained: bool) -> Input {
    let actor = Actor::Agent { id: "sess_a".into(), workspace: "ws_1".into(), ancestry: Vec::new() };
    let folder = Resource::folder("/home/ann/project", Some("ws_1".into()));
    let (facts, risk, _) = ShellFacts::of(&parse(line), &scope());
    Input { shell: Some(facts), risk, contained, ..Input::new(actor, "tool.bash", folder) }
}

fn answer(name: &str) -> Answer {
    match name {
        "allow" => Answer::Allow,
        "ask" => Answer::NeedsApproval,
        "deny" => Answer::Deny,
        other => panic!("{other} is no answer"),
    }
}

#[test]
fn every_line_gets_what_it_deserves() {
    let rules = Rules::load(&[]).unwrap().rules;
    let mut wrong = Vec::new();
    for Row { class, deserves, line } in rows() {
        let input = input(&line, true);
        let decision = rules.decide(&input, &[], Approved::No);
        if decision.answer != answer(&deserves) {
            let concerns = &input.shell.as_ref().unwrap().concerns;
            wrong
                .push(format!("{class}: {line:?} deserves {deserves}, got {} {concerns:?}", decision.answer));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn without_containment_nothing_runs_unasked() {
    let rules = Rules::load(&[]).unwrap().rules;
    for Row { deserves, line, .. } in rows() {
        let got = rules.decide(&input(&line, false), &[], Approved::No).answer;
        assert_eq!(got, answer(&deserves).max(Answer::NeedsApproval), "{line:?}");
    }
}

#[test]
fn the_table_is_as_long_as_it_claims() {
    let rows = rows();
    let hostile = rows.iter().filter(|row| row.deserves != "allow").count();
    assert!(hostile >= 250, "{hostile}");
    let mut lines: Vec<_> = rows.iter().map(|row| &row.line).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), rows.len(), "a line stands in the table twice");
}
