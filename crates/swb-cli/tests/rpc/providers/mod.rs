//! Models of real providers, against a peer on loopback that does what it is told.

mod context;
mod failures;
mod figures;
mod listing;
mod patience;
mod streams;

use serde_json::{Value, json};
use testkit::World;
use testkit::peer::Peer;

use crate::child::{Child, world};

/// The key that all providers of these tests have, and that must not be seen anywhere.
pub(crate) const KEY: &str = "key-that-nobody-may-see";
/// Patience that lets a test fail quickly, and retries that do not keep it waiting.
const IMPATIENT: &str = "[model]\nretry_wait_ms = 1\nlist_timeout_ms = 500\n";

/// A world whose providers are all this peer.
fn provided(peer: &Peer) -> World {
    provided_with(peer, IMPATIENT)
}

fn provided_with(peer: &Peer, settings: &str) -> World {
    let mut world = world();
    let mut file = settings.to_owned();
    for (provider, variable) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
    ] {
        file.push_str(&format!("[providers.{provider}]\nbase_url = \"{}/{provider}\"\n", peer.url()));
        world = world.with_env(variable, KEY);
    }
    // Whatever runs on the machine of whoever runs the tests is none of their business.
    file.push_str("[providers.ollama]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    world = world.with_env("LOCAL_ENDPOINT", &format!("{}/local", peer.url()));
    std::fs::create_dir_all(world.paths().config_file().parent().unwrap()).unwrap();
    std::fs::write(world.paths().config_file(), file).unwrap();
    world
}

/// One model of each dialect.
const MODELS: [&str; 3] = ["claude-sonnet-4-6", "openai/gpt-4o", "gemini-2.5-flash"];

fn start(world: &World, model: &str) -> Child {
    Child::start(world, &["--model", model])
}

/// The pieces of this kind, put together.
fn joined(frames: &[Value], kind: &str) -> String {
    let pieces = frames.iter().filter(|frame| frame["event"]["type"] == kind);
    pieces.filter_map(|frame| frame["event"]["delta"].as_str()).collect()
}

/// The whole arguments of all calls.
fn inputs(frames: &[Value]) -> Vec<&Value> {
    let calls = frames.iter().filter(|frame| frame["event"]["type"] == "toolcall_input");
    calls.map(|frame| &frame["event"]["input"]).collect()
}

/// The error of a turn that failed, which it says in two places.
#[track_caller]
fn failure(frames: &[Value]) -> &str {
    let response = &frames[frames.len() - 1];
    assert_eq!((&response["type"], &response["ok"]), (&json!("response"), &json!(false)), "{response}");
    assert_eq!(frames[frames.len() - 2]["type"], "agent_end");
    let error = response["error"].as_str().unwrap();
    assert!(frames.iter().any(|frame| frame["type"] == "error" && frame["message"] == error), "{frames:#?}");
    error
}

fn retries(frames: &[Value]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame["type"] == "model_retry").collect()
}
