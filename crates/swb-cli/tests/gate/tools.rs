//! An agent's tool calls, judged by the daemon.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use swb_host::wire::Containment;
use testkit::wait;

use crate::hosted_agent::{HostedAgent, Office};

fn write(path: &str) -> (&'static str, Value) {
    ("write", json!({ "path": path, "content": "x" }))
}

#[test]
fn the_rules_of_the_daemon_decide_and_the_model_reads_why() {
    let office = Office::new();
    // Where nobody is asked and the parent answers no asks either, only the daemon can let it write.
    let mut agent = HostedAgent::start(&office, None, &[]);
    std::fs::write(office.project.join(".env"), "SECRET=1").unwrap();
    let results = agent.turn(&[write("a.txt"), ("read", json!({ "path": ".env" })), ("ls", json!({}))]);
    assert!(office.project.join("a.txt").exists(), "{results:?}");
    assert!(results[1].starts_with("Denied: files that hold secrets are not for agents"), "{results:?}");
    assert!(results[2].contains("a.txt"), "{results:?}");
    office.rules("@id(\"no-pens\") @reason(\"no pens today\") forbid (principal is Agent, action in Action::\"write\", resource);");
    let results = agent.turn(&[write("b.txt")]);
    assert_eq!(results, ["Denied: no pens today"]);
    assert!(!office.project.join("b.txt").exists());
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn what_needs_somebody_waits_for_the_answer() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &[]);
    for (word, done) in [("approve", true), ("deny", false)] {
        let file = format!("{word}.txt");
        agent.prompt(&format!("!tool bash {}", json!({ "command": format!("echo it > {file}") })));
        let pending = office.pending(1);
        assert_eq!(pending[0]["subject"]["command"], format!("echo it > {file}"), "{pending:?}");
        assert_eq!(pending[0]["correlation_id"], "run_1");
        assert_eq!(pending[0]["session_id"], office.session);
        office.answer(word, &pending[0]);
        let results = agent.results();
        assert_eq!(office.project.join(&file).exists(), done, "{results:?}");
        assert_eq!(results[0].starts_with("Denied: a person said no: I say so"), !done, "{results:?}");
    }
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn a_daemon_that_is_away_is_waited_for() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &[]);
    office.world.swb(["down"]).ok();
    agent.prompt(&format!("!tool write {}", write("later.txt").1));
    while agent.next()["event"]["type"] != "toolcall_input" {}
    assert!(!office.project.join("later.txt").exists());
    office.world.swb(["up"]).ok();
    let results = agent.results();
    assert!(office.project.join("later.txt").exists(), "{results:?}");
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn a_question_outlives_the_daemon_and_is_put_once() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &[]);
    agent.prompt(&format!("!tool bash {}", json!({ "command": "echo it > kept.txt" })));
    let before = office.pending(1);
    let pid = office.world.pid();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait("the next daemon answers", || {
        let status = office.world.swb(["--json", "status"]).json_lines();
        status.first().is_some_and(|status| status["pid"].as_i64().is_some_and(|next| next != i64::from(pid)))
    });
    let after = office.pending(1);
    assert_eq!(after[0]["approval_id"], before[0]["approval_id"]);
    office.answer("approve", &after[0]);
    let results = agent.results();
    assert!(office.project.join("kept.txt").exists(), "{results:?}");
    let asked = office.world.swb(["--json", "approvals", "--all"]).ok().json_lines();
    assert_eq!(asked.len(), 1, "{asked:?}");
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn a_subagent_is_judged_as_itself_and_as_everybody_above_it() {
    let office = Office::new();
    let session = &office.session;
    office.rules(&format!(
        "@id(\"scouts-look\") @reason(\"scouts only look\")
         forbid (principal in Agent::\"{session}/scout\", action in Action::\"write\", resource);
         @id(\"not-this-one\") @reason(\"nobody of this session\")
         forbid (principal in Agent::\"{session}\", action == Action::\"tool.grep\", resource);"
    ));
    let mut agent = HostedAgent::start(&office, None, &[]);
    let by = |name: &str, tool: &str, input: Value| {
        ("subagent", json!({ "name": name, "task": format!("!tool {tool} {input}") }))
    };
    let results = agent.turn(&[
        by("scout", "write", write("scout.txt").1),
        by("pen", "write", write("pen.txt").1),
        by("pen", "grep", json!({ "pattern": "x" })),
    ]);
    assert!(results[0].contains("Denied: scouts only look"), "{results:?}");
    assert!(!office.project.join("scout.txt").exists());
    assert!(office.project.join("pen.txt").exists(), "{results:?}");
    assert!(results[2].contains("Denied: nobody of this session"), "{results:?}");
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn who_only_looks_changes_nothing_whatever_the_rules_permit() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &["--tool-mode", "read-only"]);
    let results = agent.turn(&[write("a.txt"), ("ls", json!({}))]);
    assert_eq!(results[0], "Denied: writing a file is not allowed in read-only mode");
    assert!(!results[1].starts_with("Denied"), "{results:?}");
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn a_daemon_without_a_session_is_a_mistake_of_the_parent() {
    let world = testkit::World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    let mut command = world.command(["rpc"]);
    command.env("SWB_CONTROL_SOCKET", world.paths().control_socket()).stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("SWB_SESSION_ID"), "{complaint}");
}

#[test]
fn in_a_cell_harmless_command_lines_need_nobody_and_the_next_daemon_is_found() {
    let office = Office::new();
    let paths = office.world.paths();
    std::fs::create_dir_all(paths.sessions(None)).unwrap();
    let mut walls = swb_daemon::containment::walls(&paths, None);
    // Its history is the agent's own.
    walls.shown.push(paths.sessions(None));
    let mut agent = HostedAgent::start(&office, Some(walls), &[]);
    if !matches!(agent.containment, Containment::Advisory { .. }) {
        let results = agent.turn(&[("bash", json!({ "command": "echo it > cell.txt" }))]);
        assert!(office.project.join("cell.txt").exists(), "{results:?}");
        // The next daemon is met through the same cell.
        office.world.swb(["restart"]).ok();
        let script = "echo it > after.txt; rm -f \"$SWB_HOME/run/door/control.sock\"; rm -f \"$SWB_HOME/run/control.sock\"";
        agent.prompt(&format!("!tool bash {}", json!({ "command": script })));
        office.answer("approve", &office.pending(1)[0]);
        let results = agent.results();
        assert!(office.project.join("after.txt").exists(), "{results:?}");
        office.world.swb(["status"]).ok();
        let results = agent.turn(&[write("last.txt")]);
        assert!(office.project.join("last.txt").exists(), "{results:?}");
    }
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn what_was_decided_about_a_call_is_in_the_record() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &[]);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    agent.turn(&[
        ("write", json!({ "path": "a.txt", "content": format!("token {token}") })),
        ("read", json!({ "path": ".env" })),
    ]);
    agent.prompt(&format!("!tool bash {}", json!({ "command": "git push origin elsewhere" })));
    let pending = office.pending(1);
    office.answer("deny", &pending[0]);
    agent.results();
    let search = |words: &[&str]| {
        let args = ["--json", "audit", "search"].iter().chain(words);
        office.world.swb(args).ok().json_lines()
    };
    let session = office.session.as_str();
    let starts = |method: &str| -> Value {
        let found = search(&["--method", method, "--session", session]);
        assert_eq!(found.len(), 2, "a start and an end: {found:?}");
        found.into_iter().find(|record| record["kind"] == "start").unwrap()
    };
    let write = starts("tool.write");
    assert_eq!(write["decision"]["outcome"], "allow");
    assert_eq!(write["decision"]["rules"], json!(["agents-write"]));
    assert_eq!((&write["actor"]["id"], &write["correlation_id"]), (&json!(session), &json!("run_1")));
    assert!(write["args_hash"].is_string() && write["args"]["arguments"]["path"] == "a.txt", "{write}");
    assert!(!write.to_string().contains(&token), "{write}");
    assert_eq!(starts("tool.read")["decision"]["rules"], json!(["no-secrets"]));
    let bash = starts("tool.bash");
    assert_eq!(
        (&bash["decision"]["outcome"], &bash["decision"]["approval_id"]),
        (&json!("deny"), &pending[0]["approval_id"])
    );
    // By words, by how it ended, and by the decision that the agent was told.
    assert!(search(&["elsewhere", "--method", "tool.*"]).iter().any(|it| it["method"] == "tool.bash"));
    let denied = search(&["--status", "denied", "--method", "tool.*"]);
    assert_eq!(denied.len(), 2, "{denied:?}");
    let id = write["decision"]["id"].as_str().unwrap();
    assert!(search(&["--decision", id]).iter().any(|it| it["method"] == "tool.write"));
    drop(agent);
    office.world.swb(["down"]).ok();
}

#[test]
fn an_aborted_call_takes_its_question_back() {
    let office = Office::new();
    let mut agent = HostedAgent::start(&office, None, &[]);
    agent.prompt(&format!("!tool bash {}", json!({ "command": "echo it > never.txt" })));
    let asked = office.pending(1);
    agent.send(&json!({ "type": "abort", "id": "a" }));
    agent.results();
    office.pending(0);
    let all = office.world.swb(["--json", "approvals", "--all"]).ok().json_lines();
    assert_eq!(
        (&all[0]["approval_id"], &all[0]["status"]),
        (&asked[0]["approval_id"], &json!("denied")),
        "{all:?}"
    );
    assert!(!office.project.join("never.txt").exists());
    drop(agent);
    office.world.swb(["down"]).ok();
}
