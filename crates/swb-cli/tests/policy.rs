//! `swb policy`: checking, listing and asking rules, and trying others on the recorded past. On files alone.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Value, json};
use swb_journal::audit::{AuditLog, AuditOptions, Entry, Moment, RecordedDecision};
use swb_rules::policy::{Actor, Input, Resource};
use testkit::{World, wait};

const NO_PUSH: &str = "@id(\"no-push\")\n@reason(\"we push by hand\")\n\
    forbid (principal is Agent, action == Action::\"tool.bash\", resource)\n\
    when { context.shell.commands.contains(\"git push\") };\n";

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.paths().policy()).unwrap();
    world
}

fn own(world: &World, text: &str) {
    std::fs::write(world.paths().policy().join("own.cedar"), text).unwrap();
}

fn explain(world: &World, arguments: &[&str]) -> Value {
    world.swb([&["policy", "explain", "--json"], arguments].concat()).ok().json()
}

#[test]
fn check_names_the_place_and_what_helps() {
    let world = world();
    let good = world.swb(["policy", "check", "--json"]).ok().json();
    assert!(good["ok"] == true && good["rules"].as_u64() > Some(10), "{good}");
    own(&world, "// mine\npermit (principal, action == Action::\"session.crate\", resource);\n");
    let bad = world.swb(["policy", "check"]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.stdout.contains("policy/own.cedar:2:") && bad.stdout.contains("did you mean"), "{bad:?}");
    let json = world.swb(["policy", "check", "--json"]).json();
    assert_eq!((&json["ok"], &json["problems"][0]["line"]), (&json!(false), &json!(2)));
    // A file by name; and one that lies where a project's rules lie must not permit.
    let theirs = world.folder().join(".switchboard/policy/p.cedar");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "permit (principal, action, resource);").unwrap();
    let theirs = theirs.to_str().unwrap();
    let refused = world.swb(["policy", "check", theirs]);
    assert!(refused.code == Some(1) && refused.stdout.contains("may only forbid or ask"), "{refused:?}");
    world.swb(["policy", "check", theirs, "--layer", "user"]).ok();
    assert_eq!(world.swb(["policy", "check", "/nowhere.cedar"]).code, Some(1));
}

#[test]
fn rules_say_whose_they_are() {
    let world = world();
    own(&world, NO_PUSH);
    let project = world.folder().join(".switchboard/policy");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(
        project.join("p.cedar"),
        "@ask\nforbid (principal, action in Action::\"write\", resource);",
    )
    .unwrap();
    let rules = world.swb(["policy", "rules", "--json"]).ok().json_lines();
    let one = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(
        (&one("people-may")["layer"], &one("people-may")["effect"]),
        (&json!("default"), &json!("permit"))
    );
    assert_eq!(
        (&one("no-push")["layer"], &one("no-push")["file"]),
        (&json!("user"), &json!("policy/own.cedar"))
    );
    let theirs = one(".switchboard/policy/p.cedar:1");
    assert_eq!((&theirs["layer"], &theirs["effect"]), (&json!("project"), &json!("ask")));
    assert!(world.swb(["policy", "rules"]).ok().stdout.contains("we push by hand"));
    std::fs::write(world.paths().config_file(), "[policy]\ndefaults = false\n").unwrap();
    assert_eq!(world.swb(["policy", "rules", "--json"]).ok().json_lines().len(), 2);
}

#[test]
fn explain_tells_the_rule_and_what_would_change_the_answer() {
    let world = world();
    let push = r#"{"command":"git push origin main"}"#;
    let asked = explain(&world, &["tool.bash", push]);
    assert_eq!(
        (&asked["answer"], &asked["input"]["actor"]["kind"]),
        (&json!("needs_approval"), &json!("agent"))
    );
    assert_eq!(asked["remedies"][0]["answer"], "allow");
    assert!(!asked["findings"].as_array().unwrap().is_empty(), "{asked}");
    own(&world, NO_PUSH);
    let denied = explain(&world, &["tool.bash", push, "--approved"]);
    assert_eq!((&denied["answer"], &denied["rules"][0]["name"]), (&json!("deny"), &json!("no-push")));
    let text = world.swb(["policy", "explain", "tool.bash", push]).ok().stdout;
    assert!(text.contains("we push by hand") && text.contains("if a person does it"), "{text}");
    assert_eq!(explain(&world, &["tool.bash", r#"{"command":"ls"}"#])["answer"], "allow");
    assert_eq!(
        explain(&world, &["tool.bash", r#"{"command":"ls"}"#, "--uncontained"])["answer"],
        "needs_approval"
    );
    assert_eq!(explain(&world, &["tool.read", r#"{"path":".env"}"#])["answer"], "deny");
    assert_eq!(explain(&world, &["session.create", "{}"])["answer"], "allow");
    assert_eq!(explain(&world, &["session.create", "{}", "--actor", "agent:a"])["answer"], "needs_approval");
    assert_eq!(
        explain(&world, &["approval.request.resolve", "--actor", "agent:a", "--approved"])["answer"],
        "deny"
    );
    for wrong in
        [&["no.such"][..], &["tool.bash", "{}"], &["bus.status", "[]"], &["bus.status", "--actor", "x"]]
    {
        let ran = world.swb([&["policy", "explain"], wrong].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}

#[test]
fn a_file_is_judged_by_where_a_link_leads() {
    let world = world();
    std::os::unix::fs::symlink("/etc/ssl/private/x.key", world.folder().join("notes.txt")).unwrap();
    let asked = explain(&world, &["tool.bash", r#"{"command":"cat notes.txt"}"#]);
    assert_ne!(asked["answer"], "allow", "{asked}");
}

#[test]
fn rules_are_tried_on_the_recorded_past() {
    let world = world();
    let log = AuditLog::open(&world.paths().audit(), AuditOptions::default(), Moment::now()).unwrap().0;
    let agent = Actor::Agent { id: "sess_1".into(), workspace: "ws_1".into(), ancestry: Vec::new() };
    let look = Input::new(agent, "workspace.list", Resource::Workspace { id: "ws_1".into() });
    let record = |id: &str, outcome: &str, attributes: Option<Value>, at: Moment| {
        let decision =
            RecordedDecision { id: id.into(), outcome: outcome.into(), rules: Vec::new(), approval_id: None };
        let start = Entry {
            decision: Some(decision),
            attributes: attributes.map(Into::into),
            ..Entry::start(at, "workspace.list")
        };
        log.append_now(&start).unwrap();
    };
    let week = Moment::from_unix_millis(Moment::now().unix_millis() - 8 * 86_400_000);
    record("dec_old", "allow", Some(json!(look)), week);
    record("dec_1", "allow", Some(json!(look)), Moment::now());
    record("dec_2", "deny", Some(json!(look)), Moment::now());
    record("dec_3", "allow", None, Moment::now());
    drop(log);
    let file = world.folder().join("new.cedar");
    std::fs::write(
        &file,
        "@id(\"blind\")\nforbid (principal is Agent, action in Action::\"look\", resource);",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let found = world.swb(["policy", "test", file, "--since", "7d", "--json"]).ok().json();
    assert_eq!((&found["decided"], &found["stricter"], &found["milder"]), (&json!(2), &json!(1), &json!(0)));
    assert_eq!((&found["skipped"], &found["differences"][0]["decision_id"]), (&json!(1), &json!("dec_1")));
    assert_eq!(found["differences"][0]["after"]["rules"], json!(["blind"]));
    let all = world.swb(["policy", "test", file, "--since", "30d", "--json"]).ok().json();
    assert_eq!(all["decided"], 3);
    // What the rules in force would decide differently too is told apart.
    std::fs::write(file, "").unwrap();
    let drift = world.swb(["policy", "test", file, "--json"]).ok().json();
    assert_eq!((&drift["milder"], &drift["differences"][0]["also_now"]), (&json!(1), &json!(true)));
    std::fs::write(file, "permit (x);").unwrap();
    assert_eq!(world.swb(["policy", "test", file]).code, Some(6));
    assert_eq!(world.swb(["policy", "test", file, "--since", "soon"]).code, Some(2));
}

#[test]
fn schema_and_default_rules_are_printed() {
    let world = world();
    assert!(world.swb(["policy", "schema"]).ok().stdout.contains("entity Workspace;"));
    let default = world.swb(["policy", "default"]).ok().stdout;
    let copy = world.folder().join("copy.cedar");
    std::fs::write(&copy, default).unwrap();
    world.swb(["policy", "check", copy.to_str().unwrap()]).ok();
}

#[test]
fn a_running_daemon_says_what_is_wrong_with_its_rules() {
    let world = world();
    world.swb(["up"]).ok();
    assert!(world.status("policy")["rules"].as_u64() > Some(10));
    own(&world, "forbid (nobody);");
    wait("the daemon to notice", || {
        world.status("policy")["problems"].as_array().is_some_and(|it| !it.is_empty())
    });
    let text = world.swb(["status"]).ok().stdout;
    assert!(text.contains("policy/own.cedar:1:") && text.contains("in force, from before"), "{text}");
    let doctor = world.swb(["doctor"]);
    assert!(doctor.code == Some(1) && doctor.stdout.contains("the old rules hold"), "{doctor:?}");
    own(&world, "");
    wait("the daemon to notice", || world.status("policy")["problems"] == json!([]));
    world.swb(["down"]).ok();
    own(&world, "forbid (nobody);");
    let doctor = world.swb(["doctor"]);
    assert!(doctor.code == Some(1) && doctor.stdout.contains("starts now permits nothing"), "{doctor:?}");
}
