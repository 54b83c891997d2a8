//! A decision with 200 rules beside one plain `is_authorized` over the same 200 rules, in one run.
//!
//! Ours includes building the request and, where it is needed, the second question. The plain one is Cedar alone with
//! everything prepared beforehand: the limit of a gate that does not sort its rules.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot start has nothing to say")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use cedar_policy::{Authorizer, Context, Entities, EntityUid, PolicySet, Request};
use serde_json::json;
use swb_rules::policy::{
    Actor, Ancestor, Approved, DEFAULT_RULES, Input, Resource, Rules, ShellFacts, Source, actions,
};
use swb_rules::shell::{Mode, Scope, Touch, parse};

const RULES: usize = 200;
const WANTED_MICROS: f64 = 50.0;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let time = Duration::from_millis(if quick { 60 } else { 1_000 });
    let own = own_rules();
    let started = Instant::now();
    let rules = Rules::load(&[Source { file: "own.cedar", text: &own }]).unwrap().rules;
    println!(
        "policy, loading {} rules: {:.0} ms",
        rules.rules().count(),
        started.elapsed().as_secs_f64() * 1e3
    );
    let all: PolicySet = format!("{DEFAULT_RULES}\n{own}").parse().unwrap();
    assert_eq!(all.num_of_policies(), RULES);
    let plain = plain_row(time, &all);
    for (name, input) in inputs() {
        // A line of agents is as many decisions.
        let above = if let Actor::Agent { ancestry, .. } = &input.actor { ancestry.len() } else { 0 };
        let wanted = WANTED_MICROS * (1 + above) as f64;
        let mut answer = None;
        let p50 = p50(time, || answer = Some(black_box(rules.decide(black_box(&input), &[], Approved::No))));
        println!(
            "policy, {name}: p50 {:.1} µs ({}), plain is_authorized over {RULES} rules {:.1} µs, ratio {:.2}, wanted <= {wanted} µs ({})",
            p50 * 1e6,
            answer.unwrap().answer,
            plain * 1e6,
            p50 / plain,
            if p50 * 1e6 <= wanted { "met" } else { "MISSED" }
        );
    }
}

/// The middle of many single calls.
fn p50(time: Duration, mut call: impl FnMut()) -> f64 {
    let mut times = Vec::new();
    let started = Instant::now();
    while started.elapsed() < time {
        let one = Instant::now();
        call();
        times.push(one.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Rules as a careful user might have gathered them: some for each action, some for all.
fn own_rules() -> String {
    let defaults = DEFAULT_RULES.matches("@id(").count();
    let names: Vec<&str> = actions().collect();
    let mut text = String::new();
    for number in 0..RULES - defaults {
        let action = match number % 10 {
            0 => "action".to_owned(),
            1 => "action in Action::\"run\"".to_owned(),
            2 => "action in Action::\"write\"".to_owned(),
            _ => format!("action == Action::\"{}\"", names[number * 7 % names.len()]),
        };
        let (effect, condition) = match number % 3 {
            0 => ("forbid", format!("context.risk > 2 && context.tool == \"tool-{number}\"")),
            1 => ("permit", format!("context.approved && context.arguments == \"{number}\"")),
            _ => ("forbid", format!("principal in Agent::\"sess_{number}\"")),
        };
        text.push_str(&format!(
            "@id(\"own-{number}\")\n{effect} (principal is Agent, {action}, resource) when {{ {condition} }};\n"
        ));
    }
    text
}

fn inputs() -> Vec<(&'static str, Input)> {
    let scope = Scope {
        mode: Mode::Workspace,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    };
    let agent = |ancestry: &[&str]| Actor::Agent {
        id: "sess_a".into(),
        workspace: "ws_1".into(),
        ancestry: ancestry.iter().map(|id| Ancestor { id: (*id).into(), workspace: "ws_1".into() }).collect(),
    };
    let line = |text: &str, actor: Actor| {
        let (facts, risk, _) = ShellFacts::of(&parse(text), &scope);
        let folder = Resource::folder("/home/ann/project", Some("ws_1".into()));
        Input { shell: Some(facts), risk, contained: true, ..Input::new(actor, "tool.bash", folder) }
    };
    let file = |action: &str, path: &str, touch| {
        let resource = Resource::path(path, Some("ws_1".into()), touch, &scope);
        Input::new(agent(&[]), action, resource)
    };
    let session = Resource::Session { id: "sess_a".into(), workspace: "ws_1".into(), project: None };
    vec![
        (
            "a method of a person",
            Input::new(Actor::User { id: "ann".into() }, "session.get", session.clone()),
        ),
        ("a method of an agent", Input::new(agent(&[]), "session.get", session)),
        ("a file read", file("tool.read", "/home/ann/project/src/lib.rs", Touch::Read)),
        ("a file written", file("tool.write", "/home/ann/project/src/lib.rs", Touch::Write)),
        ("a secret", file("tool.read", "/home/ann/project/.env", Touch::Read)),
        ("a harmless line", line("cargo test 2>&1 | tail -n 20", agent(&[]))),
        ("a line to be asked about", line("git push origin main", agent(&[]))),
        ("the same, two agents above", line("git push origin main", agent(&["sess_b", "sess_c"]))),
    ]
}

fn plain_row(time: Duration, all: &PolicySet) -> f64 {
    let uid = |text: &str| text.parse::<EntityUid>().unwrap();
    let entities = json!([
        { "uid": { "type": "Agent", "id": "sess_a" },
          "attrs": { "workspace": { "__entity": { "type": "Workspace", "id": "ws_1" } } }, "parents": [] },
        { "uid": { "type": "Path", "id": "/home/ann/project" },
          "attrs": { "path": "/home/ann/project", "concerns": [], "common": false },
          "parents": [{ "type": "Workspace", "id": "ws_1" }] },
        { "uid": { "type": "Action", "id": "tool.bash" }, "attrs": {},
          "parents": [{ "type": "Action", "id": "run" }, { "type": "Action", "id": "tool" }] },
    ]);
    let entities = Entities::from_json_value(entities, None).unwrap();
    let context = json!({
        "approved": false, "risk": 0, "contained": true, "tool": "", "arguments": "",
        "shell": { "programs": ["cargo", "tail"], "commands": ["cargo test"], "concerns": [] },
    });
    let request = Request::new(
        uid("Agent::\"sess_a\""),
        uid("Action::\"tool.bash\""),
        uid("Path::\"/home/ann/project\""),
        Context::from_json_value(context, None).unwrap(),
        None,
    )
    .unwrap();
    let authorizer = Authorizer::new();
    p50(time, || {
        black_box(authorizer.is_authorized(black_box(&request), all, &entities));
    })
}
