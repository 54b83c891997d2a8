//! What a server's tools may do is decided where every tool's is.

use serde_json::{Value, json};

use super::hostile::config;
use super::{call, configured, failure, record, result};
use crate::child::Child;

#[test]
fn nobody_to_ask_means_denied_and_the_server_never_hears_of_it() {
    let world = configured(&config("bad", "", "allow = [\"good\"]"));
    let mut child = Child::start(&world, &[]);
    let (error, record) = failure(&mut child, "bad__die", json!({ "password": "hunter2hunter2" }));
    assert!(error.starts_with("Denied: it calls the MCP server `bad`"), "{error}");
    assert_eq!((&record["outcome"], &record["error"]["code"]), (&json!("denied"), &json!("POLICY_DENIED")));
    assert!(!record.to_string().contains("hunter2"), "{record}");
    assert_eq!(result(&mut child, "bad__good", json!({})), "good did it", "what the user allowed is allowed");
}

#[test]
fn a_parent_that_answers_is_asked() {
    let world = configured(&config("bad", "", ""));
    let mut child = Child::start(&world, &["--asks"]);
    for (option, ok) in [("deny", false), ("allow", true)] {
        child.send(json!({ "type": "tool_call", "id": "c", "name": "bad__good", "args": { "n": 1 } }));
        let ask = child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap();
        assert_eq!((&ask["subject"]["tool"], &ask["risk"]), (&json!("bad__good"), &json!("medium")));
        assert_eq!(ask["subject"]["arguments"], json!({ "n": 1 }));
        child.send(json!({ "type": "answer", "id": "w", "ask_id": ask["ask_id"], "option": option }));
        let frames = child.until_response("c");
        assert_eq!(frames[frames.len() - 1]["ok"], ok, "{frames:#?}");
        assert_eq!(record(&frames)["outcome"], if ok { "ok" } else { "denied" });
    }
}

#[test]
fn a_mode_that_changes_nothing_calls_nothing_unknown() {
    let world = configured(&config("bad", "", "allow = [\"*\"]"));
    let mut child = Child::start(&world, &["--tool-mode", "read-only"]);
    assert!(failure(&mut child, "bad__good", json!({})).0.contains("read-only"));
    child.ask(json!({ "type": "set_tool_mode", "id": "m", "mode": "workspace" }));
    assert_eq!(result(&mut child, "bad__good", json!({})), "good did it");
}

#[test]
fn hidden_tools_are_not_there() {
    let world = configured(&config("bad", "", "hide = [\"die\"]"));
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    assert_eq!(call(&mut child, "bad__die", json!({})).pop().unwrap()["error"], "Unknown tool: bad__die");
}

#[test]
fn a_subagent_borrows_the_one_server_and_the_record_bears_its_name() {
    let world = configured("");
    let started = world.folder().join("started");
    let lines = format!(
        "{}STARTED = {}\n",
        config("bad", "", "allow = [\"good\"]"),
        json!(started.to_str().unwrap())
    );
    std::fs::write(world.paths().config_file(), lines).unwrap();
    let mut child = Child::start(&world, &[]);
    let task = "!tool bad__good {\"n\": 1}\n!tool bad__die {}";
    let frames = child.turn("p", &format!("!tool subagent {}", json!({ "name": "scout", "task": task })));
    let mut records: Vec<_> = frames.iter().filter(|frame| frame["type"] == "mcp_call").collect();
    records.sort_by_key(|record| record["tool"].to_string());
    let outcomes: Vec<_> = records.iter().map(|record| (&record["tool"], &record["outcome"])).collect();
    assert_eq!(outcomes, [(&json!("bad__die"), &json!("denied")), (&json!("bad__good"), &json!("ok"))]);
    for record in records {
        assert_eq!(record["agents"], json!(["scout"]), "{record}");
        assert_ne!(record["session_id"], child.session_id.as_str(), "it is the subagent's session");
    }
    let result = crate::child::results(&frames)[0];
    assert!(result.contains("good did it") && result.contains("Denied: it calls the MCP server"), "{result}");
    // One server for the whole tree.
    let server = std::fs::read_to_string(&started).unwrap();
    assert!(crate::child::is_alive(&server));
    assert_eq!(frames.iter().filter(|frame| frame["state"] == "ready").count(), 1, "{frames:#?}");

    // What it may do is what the subagent may do, not what its parent may.
    child.ask(json!({ "type": "set_tool_mode", "id": "m", "mode": "full" }));
    let task = json!({ "name": "reader", "mode": "read-only", "task": "!tool bad__good {}" });
    let frames = child.turn("q", &format!("!tool subagent {task}"));
    assert_eq!(record(&frames)["outcome"], "denied", "{frames:#?}");
}

#[test]
fn a_subagent_of_a_subagent_borrows_the_same_server_and_both_are_named() {
    let world = configured("");
    let started = world.folder().join("started");
    let lines = format!(
        "{}STARTED = {}\n",
        config("bad", "", "allow = [\"good\"]"),
        json!(started.to_str().unwrap())
    );
    std::fs::write(world.paths().config_file(), lines).unwrap();
    let mut child = Child::start(&world, &[]);
    let inner = json!({ "name": "inner", "task": "!tool bad__good {\"n\": 2}\n!tool bad__die {}" });
    let outer = json!({ "name": "outer", "task": format!("!tool subagent {inner}") });
    let frames = child.turn("p", &format!("!tool bad__good {{}}\n!then\n!tool subagent {outer}"));
    let mut records: Vec<_> = frames.iter().filter(|frame| frame["type"] == "mcp_call").collect();
    records.sort_by_key(|record| (record["agents"].to_string(), record["tool"].to_string()));
    let told: Vec<_> =
        records.iter().map(|record| (&record["agents"], &record["tool"], &record["outcome"])).collect();
    let (both, good) = (json!(["outer", "inner"]), json!("bad__good"));
    let expected = [
        (&both, &json!("bad__die"), &json!("denied")),
        (&both, &good, &json!("ok")),
        (&Value::Null, &good, &json!("ok")),
    ];
    assert_eq!(told, expected, "{records:#?}");
    let sessions: std::collections::BTreeSet<_> =
        records.iter().map(|record| record["session_id"].to_string()).collect();
    assert_eq!(sessions.len(), 2, "the calls of the lower one are of its own session");
    // One server for the whole tree: it was started once and still runs.
    assert_eq!(frames.iter().filter(|frame| frame["state"] == "ready").count(), 1, "{frames:#?}");
    assert!(crate::child::is_alive(&std::fs::read_to_string(&started).unwrap()));
}
