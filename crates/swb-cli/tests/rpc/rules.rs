//! Rules of the user and of the project, without a daemon.

use std::fs;

use serde_json::json;

use crate::child::{Child, bash, results, world};

#[test]
fn rules_speak_before_the_mode_and_nobody_to_ask_means_no() {
    let world = world();
    let policy = world.paths().policy();
    let project = world.folder().join(".switchboard/policy");
    let mut child = Child::start(&world, &[]);
    let run = |child: &mut Child, command: &str| results(&child.turn("p", &bash(command))).concat();
    assert_eq!(run(&mut child, "echo hello"), "hello\n");
    assert!(run(&mut child, "touch x; rm x").starts_with("Denied: "), "the mode asks, and nobody answers");

    // A running agent hears of rules that are written meanwhile.
    fs::create_dir_all(&policy).unwrap();
    let permit = r#"permit (principal is Agent, action == Action::"tool.bash", resource)
                    when { context.shell.programs.contains("rm") };"#;
    let forbid = r#"@reason("no greetings") forbid (principal, action == Action::"tool.bash", resource)
                    when { context.shell.programs.contains("echo") };"#;
    fs::write(policy.join("own.cedar"), format!("{permit}\n{forbid}")).unwrap();
    assert_eq!(run(&mut child, "touch x; rm x"), "");
    assert_eq!(run(&mut child, "echo hello"), "Denied: no greetings");

    // One that is broken from the start: nothing goes, and it is named.
    fs::write(policy.join("own.cedar"), "permit (").unwrap();
    assert_eq!(run(&mut child, "touch x; rm x"), "", "the rules that held still do");
    let mut other = Child::start(&world, &[]);
    let denied = run(&mut other, "pwd");
    assert!(denied.starts_with("Denied: the rules cannot be used: policy/own.cedar:1:"), "{denied}");

    // The project's ask, and cannot permit.
    fs::remove_file(policy.join("own.cedar")).unwrap();
    fs::create_dir_all(&project).unwrap();
    let ask = r#"@ask("which folder, please?") forbid (principal, action == Action::"tool.ls", resource);"#;
    fs::write(project.join("a.cedar"), ask).unwrap();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!tool ls {}");
    let ask = child.until("an ask", |frame| frame["type"] == "ask").pop().unwrap();
    assert_eq!(ask["reason"], "which folder, please?");
    child.send(json!({ "type": "answer", "id": "a", "ask_id": ask["ask_id"], "option": "allow" }));
    assert!(!results(&child.until_response("p")).concat().starts_with("Denied"));
    let mut alone = Child::start(&world, &[]);
    let denied = results(&alone.turn("p", "!tool ls {}")).concat();
    assert_eq!(denied, "Denied: which folder, please?, and nobody was there to ask");
    fs::write(project.join("a.cedar"), "permit (principal, action, resource);").unwrap();
    let denied = results(&Child::start(&world, &[]).turn("p", "!tool ls {}")).concat();
    assert!(denied.starts_with("Denied: the rules cannot be used"), "{denied}");
}

#[test]
fn the_users_rules_of_redaction_hold_for_what_is_asked() {
    let world = world();
    fs::create_dir_all(world.paths().config).unwrap();
    let file = world.paths().redaction_file();
    fs::write(&file, "[[rule]]\nid = \"acme-key\"\nprefix = \"acme_\"\nmin = 16\n").unwrap();
    let mut child = Child::start(&world, &["--asks"]);
    let key = "acme_0123456789abcdef0123";
    child.prompt("p", &bash(&format!("rm -r {key}")));
    let ask = child.until("an ask", |frame| frame["type"] == "ask").pop().unwrap();
    assert!(!ask.to_string().contains(key) && ask.to_string().contains("REDACTED"), "{ask}");
    fs::write(&file, "[[rule]]\nid = 3").unwrap();
    let refused = world.swb(["rpc"]);
    assert!(refused.code == Some(6) && refused.stderr.contains("redaction.toml"), "{refused:?}");
}

#[test]
fn who_only_looks_stays_so_whatever_a_rule_permits() {
    let world = world();
    let policy = world.paths().policy();
    fs::create_dir_all(&policy).unwrap();
    fs::write(policy.join("own.cedar"), "permit (principal, action, resource);").unwrap();
    let mut child = Child::start(&world, &["--tool-mode", "read-only"]);
    let write = format!("!tool write {}", json!({ "path": "a", "content": "x" }));
    let denied = results(&child.turn("p", &write)).concat();
    assert_eq!(denied, "Denied: writing a file is not allowed in read-only mode");
    assert!(!world.folder().join("a").exists());
}
