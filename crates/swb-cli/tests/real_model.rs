//! Agents with a real language model at the other end. `cargo xtask test --real-model` serves one and runs these.
//!
//! The model is small: what it says is its own affair, how it gets here is ours.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[path = "../../swb-gateway/tests/agui_client/mod.rs"]
#[expect(dead_code, reason = "what differs between its versions does not matter here")]
mod agui_client;
#[path = "rpc/child.rs"]
#[expect(dead_code, reason = "the parent of the other suite, of which these tests need a part")]
mod child;

use std::time::Duration;

use child::{Child, kinds, text, world};
use serde_json::{Value, json};
use testkit::World;

const MODEL: &str = "local/smollm2";

fn served() -> World {
    let endpoint =
        std::env::var("REAL_MODEL_ENDPOINT").expect("cargo xtask test --real-model says where it is");
    let world = world().with_env("LOCAL_ENDPOINT", &endpoint);
    std::fs::create_dir_all(world.paths().config_file().parent().unwrap()).unwrap();
    let settings = "[models.\"local/smollm2\"]\ncontext_window = 8192\nmax_output_tokens = 120\n\
                    input_price = 1\noutput_price = 2\n";
    std::fs::write(world.paths().config_file(), settings).unwrap();
    world
}

/// An agent with a model that may think slowly, on a machine that may be busy.
fn start_with(world: &World, arguments: &[&str]) -> Child {
    let mut child = Child::start(world, arguments);
    child.patience = Duration::from_secs(300);
    child
}

fn start(world: &World) -> Child {
    let system = "You are a friendly assistant. Answer in one short sentence.";
    start_with(world, &["--model", MODEL, "--system", system])
}

/// Whole, or as long as we allowed.
#[track_caller]
fn assert_answered(frames: &[Value]) {
    let response = frames.last().unwrap();
    let at_limit = response["error"].as_str().is_some_and(|error| error.contains("the model's limit"));
    assert!(response["ok"] == true || at_limit, "{response}");
    assert!(!text(frames).trim().is_empty(), "{frames:#?}");
}

fn tokens(frames: &[Value], key: &str) -> u64 {
    let end = frames.iter().find(|frame| frame["type"] == "agent_end").unwrap();
    end["usage"][key].as_u64().unwrap()
}

#[test]
#[ignore = "needs a model: cargo xtask test --real-model"]
fn a_real_model_streams_counts_and_remembers() {
    let world = served();
    let mut child = start(&world);
    let listed = child.ask(json!({ "type": "get_available_models", "id": "l" }));
    let listed = listed["models"].as_array().unwrap();
    let found = listed.iter().find(|model| model["provider"] == "local" && model["model_id"] == "smollm2");
    assert_eq!(found.unwrap()["context_window"], 8192, "{listed:?}");

    let frames = child.turn("1", "Say hello to Ada.");
    assert_answered(&frames);
    assert!(kinds(&frames).iter().filter(|kind| **kind == "text_delta").count() > 1, "it comes in pieces");
    let (input, output) = (tokens(&frames, "input_tokens"), tokens(&frames, "output_tokens"));
    assert!(input > 10 && output > 1, "{input} and {output} tokens");

    let again = child.turn("2", "What is her name?");
    assert_answered(&again);
    assert!(tokens(&again, "input_tokens") > input, "the conversation is sent along");
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert_eq!(stats["input_tokens"], input + tokens(&again, "input_tokens"));
    assert!(stats["cost"].as_f64().unwrap() > 0.0, "{stats}");
}

#[test]
#[ignore = "needs a model: cargo xtask test --real-model"]
fn a_real_model_can_be_interrupted_and_asked_again() {
    let world = served();
    let mut child = start(&world);
    child.prompt("1", "Tell me a long story about the sea, in many sentences.");
    let begun = child.until("its first word", |frame| frame["event"]["type"] == "text_delta");
    child.send(json!({ "type": "abort", "id": "a" }));
    let ended = child.until_response("a");
    let response = ended.iter().find(|frame| frame["id"] == "1").unwrap();
    assert_eq!(response["cancelled"], true, "{response}");
    let kept = child.messages()[1]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(kept.starts_with(&text(&begun)), "{kept:?}");
    assert_answered(&child.turn("2", "Say hello."));
}

#[test]
#[ignore = "needs a model: cargo xtask test --real-model"]
fn a_real_model_writes_summaries_and_goes_on_after_a_restart() {
    let world = served();
    let mut child = start(&world);
    assert_answered(&child.turn("1", "My cat is called Turing."));
    let session = child.session_id.clone();
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    let mut child = start_with(&world, &["--continue", &session]);
    assert_eq!(child.state("model"), MODEL);
    let before = child.messages();
    let compacted = child.ask(json!({ "type": "compact", "id": "c" }));
    if compacted["type"] == "error" {
        // A small model may talk until it is stopped; then nothing is replaced.
        assert!(compacted["message"].as_str().unwrap().contains("the model's limit"), "{compacted}");
        assert_eq!(child.messages(), before);
    } else {
        let summary = compacted["summary"].as_str();
        assert!(summary.is_some_and(|summary| summary.contains("Turing")), "{compacted}");
    }
    assert_answered(&child.turn("2", "What is my cat called?"));
}

#[test]
#[ignore = "needs a model: cargo xtask test --real-model"]
fn a_real_model_works_for_a_front_end() {
    let world = served();
    world.swb(["up"]).ok();
    let project = world.folder().join("project");
    std::fs::create_dir_all(&project).unwrap();
    world.swb(["workspaces", "create", "w"]).ok();
    world.swb(["projects", "init", project.to_str().unwrap()]).ok();
    let url = format!("{}/agui", world.status("http").as_str().unwrap());
    let token = world.swb(["token"]).ok().stdout.trim().to_owned();
    for client in agui_client::Client::both() {
        let thread = format!("t-{}", client.version);
        let steps = json!([{ "say": "Say hello to Ada.", "props": { "model": MODEL } }]);
        let seen = client.drive(&url, &token, &thread, &steps);
        let run = &seen["runs"][0];
        let at_limit =
            run["error"]["message"].as_str().is_some_and(|error| error.contains("the model's limit"));
        assert!(run["finished"]["outcome"]["type"] == "success" || at_limit, "{run}");
        assert!(!run["text"].as_str().unwrap().trim().is_empty(), "{run}");
        let usage = &run["finished"]["usage"][0];
        assert!(at_limit || (usage["model"] == MODEL && usage["outputTokens"].as_u64() > Some(1)), "{usage}");
    }
    world.swb(["down", "--yes"]).ok();
}
