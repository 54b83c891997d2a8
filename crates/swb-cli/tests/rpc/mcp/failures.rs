//! Whatever a server does wrong is reported, costs only its own tools, and is over when it is over.

use serde_json::{Value, json};

use super::hostile::config;
use super::{agent, call, configured, failure, record, result, tools, until_state};
use crate::child::results;

#[test]
fn servers_that_do_not_start_are_reported_and_cost_nobody_else() {
    let world = configured(&format!(
        "{}{}{}{}[mcp.nowhere]\ncommand = \"swb-no-such-program\"\n[mcp.unset]\ncommand = \"${{SWB_NO_SUCH}}\"\n",
        config("good", "", ""),
        config("exits", "exit", ""),
        config("silent", "silent", "start_timeout_s = 1"),
        config("rude", "refuses", ""),
    ));
    let mut child = agent(&world);
    let mut why = std::collections::HashMap::new();
    while why.len() < 6 {
        let frame = child.next();
        if frame["type"] == "mcp_server" {
            why.insert(frame["server"].as_str().unwrap().to_owned(), frame);
        }
    }
    for (server, words) in [
        ("exits", "exit code 4; it said: no configuration"),
        ("silent", "did not answer within 1 s"),
        ("rude", "go away"),
        ("nowhere", "no program `swb-no-such-program` in PATH"),
        ("unset", "SWB_NO_SUCH is not set"),
    ] {
        assert_eq!(why[server]["state"], "failed", "{}", why[server]);
        assert!(why[server]["message"].as_str().unwrap().contains(words), "{}", why[server]);
    }
    assert!(!why["exits"].to_string().contains("hunter2"), "{}", why["exits"]);
    assert_eq!(result(&mut child, "good__good", json!({})), "good did it");
    assert!(tools(&mut child).contains(&"bash".to_owned()));
}

#[test]
fn a_server_that_dies_during_a_call_is_started_again_by_the_next_one() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    let frames = call(&mut child, "bad__die", json!({ "token": "hunter2hunter2", "n": 1 }));
    let error = frames[frames.len() - 1]["error"].as_str().unwrap();
    assert!(error.contains("exit code 3; it said: out of luck"), "{error}");
    let record = record(&frames);
    assert_eq!(record["outcome"], "failed");
    assert_eq!(record["error"]["code"], "MCP_CALL_FAILED");
    assert_eq!(record["error"]["retryable"], true);
    assert_eq!((&record["tool"], &record["server"]), (&json!("bad__die"), &json!("bad")));
    assert_eq!(record["args"], json!({ "token": "[REDACTED]", "n": 1 }));
    assert_eq!(record["args_hash"].as_str().unwrap().len(), 64);
    assert_eq!(record["session_id"], child.session_id.as_str());
    assert!(!format!("{frames:?}").contains("hunter2"), "{frames:#?}");
    let down = frames.iter().find(|frame| frame["state"] == "down");
    let down = down.cloned().unwrap_or_else(|| until_state(&mut child, "bad", "down"));
    assert!(down["message"].as_str().unwrap().contains("exit code 3"), "{down}");

    let frames = call(&mut child, "bad__good", json!({}));
    assert!(frames.iter().any(|frame| frame["state"] == "ready"), "{frames:#?}");
    assert_eq!(frames[frames.len() - 1]["result"], "good did it");
}

#[test]
fn a_server_that_keeps_dying_is_left_alone_for_a_while() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    for _ in 0..2 {
        assert!(failure(&mut child, "bad__die", json!({})).0.contains("exit code 3"));
    }
    let (error, record) = failure(&mut child, "bad__good", json!({}));
    assert!(error.contains("is down") && error.contains("at the earliest in 1 s"), "{error}");
    assert_eq!(record["error"]["retryable"], true);
}

#[test]
fn a_call_that_is_never_answered_times_out_and_is_withdrawn() {
    let world = configured(&config("bad", "", "call_timeout_s = 1"));
    let mut child = agent(&world);
    let (error, record) = failure(&mut child, "bad__stall", json!({}));
    assert!(error.contains("no answer and no sign of progress for 1 s"), "{error}");
    assert!(record["duration_ms"].as_u64().unwrap() >= 1000, "{record}");
    // The server itself is well, and was told.
    let told = result(&mut child, "bad__cancelled", json!({}));
    assert_eq!(told, "[\"nobody waits for it any more\"]");
}

#[test]
fn a_server_that_has_fallen_silent_is_given_up_and_replaced() {
    let world = configured(&config("bad", "", "call_timeout_s = 1"));
    let mut child = agent(&world);
    failure(&mut child, "bad__deaf", json!({}));
    let down = until_state(&mut child, "bad", "down");
    assert!(down["message"].as_str().unwrap().contains("does not answer any more"), "{down}");
    assert_eq!(result(&mut child, "bad__good", json!({})), "good did it");
}

#[test]
fn floods_end_the_connection_and_nothing_else() {
    let world = configured(&format!("{}{}", config("bad", "", ""), config("good", "", "")));
    let mut child = agent(&world);
    for (tool, words) in [("bad__flood", "messages within"), ("bad__huge", "a message of more than 8 MiB")] {
        let (error, record) = failure(&mut child, tool, json!({}));
        assert!(error.contains(words), "{error}");
        assert_eq!(record["error"]["code"], "MCP_CALL_FAILED");
        assert_eq!(result(&mut child, "good__good", json!({})), "good did it");
        assert_eq!(result(&mut child, "bad__good", json!({})), "good did it", "a success clears its name");
    }
}

#[test]
fn garbage_between_the_lines_is_passed_over() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    assert_eq!(result(&mut child, "bad__garbage", json!({})), "found my way");
}

#[test]
fn an_answer_is_cut_like_the_output_of_any_tool() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    let frames = child.turn("p", "!tool bad__big {}");
    let shown = results(&frames)[0];
    assert!(shown.ends_with("\n[2097152 more bytes were dropped]"), "{}", &shown[shown.len() - 80..]);
    let kept = child.messages()[2]["content"][0]["content"].take();
    assert!(kept.as_str().unwrap().ends_with("showing first 30000]"));
}

#[test]
fn what_a_server_says_about_a_failure_reaches_the_model() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    for (tool, words) in [("bad__fail", "no such row"), ("bad__refuse", "wrong arguments (-32602)")] {
        let (error, record) = failure(&mut child, tool, json!({}));
        assert!(error.contains(words), "{error}");
        assert_eq!((&record["outcome"], &record["error"]["retryable"]), (&json!("failed"), &json!(false)));
    }
    assert!(failure(&mut child, "bad__good", json!([1])).0.contains("not an object"));
    assert_eq!(
        call(&mut child, "bad__unknown", json!({})).pop().unwrap()["error"],
        "Unknown tool: bad__unknown"
    );
}

#[test]
fn progress_is_shown_while_a_call_runs() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    let frames = call(&mut child, "bad__progress", json!({}));
    let shown: Vec<_> =
        frames.iter().filter(|frame| frame["type"] == "tool_output").map(|frame| &frame["delta"]).collect();
    assert_eq!(shown, [&json!("progress 1/2: step\n"), &json!("progress 2/2: step\n")]);
}

#[test]
fn a_tool_that_comes_later_is_found() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    assert!(!tools(&mut child).contains(&"bad__new".to_owned()));
    result(&mut child, "bad__change", json!({}));
    assert_eq!(until_state(&mut child, "bad", "changed")["tools"], 16);
    assert!(tools(&mut child).contains(&"bad__new".to_owned()));
    assert_eq!(result(&mut child, "bad__new", json!({})), "new did it");
}

#[test]
fn an_endless_list_of_tools_has_an_end() {
    let world = configured(&config("bad", "pages", ""));
    let mut child = agent(&world);
    assert_eq!(until_state(&mut child, "bad", "ready")["tools"], 500);
    let names = tools(&mut child);
    let odd = names.iter().filter(|name| name.starts_with("bad__tool_")).count();
    assert_eq!(odd, 500, "names that providers take: {:?}", &names[names.len() - 3..]);
}

#[test]
fn an_aborted_call_is_withdrawn_and_recorded() {
    let world = configured(&config("bad", "", ""));
    let mut child = agent(&world);
    child.prompt("p", "!tool bad__stall {}");
    child.until("the call", |frame| frame["event"]["type"] == "toolcall_input");
    until_up(&mut child);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(results(&frames), ["Canceled by user"]);
    let record = record(&frames);
    assert_eq!((&record["outcome"], &record["error"]), (&json!("cancelled"), &Value::Null));
    assert_eq!(record["tool_id"], "call_1_0");
    testkit::wait("the server to hear of it", || result(&mut child, "bad__cancelled", json!({})) != "[]");
}

/// Calls are answered in order, so an answer means that whatever was asked before has been heard.
fn until_up(child: &mut crate::child::Child) {
    result(child, "bad__good", json!({}));
}
