//! What explains a decision, and what the past would look like under other rules.

use std::collections::BTreeSet;

use swb_rules::policy::{
    Actor, ActorKind, Answer, Approved, Change, Input, Recorded, Resource, Rules, ShellFacts, Source, dry_run,
};
use swb_rules::shell::{Concern, Mode, Scope, parse};

fn rules(own: &str) -> Rules {
    Rules::load(&[Source { file: "own.cedar", text: own }]).expect("the rules load").rules
}

fn line(text: &str, contained: bool) -> Input {
    let scope = Scope {
        mode: Mode::Workspace,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    };
    let actor = Actor::Agent { id: "sess_a".into(), workspace: "ws_1".into(), ancestry: Vec::new() };
    let (facts, risk, _) = ShellFacts::of(&parse(text), &scope);
    let folder = Resource::folder("/home/ann/project", Some("ws_1".into()));
    Input { shell: Some(facts), risk, contained, ..Input::new(actor, "tool.bash", folder) }
}

/// What would change the answer, in words, with the answer.
fn remedies(rules: &Rules, input: &Input) -> Vec<String> {
    let explanation = rules.explain(input, &[], Approved::No);
    explanation.remedies.iter().map(|remedy| format!("{}: {}", remedy.answer, remedy.change)).collect()
}

#[test]
fn an_explanation_names_the_rules_and_the_ways_out() {
    let rules = rules("");
    let explanation = rules.explain(&line("git push", true), &[], Approved::No);
    assert_eq!(explanation.decision.answer, Answer::NeedsApproval);
    assert_eq!(explanation.decision.rules[0].name, "agents-run-when-approved");
    assert_eq!(
        remedies(&rules, &line("git push", true)),
        [
            "allow: if somebody agrees",
            "allow: if a person does it",
            "allow: if nothing of this kind spoke against it: pushes"
        ]
    );
    assert_eq!(
        remedies(&rules, &line("ls", false)),
        ["allow: if somebody agrees", "allow: if a person does it", "allow: if containment held"]
    );
    assert_eq!(remedies(&rules, &line("ls", true)), [""; 0]);
}

#[test]
fn concerns_that_only_count_together_are_told_together() {
    let explanation = rules("").explain(&line("rm x; git push", true), &[], Approved::No);
    let both = Change::Without(BTreeSet::from([Concern::Deletes, Concern::Pushes]));
    assert!(explanation.remedies.iter().any(|remedy| remedy.change == both), "{:?}", explanation.remedies);
    // A secret and a deletion: without the secret it is still asked about, without both it passes.
    let told = remedies(&rules(""), &line("cat .env; rm x", true));
    assert_eq!(
        told,
        [
            "allow: if a person does it",
            "allow: if nothing of this kind spoke against it: deletes, secrets",
            "needs approval: if nothing of this kind spoke against it: secrets",
        ]
    );
}

#[test]
fn a_denial_that_nothing_but_another_actor_changes_says_so() {
    let actor = Actor::Agent { id: "sess_a".into(), workspace: "ws_1".into(), ancestry: Vec::new() };
    let input = Input::new(actor, "approval.request.resolve", Resource::House);
    let explanation = rules("").explain(&input, &[], Approved::No);
    assert_eq!(explanation.decision.reason(), "rules, approvals, tokens and the record are for people");
    assert_eq!(explanation.remedies.len(), 1);
    assert_eq!(explanation.remedies[0].change, Change::Actor(ActorKind::User));
}

#[test]
fn a_dry_run_tells_what_would_have_been_different() {
    let old = rules("");
    let record = |number: usize, input: Input, approved: bool| {
        let given = if approved { Approved::Yes } else { Approved::No };
        let spoke = old.decide(&input, &[], given).spoke();
        // Through the form in which it is kept.
        let kept =
            serde_json::to_string(&Recorded { decision_id: format!("dec_{number}"), input, approved, spoke });
        serde_json::from_str::<Recorded>(&kept.unwrap()).unwrap()
    };
    let past: Vec<Recorded> = [
        ("ls", false),
        ("git push", false),
        ("git push", true),
        ("cat .env", false),
        ("docker ps", true),
        ("rm x", false),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (text, approved))| record(number, line(text, true), approved))
    .collect();
    let same = dry_run(past.clone(), &old, |_| Vec::new());
    assert_eq!((same.decided, same.milder, same.stricter, same.differences.len()), (6, 0, 0, 0));

    let new = rules(
        "@id(\"push\") permit (principal is Agent, action in Action::\"run\", resource)\n\
         when { context.shell.concerns == [Concern::\"pushes\"] };\n\
         @id(\"no-docker\") forbid (principal, action in Action::\"run\", resource)\n\
         when { context.shell.programs.contains(\"docker\") };",
    );
    let found = dry_run(past, &new, |_| Vec::new());
    assert_eq!((found.decided, found.milder, found.stricter), (6, 1, 1));
    let told: Vec<_> = found
        .differences
        .iter()
        .map(|d| format!("{} {} -> {} {:?}", d.decision_id, d.before.answer, d.after.answer, d.after.rules))
        .collect();
    assert_eq!(told, ["dec_1 needs approval -> allow [\"push\"]", "dec_4 allow -> deny [\"no-docker\"]"]);
}

#[test]
fn what_is_kept_is_stable() {
    let kept = serde_json::to_value(line("git push", true)).unwrap();
    let wanted = serde_json::json!({
        "actor": { "kind": "agent", "id": "sess_a", "workspace": "ws_1" },
        "action": "tool.bash",
        "resource": { "type": "path", "path": "/home/ann/project", "workspace": "ws_1" },
        "risk": "medium",
        "contained": true,
        "shell": { "programs": ["git"], "commands": ["git push"], "concerns": ["pushes"] },
    });
    assert_eq!(kept, wanted);
    // A record from before a field existed, or with one that is not known here, can still be read.
    let old =
        r#"{"actor":{"kind":"user","id":"ann"},"action":"bus.status","resource":{"type":"house"},"later":1}"#;
    let input: Input = serde_json::from_str(old).unwrap();
    assert_eq!(rules("").decide(&input, &[], Approved::No).answer, Answer::Allow);
}
