//! Looking and answering.

use serde_json::json;
use swb_rules::approval::{ApprovalRequest, Binding, Patience};

use crate::questions::{ask, command, question, world};

#[test]
fn a_person_looks_answers_and_takes_back() {
    let mut world = world();
    let stopped = world.swb(["approvals"]);
    assert!(stopped.code == Some(3) && stopped.stderr.contains("swb up"), "{stopped:?}");
    world.start();
    let empty = world.swb(["approvals"]).ok();
    assert!(empty.stdout.is_empty() && empty.stderr.contains("nothing waits"), "{empty:?}");
    ask(&world, question("apr_01AAAA", command("git push origin main")), Patience::Interactive);
    ask(&world, question("apr_01AABB", json!({"project_id": "proj_1"})), Patience::Detached);

    let listed = world.swb(["approvals"]).ok().stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 6, "{listed}");
    assert!(lines[0].starts_with("? apr_01AAAA  medium risk  agent sess_ada  asked "), "{listed}");
    assert!(lines[0].contains(" 14 min left") && lines[0].ends_with("not contained"), "{listed}");
    assert_eq!(lines[1], "  session.create git push origin main");
    assert_eq!(lines[2], "  agents do not make sessions on their own");
    assert!(lines[3].contains("23 h left"), "{listed}");
    assert_eq!(lines[4], "  session.create project_id=\"proj_1\"");

    let shown = world.swb(["approvals", "show", "01aaa"]).ok().stdout;
    for part in
        ["git push origin main", "agents-manage-when-approved", "advisory", "sess_ada", "approve apr_01AAAA"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let unclear = world.swb(["approvals", "approve", "01AA"]);
    assert!(unclear.code == Some(1) && unclear.stderr.contains("apr_01AAAA and apr_01AABB"), "{unclear:?}");
    let unknown = world.swb(["approvals", "approve", "AAAA", "nobody"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("--all"), "{unknown:?}");
    assert_eq!(
        world.swb(["--json", "approvals"]).ok().json_lines().len(),
        2,
        "one of two unknown: none is answered"
    );

    let yes = world.swb(["approvals", "approve", "AAAA", "--reason", "fine", "--for-session"]).ok().stdout;
    assert!(yes.starts_with("approved apr_01AAAA") && yes.contains("swb approvals revoke grant_"), "{yes}");
    let no = world.swb(["--json", "approvals", "deny", "apr_01AABB", "--reason", "not now"]).ok().json();
    assert_eq!((&no["approval_id"], &no["status"]), (&json!("apr_01AABB"), &json!("denied")));
    assert!(world.swb(["approvals"]).ok().stdout.is_empty());
    let all = world.swb(["approvals", "--all"]).ok().stdout;
    assert!(all.contains("✓ apr_01AAAA") && all.contains("approved by user_local"), "{all}");
    assert!(all.contains("✗ apr_01AABB") && all.contains("denied by user_local"), "{all}");
    assert!(world.swb(["approvals", "show", "01AABB"]).ok().stdout.contains("not now"));

    let grants = world.swb(["approvals", "grants"]).ok().stdout;
    assert!(grants.contains("sess_ada") && grants.contains("session.create"), "{grants}");
    let id =
        world.swb(["--json", "approvals", "grants"]).ok().json()["grant_id"].as_str().unwrap().to_owned();
    assert_eq!(
        world.swb(["approvals", "revoke", &id[..id.len() - 1]]).ok().stdout,
        format!("took back {id}\n")
    );
    let none = world.swb(["approvals", "grants"]).ok();
    assert!(none.stdout.is_empty() && none.stderr.contains("nothing is allowed"), "{none:?}");
    assert_eq!(world.swb(["approvals", "revoke", &id]).code, Some(1));
}

#[test]
fn whoever_comes_second_is_told_what_came_out() {
    let mut world = world();
    world.start();
    ask(&world, question("apr_1", command("make install")), Patience::Interactive);
    ask(&world, question("apr_2", command("make install")), Patience::Nobody);
    world.swb(["approvals", "approve", "apr_1"]).ok();
    let other = world.swb(["approvals", "deny", "apr_1"]);
    assert!(
        other.code == Some(5) && other.stderr.contains("somebody was first: approved by user_local"),
        "{other:?}"
    );
    let told = world.swb(["--json", "approvals", "deny", "apr_1"]);
    let error: serde_json::Value = serde_json::from_str(&told.stderr).unwrap();
    assert_eq!(error["error"]["error"]["data"]["outcome"]["status"], "approved");
    let same = world.swb(["approvals", "approve", "apr_1"]).ok();
    assert!(same.stdout.contains("somebody was first"), "{same:?}");
    let late = world.swb(["approvals", "approve", "apr_2"]);
    assert!(late.code == Some(5) && late.stderr.contains("nobody answered"), "{late:?}");
}

#[test]
fn a_token_is_shown_to_whoever_agreed_and_to_nobody_else() {
    let mut world = world();
    world.start();
    let binding = Binding {
        method: "share.tmate.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:user_local".into(),
        workspace_id: "ws_1".into(),
    };
    let share = ApprovalRequest { token_for: Some(binding), ..question("apr_1", command("tmate")) };
    ask(&world, share, Patience::Interactive);
    let refused = world.swb(["approvals", "approve", "apr_1", "--for-session"]);
    assert!(refused.code == Some(5) && refused.stderr.contains("NO_SUCH_OPTION"), "{refused:?}");
    let yes = world.swb(["--json", "approvals", "approve", "apr_1"]).ok().json();
    let token = yes["approval_token"].as_str().unwrap();
    assert!(token.starts_with("apt_"));
    for again in
        [vec!["--json", "approvals", "show", "apr_1"], vec!["--json", "events"], vec!["approvals", "--all"]]
    {
        let told = world.swb(&again).ok();
        assert!(!told.stdout.contains(token), "{again:?}");
    }
}

#[test]
fn what_an_agent_writes_cannot_change_what_a_person_sees() {
    let mut world = world();
    world.start();
    let line = "echo ok\u{1b}[2K\u{1b}]0;title\u{7}\rrm -rf / \u{202e}sdrawkcab\u{0}";
    let hostile = ApprovalRequest {
        reason: "because\u{1b}[1A\u{1b}[2K".into(),
        ..question("apr_1", json!({"command": line, "na\u{1b}[31mme": "x"}))
    };
    ask(&world, hostile, Patience::Interactive);
    for arguments in [vec!["approvals"], vec!["approvals", "show", "apr_1"], vec!["approvals", "--all"]] {
        let shown = world.swb(arguments.iter().chain(&["--set", "cli.color=never"])).ok().stdout;
        assert!(shown.contains("rm -rf /"), "{shown:?}");
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(harmful), "{shown:?}");
    }
    let coloured = world.swb(["approvals", "--set", "cli.color=always"]).ok().stdout;
    assert!(coloured.contains('\u{1b}') && !coloured.contains("\u{1b}[2K"), "{coloured:?}");
}
