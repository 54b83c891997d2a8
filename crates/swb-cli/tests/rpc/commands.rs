//! Commands that answer at once, and the shapes of their answers.

use serde_json::{Value, json};

use crate::child::{Child, world};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn answers_hold_what_the_contract_promises() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a b\n!usage 10 3 5 2");
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "1" }));
    for (key, value) in [
        ("cost", json!(0.0)),
        ("input_tokens", json!(10)),
        ("message_count", json!(2)),
        ("model", json!("demo")),
        ("output_tokens", json!(3)),
        ("session_id", json!(child.session_id)),
        ("cache_read_input_tokens", json!(5)),
    ] {
        assert_eq!(stats[key], value, "{key}");
    }
    assert!(
        stats["context_tokens"].as_u64() > Some(17),
        "what the model was given, and what it said: {stats}"
    );
    let state = child.ask(json!({ "type": "get_state", "id": "2" }));
    for (key, value) in [
        ("message_count", json!(2)),
        ("model", json!("demo")),
        ("session_id", json!(child.session_id)),
        ("streaming", json!(false)),
    ] {
        assert_eq!(state[key], value, "{key}");
    }
    let models = child.ask(json!({ "type": "get_available_models", "id": "3" }));
    assert_eq!(models["models"][0]["model_id"], "demo");
    assert_eq!(keys(&models["models"][0]), ["context_window", "model_id", "model_name", "price", "provider"]);
    assert_eq!(
        child.messages(),
        [
            json!({ "role": "user", "content": "!say a b\n!usage 10 3 5 2" }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "a b" }] }),
        ]
    );
}

#[test]
fn body_keys_follow_type_id_and_command_in_alphabetical_order() {
    let world = world();
    let mut process = crate::child::spawn(&world, &[]);
    let stdin = process.stdin.take().unwrap();
    std::io::Write::write_all(&mut &stdin, b"{\"type\":\"get_session_stats\",\"id\":\"s\"}\n").unwrap();
    drop(stdin);
    let output = String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap();
    let line = output.lines().nth(1).unwrap();
    assert!(line.starts_with(r#"{"type":"response","id":"s","command":"get_session_stats","cache_creation"#));
    let order: Vec<_> = [
        "\"cost\"",
        "\"input_tokens\"",
        "\"message_count\"",
        "\"model\"",
        "\"output_tokens\"",
        "\"session_id\"",
    ]
    .map(|key| line.find(key).unwrap())
    .to_vec();
    assert!(order.is_sorted(), "{line}");
}

#[test]
fn tools_come_sorted_with_schemas_also_without_a_session() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let tools = child.ask(json!({ "type": "tools_list", "id": "t" }))["tools"].take();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "ask_user",
            "bash",
            "bus_post",
            "bus_read",
            "edit",
            "find",
            "grep",
            "ls",
            "plan",
            "read",
            "subagent",
            "subagent_cancel",
            "subagent_collect",
            "subagent_start",
            "subagent_status",
            "subagent_steer",
            "write"
        ]
    );
    for tool in tools.as_array().unwrap() {
        assert_eq!(keys(tool), ["description", "input_schema", "name"]);
        assert_eq!(tool["input_schema"]["type"], "object");
    }
    assert_eq!(world.swb(["tools_list", "--json"]).ok().json(), tools);
}

#[test]
fn set_model_takes_only_models_that_can_be_used() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let set = child.ask(json!({ "type": "set_model", "id": "a", "model": "demo/demo" }));
    assert_eq!((&set["type"], &set["model"]), (&json!("response"), &json!("demo/demo")));
    let refused = child.ask(json!({ "type": "set_model", "id": "b", "model": "nobody/nothing" }));
    assert_eq!(refused["type"], "error");
    assert_eq!(child.state("model"), "demo/demo");
}

#[test]
fn a_model_that_cannot_be_used_fails_the_prompt_and_not_the_start() {
    let world = world();
    let mut child = Child::start(&world, &["--model", "claude-sonnet-4-6"]);
    assert_eq!(child.state("model"), "claude-sonnet-4-6");
    let frames = child.turn("p", "hello");
    assert_eq!(crate::child::kinds(&frames), ["error", "agent_end", "response"]);
    assert_eq!(frames[2]["ok"], false);
    child.ask(json!({ "type": "set_model", "id": "m", "model": "demo" }));
    assert_eq!(child.turn("q", "!say hi").pop().unwrap()["ok"], true);
}

#[test]
fn a_new_session_has_a_new_id_and_nothing_in_it() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!say a\n!usage 5 5");
    let new = child.ask(json!({ "type": "new_session", "id": "n" }))["session_id"].take();
    assert_ne!(new, child.session_id);
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert_eq!(
        (&stats["session_id"], &stats["message_count"], &stats["input_tokens"]),
        (&new, &json!(0), &json!(0))
    );
}

#[test]
fn unknown_arguments_are_a_usage_error() {
    let world = world();
    let output = world.swb(["rpc", "--nonsense"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("--nonsense"));
}
