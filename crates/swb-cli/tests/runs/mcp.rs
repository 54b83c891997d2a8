//! Calls of MCP servers by an agent under the daemon: told as they end, and recorded.

use serde_json::{Value, json};

use crate::hostile::config;
use crate::house::House;

const ALLOWED: &str =
    "@id(\"tools\")\npermit (principal is Agent, action == Action::\"tool.call\", resource);\n";

/// What was told of calls of servers.
fn calls(house: &House, prompt: &str) -> Vec<Value> {
    let story = house.story(prompt);
    story.is_whole();
    assert_eq!(story.end()["topic"], "agent.run.completed", "{:#?}", story.events);
    // What went into a call is hashed with one key, wherever it is told.
    for call in story.of_kind("mcp").map(|piece| &piece["call"]) {
        let fits = |tool: &&Value| tool["call_id"] == call["tool_id"] && tool["status"] == "called";
        let called = story.of_kind("tool").map(|piece| &piece["tool"]).find(fits).unwrap();
        assert_eq!(call["args_hash"], called["args_hash"]);
    }
    let leaks = story.events.iter().filter(|event| event.to_string().contains("hunter2")).collect::<Vec<_>>();
    assert!(leaks.is_empty(), "{leaks:#?}");
    story.of_kind("mcp").map(|piece| piece["call"].clone()).collect()
}

#[test]
fn a_call_that_fails_carries_its_code_and_every_call_is_recorded() {
    let house = House::with_rules(&config("bad", "", ""), ALLOWED);
    let args = json!({ "token": "hunter2hunter2", "n": 1 });
    let steps = ["good", "fail", "die"].map(|tool| format!("!tool bad__{tool} {args}\n!then\n"));
    let told = calls(&house, &format!("{}!say done", steps.concat()));
    let outcomes: Vec<_> = told.iter().map(|call| (&call["tool"], &call["outcome"])).collect();
    let (ok, failed) = (json!("ok"), json!("failed"));
    let names = ["good", "fail", "die"].map(|tool| json!(format!("bad__{tool}")));
    assert_eq!(outcomes, [(&names[0], &ok), (&names[1], &failed), (&names[2], &failed)]);
    assert_eq!(told[0].get("error"), None);
    for (call, retryable, words) in [(&told[1], false, "no such row"), (&told[2], true, "exit code 3")] {
        assert_eq!(
            (&call["error"]["code"], &call["error"]["retryable"]),
            (&json!("MCP_CALL_FAILED"), &json!(retryable))
        );
        assert!(call["error"]["message"].as_str().unwrap().contains(words), "{call}");
    }

    let lines = house.world.swb(["audit", "tail", "--json", "-n", "1000"]).ok().json_lines();
    // The prompt is prose, in which a name says little.
    let leaks =
        lines.iter().filter(|line| line["method"] != "agent.run" && line.to_string().contains("hunter2"));
    assert_eq!(leaks.collect::<Vec<_>>(), Vec::<&Value>::new());
    let recorded: Vec<_> = lines.iter().filter(|line| line["topic"] == "agent.mcp.called").collect();
    assert_eq!(recorded.len(), 3, "{lines:#?}");
    for (line, call) in recorded.iter().zip(&told) {
        assert_eq!(&line["payload"]["call"], call);
        assert_eq!(call["args"], json!({ "token": "[REDACTED]", "n": 1 }));
        assert_eq!((&call["server"], &call["args_hash"]), (&json!("bad"), &told[0]["args_hash"]));
        assert!(call["duration_ms"].is_u64() && call["started_at"].is_string(), "{call}");
        assert_eq!((&line["actor"]["kind"], &line["session_id"]), (&json!("agent"), &call["session_id"]));
    }
    // The same arguments have the same hash in another session, and others have another.
    let again =
        calls(&house, &format!("!tool bad__good {args}\n!then\n!tool bad__good {{}}\n!then\n!say done"));
    assert_eq!(again[0]["args_hash"], told[0]["args_hash"]);
    assert_ne!(again[1]["args_hash"], told[0]["args_hash"]);
}

#[test]
fn a_call_that_a_rule_forbids_never_reaches_its_server_and_is_recorded() {
    let forbidden = ALLOWED.replace("permit", "forbid");
    let house = House::with_rules(&config("bad", "", ""), &forbidden);
    let told = calls(&house, "!tool bad__die {}\n!then\n!say done");
    assert_eq!((&told[0]["outcome"], &told[0]["error"]["code"]), (&json!("denied"), &json!("POLICY_DENIED")));
    let record = house.world.swb(["audit", "tail", "--json", "-n", "1000"]).ok().json_lines();
    assert_eq!(record.iter().filter(|line| line["topic"] == "agent.mcp.called").count(), 1);
}
