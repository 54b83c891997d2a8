//! What a server's tools may do is decided where every tool's is.

use serde_json::json;

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
