//! Which models there are, and which can be chosen.

use serde_json::{Value, json};
use testkit::peer::{Peer, Reply};

use super::{IMPATIENT, KEY, MODELS, provided, provided_with, start};
use crate::child::{Child, world};

fn models(child: &mut Child) -> Vec<Value> {
    let mut response = child.ask(json!({ "type": "get_available_models", "id": "models" }));
    serde_json::from_value(response["models"].take()).unwrap()
}

fn names(models: &[Value]) -> Vec<String> {
    let text = |model: &Value, key: &str| model[key].as_str().unwrap().to_owned();
    models.iter().map(|model| format!("{}/{}", text(model, "provider"), text(model, "model_id"))).collect()
}

#[test]
fn models_of_those_who_answer_are_listed_with_what_is_known_of_them() {
    let peer = Peer::start();
    peer.list_models(
        200,
        json!({ "data": [
            { "id": "small", "meta": { "n_ctx_train": 2048 } }, { "id": "text-embedding-1" },
        ]}),
    );
    let settings = "[models.\"local/configured\"]\ncontext_window = 7\ninput_price = 1.5\noutput_price = 0\n";
    let world = provided_with(&peer, &format!("{IMPATIENT}{settings}"));
    let mut child = start(&world, "demo");
    let listed = models(&mut child);
    assert_eq!(
        names(&listed),
        [
            "demo/demo",
            "anthropic/small",
            "gemini/small",
            "google/small",
            "local/configured",
            "local/small",
            "openai/small"
        ]
    );
    assert_eq!(
        listed[4],
        json!({ "context_window": 7, "model_id": "configured", "model_name": "configured",
            "price": { "input": 1.5, "output": 0.0 }, "provider": "local" })
    );
    assert_eq!(listed[5]["context_window"], 2048);
    assert_eq!(listed[5].get("price"), None, "an unknown price is not there");
    assert!(!format!("{listed:?}").contains(KEY));
    // What a server says of itself counts from then on.
    child.ask(json!({ "type": "set_model", "id": "m", "model": "local/small" }));
    let stats = child.ask(json!({ "type": "get_session_stats", "id": "s" }));
    assert_eq!(stats["context_window"], 2048);
}

#[test]
fn people_get_the_same_list_and_hear_what_the_others_want() {
    let peer = Peer::start();
    peer.list_models(200, json!({ "data": [{ "id": "small", "meta": { "n_ctx_train": 2048 } }] }));
    let settings = "[models.\"local/configured\"]\ncontext_window = 7\ninput_price = 1.5\noutput_price = 0\n";
    let world = provided_with(&peer, &format!("{IMPATIENT}{settings}"));
    let shown = world.swb(["models", "--provider", "local"]).ok();
    let words: Vec<Vec<_>> = shown.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["local/configured", "7", "$1.50", "in,", "$0.00", "out"]);
    assert_eq!(words[1], ["local/small", "2k", "price", "unknown"]);
    assert_eq!(words.len(), 2, "{words:?}");
    let all = world.swb(["models"]).ok();
    assert!(all.stdout.starts_with("demo ") && all.stdout.contains(" free "), "{}", all.stdout);
    assert!(all.stderr.contains(", groq, ") && !all.stderr.contains("anthropic"), "{}", all.stderr);
    let keyless = world.swb(["models", "--provider", "groq"]).ok();
    assert_eq!(
        (keyless.stdout.as_str(), keyless.stderr.as_str()),
        ("", "groq wants a key in $GROQ_API_KEY\n")
    );
    assert!(!format!("{}{}", all.stdout, all.stderr).contains(KEY));
    let listed = models(&mut start(&world, "demo"));
    assert_eq!(world.swb(["models", "--json"]).ok().json_lines(), listed);
}

#[test]
fn what_cannot_be_used_is_not_listed() {
    let peer = Peer::start();
    peer.list_models(401, json!({ "error": { "message": "no" } }));
    let world = provided(&peer);
    assert_eq!(names(&models(&mut start(&world, "demo"))), ["demo/demo"], "keys that are refused are no use");
    // Providers with a key that do not answer in time are taken at their word; servers at home are not.
    let silent = Peer::start();
    silent.list_models(500, json!({}));
    let world = provided(&silent);
    let listed = names(&models(&mut start(&world, "demo")));
    assert!(listed.contains(&"anthropic/claude-sonnet-4-6".to_owned()), "{listed:?}");
    assert!(!listed.iter().any(|name| name.starts_with("local/") || name.starts_with("groq/")), "{listed:?}");
}

#[test]
fn other_commands_do_not_wait_for_slow_providers() {
    // Somebody who takes connections and never answers.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", deaf.local_addr().unwrap());
    let peer = Peer::start();
    let world = provided_with(&peer, "[model]\nlist_timeout_ms = 1500\n").with_env("LOCAL_ENDPOINT", &url);
    let mut child = start(&world, "demo");
    child.send(json!({ "type": "get_available_models", "id": "slow" }));
    child.send(json!({ "type": "get_state", "id": "quick" }));
    let first = child.next();
    assert_eq!(first["id"], "quick", "{first}");
    let listed = child.until_response("slow");
    assert_eq!(listed[0]["models"][0]["model_id"], "demo");
}

#[test]
fn a_model_that_cannot_be_used_cannot_be_chosen() {
    let peer = Peer::start();
    let world = provided(&peer);
    let mut child = start(&world, "demo");
    for (model, part) in [
        ("groq/llama", "$GROQ_API_KEY"),
        ("deepinfra/x", "$DEEPINFRA_API_KEY or $DEEPINFRA_TOKEN"),
        ("no-such-model", "get_available_models"),
        ("nobody/m", "get_available_models"),
        ("local/", "get_available_models"),
        ("ollama/m", "nobody answers at http://127.0.0.1:1/v1/"),
    ] {
        let refused = child.ask(json!({ "type": "set_model", "id": "m", "model": model }));
        assert_eq!(refused["type"], "error", "{model}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains(part), "{model}: {refused}");
        assert_eq!(child.state("model"), "demo", "{model}");
    }
    for model in MODELS.into_iter().chain(["local/any/name", "demo"]) {
        let set = child.ask(json!({ "type": "set_model", "id": "m", "model": model }));
        assert_eq!((&set["model"], &set["ok"]), (&json!(model), &json!(true)), "{model}");
    }
}

#[test]
fn a_missing_key_fails_the_first_prompt_and_not_the_start() {
    let world = world();
    let mut child = start(&world, MODELS[0]);
    let frames = child.turn("p", "go");
    let response = frames.last().unwrap();
    assert_eq!(response["ok"], false);
    assert!(response["error"].as_str().unwrap().contains("$ANTHROPIC_API_KEY"), "{response}");
    assert_eq!(child.messages()[0]["content"], "go");
}

#[test]
fn a_project_cannot_send_keys_elsewhere() {
    let (peer, evil) = (Peer::start(), Peer::start());
    peer.reply(Reply::status(400, "mine"));
    evil.reply(Reply::status(400, "evil"));
    let world = provided(&peer);
    std::fs::create_dir_all(world.folder().join(".switchboard")).unwrap();
    let file = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", evil.url());
    std::fs::write(world.folder().join(".switchboard/config.toml"), file).unwrap();
    let frames = start(&world, MODELS[0]).turn("p", "go");
    assert!(frames.last().unwrap()["error"].as_str().unwrap().contains("mine"));
    assert!(evil.asked().is_empty());
    let config = world.swb(["config"]).ok();
    assert!(config.stderr.contains("providers.anthropic.base_url"), "{}", config.stderr);
}
