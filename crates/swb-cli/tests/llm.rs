//! `llm.complete`: the configured model answers on the bus. The real binary, the demo model, and a provider on loopback.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::peer::{Peer, Reply, openai};
use testkit::{Wire, World, wait, wait_for};

/// The key that must not be seen anywhere.
const KEY: &str = "key-that-nobody-may-see";

fn house(settings: &str) -> World {
    house_in(World::new(), settings)
}

fn house_in(world: World, settings: &str) -> World {
    let world = world.with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.paths().config).unwrap();
    std::fs::write(world.paths().config_file(), settings).unwrap();
    world.swb(["up"]).ok();
    world
}

/// A house whose model is a provider that does what it is told.
fn provided(peer: &Peer) -> World {
    let settings = format!(
        "[agent]\nmodel = \"openai/gpt-4o\"\n[model]\nretry_wait_ms = 1\nretries = 1\n\
         [providers.openai]\nbase_url = \"{}/v1\"\n",
        peer.url()
    );
    house_in(World::new().with_env("OPENAI_API_KEY", KEY), &settings)
}

fn question(id: u64, content: &str) -> Value {
    let params = json!({ "channel_id": "c7", "content": content });
    json!({ "jsonrpc": "2.0", "id": id, "method": "llm.complete", "params": params })
}

fn ask(world: &World, content: &str) -> Value {
    world.wire().ask(&question(1, content))
}

/// Those who ask models for the daemon of this process number.
fn askers(daemon: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_asker = |pid: &i32| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        parent == Some(daemon) && read("cmdline") == b"swb\0complete\0"
    };
    numbers.filter(is_asker).collect()
}

/// Waits until a question is being asked; who asks it.
fn asker(world: &World) -> i32 {
    let daemon = world.pid();
    wait_for("somebody to ask the model", || askers(daemon).first().copied())
}

fn is_gone(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn without_a_key_the_demo_model_answers_in_both_dialects_and_keeps_nothing() {
    let world = house("");
    let answer = ask(&world, "!think hm\n!say two words");
    assert_eq!(answer["result"], json!({ "channel_id": "c7", "content": "two words" }), "{answer}");
    let command = json!({
        "id": "req_1", "type": "command", "method": "llm.complete", "ts": "2026-02-26T00:00:00.000Z",
        "actor": { "kind": "user", "id": "user_local" }, "workspace_id": "ws_1", "correlation_id": "cor_1",
        "payload": { "channel_id": "c8", "content": "!say words" },
    });
    let answer = world.wire().ask(&command);
    assert_eq!(
        (&answer["status"], &answer["result"]["content"]),
        (&json!("ok"), &json!("words")),
        "{answer}"
    );
    assert!(ask(&world, "hello").to_string().contains("hello"), "plain words are answered, too");
    // Not a session, and no history of one.
    assert!(!world.paths().sessions(None).exists());
    assert_eq!(world.swb(["sessions", "--json"]).ok().json_lines(), Vec::<Value>::new());
}

#[test]
fn the_configured_model_answers_without_tools_and_without_a_history() {
    let peer = Peer::start();
    peer.reply(Reply::stream(openai::answer(&["four", "teen"])));
    peer.reply(Reply::stream(openai::answer(&["15"])));
    let world = provided(&peer);
    assert_eq!(ask(&world, "what is 7 + 7?")["result"]["content"], "fourteen");
    assert_eq!(ask(&world, "and one more?")["result"]["content"], "15");
    let asked = peer.asked();
    assert_eq!(asked[1].body["messages"], json!([{ "role": "user", "content": "and one more?" }]));
    assert!(asked.iter().all(|asked| asked.body.get("tools").is_none()), "{asked:#?}");
    assert_eq!(asked[0].body["model"], "gpt-4o");
}

#[test]
fn an_error_of_the_model_comes_back_with_its_reason_and_without_the_key() {
    let peer = Peer::start();
    let refusal = json!({ "error": { "message": format!("no such key {KEY}") } });
    peer.reply(Reply::status(401, refusal.to_string()));
    peer.reply(Reply::status(503, "busy")).reply(Reply::status(503, "busy"));
    peer.reply(Reply::opening().frames([openai::text("half")]).end());
    let world = provided(&peer);
    for (reason, status) in
        [("MODEL_REFUSED", json!(401)), ("MODEL_REFUSED", json!(503)), ("MODEL_BROKE_OFF", Value::Null)]
    {
        let answer = ask(&world, "go");
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["data"]["reason"], &error["data"]["status"], &error["data"]["model"]),
            (&json!(-32027), &json!(reason), &status, &json!("openai/gpt-4o")),
            "{answer}"
        );
        assert!(!answer.to_string().contains(KEY), "{answer}");
    }
    let record = world.swb(["audit", "tail", "--json"]);
    assert!(record.stdout.contains("llm.complete") && !record.stdout.contains(KEY), "{record:?}");
}

#[test]
fn a_model_that_cannot_be_used_and_settings_that_cannot_be_read_are_told() {
    let world = house("[agent]\nmodel = \"claude-sonnet-4-6\"\n");
    let error = ask(&world, "go")["error"].take();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32027), &json!("MODEL_UNUSABLE")));
    assert!(error["message"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{error}");
    for nothing in ["", " \n"] {
        assert_eq!(ask(&world, nothing)["error"]["code"], -32602);
    }
    std::fs::write(world.paths().config_file(), "[agent\n").unwrap();
    let error = ask(&world, "go")["error"].take();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("MODEL_NOT_ASKED")));
    assert!(error["message"].as_str().unwrap().contains("config.toml"), "{error}");
    // Who is asked reads the settings as they are now.
    std::fs::write(world.paths().config_file(), "").unwrap();
    assert_eq!(ask(&world, "!say now")["result"]["content"], "now");
}

#[test]
fn a_cancelled_request_ends_whoever_asks() {
    let peer = Peer::start();
    peer.reply(Reply::opening().frames([openai::text("half")]).stall());
    let world = provided(&peer);
    let mut wire = world.wire();
    wire.send(&question(1, "go"));
    let asking = asker(&world);
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel", "params": { "id": 1 } });
    let answer = wire.ask(&cancel);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32001)), "{answer}");
    wait("whoever asked to be gone", || is_gone(asking));
    // A connection that breaks says the same.
    wire.send(&question(2, "!stall"));
    let mut other = world.wire();
    drop(wire);
    other.send(&question(3, "go"));
    drop(other);
    let daemon = world.pid();
    wait("nobody to ask any more", || askers(daemon).is_empty());
}

#[test]
fn an_answer_has_a_time_and_the_wait_for_a_turn_counts() {
    let world = house("[llm]\nat_once = 1\ntimeout_s = 1\n");
    let mut wire = world.wire();
    wire.send_bytes(format!("{}\n{}\n", question(1, "!stall"), question(2, "!stall")).as_bytes());
    let mut answered = Vec::new();
    for _ in 0..2 {
        let answer = wire.receive().unwrap();
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        answered.push(Instant::now());
    }
    assert!(answered[1] - answered[0] < Duration::from_secs(1), "they were asked at the same time");
    let daemon = world.pid();
    wait("nobody to ask any more", || askers(daemon).is_empty());
    assert_eq!(ask(&world, "!say again")["result"]["content"], "again");
}

#[test]
fn so_many_are_asked_at_once_so_many_wait_and_the_rest_are_sent_away() {
    let world = house("[llm]\nat_once = 1\n");
    let mut wire = world.wire();
    wire.send(&question(0, "!stall"));
    let asking = asker(&world);
    // One is asked and sixty-four wait.
    for id in 1..=65 {
        wire.send(&question(id, &format!("!say {id}")));
    }
    let refused = wire.receive().unwrap();
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    assert_eq!(askers(world.pid()), [asking]);
    wire.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel", "params": { "id": 0 } }));
    let mut ids = vec![refused["id"].as_u64().unwrap()];
    for _ in 0..=64 {
        let answer = wire.receive().unwrap();
        let id = answer["id"].as_u64().unwrap();
        assert!(id == 0 || answer["result"]["content"] == json!(id.to_string()), "{answer}");
        ids.push(id);
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..=65).collect::<Vec<_>>());
}

#[test]
fn an_answer_without_end_is_cut() {
    let world = house("");
    let error = ask(&world, "!repeat 1000000 words")["error"].take();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32027), &json!("MODEL_ANSWER_TOO_LONG")));
    // What fits does so in whatever letters.
    let answer = ask(&world, "!repeat 100000 \u{1}")["result"].take();
    assert_eq!(answer["content"].as_str().unwrap().len(), 100_000);
}

#[test]
fn whoever_asks_does_not_outlive_the_daemon() {
    let world = house("");
    let mut wire: Wire = world.wire();
    wire.send(&question(1, "!stall"));
    let (daemon, asking) = (world.pid(), asker(&world));
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
    wait("whoever asked to be gone", || is_gone(asking));
    assert_eq!(wire.receive(), None);
}
