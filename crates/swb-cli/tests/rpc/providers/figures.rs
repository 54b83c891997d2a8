//! What was used and what it cost.

use serde_json::{Value, json};
use testkit::peer::{Peer, Reply, anthropic, gemini, openai};

use super::{IMPATIENT, MODELS, provided, provided_with, start};
use crate::child::Child;

const PRICES: &str = "
[models.\"anthropic/claude-sonnet-4-6\"]
context_window = 123456
input_price = 3
output_price = 15
cache_read_price = 0.3
cache_write_price = 3.75
[models.\"openai/gpt-4o\"]
input_price = 2.5
output_price = 10
";

fn stats(child: &mut Child) -> Value {
    child.ask(json!({ "type": "get_session_stats", "id": "stats" }))
}

fn usage_of_turn(child: &mut Child) -> Value {
    let frames = child.turn("p", "go");
    frames[frames.len() - 2]["usage"].clone()
}

#[test]
fn every_kind_of_token_is_counted_apart() {
    let peer = Peer::start();
    let world = provided(&peer);
    let answer = anthropic::Answer::new(10).cache(200, 30).text(&["x"]).stop("end_turn", 7);
    peer.reply(Reply::stream(answer));
    assert_eq!(
        usage_of_turn(&mut start(&world, MODELS[0])),
        json!({ "input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 30, "cache_creation_5m": 30, "cache_creation_1h": 0 })
    );
    let frames =
        [openai::text("x"), openai::finish("stop"), openai::usage(100, 60, 9), openai::DONE.to_owned()];
    peer.reply(Reply::stream(frames));
    assert_eq!(
        usage_of_turn(&mut start(&world, MODELS[1])),
        json!({ "input_tokens": 40, "output_tokens": 9, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 0 })
    );
    peer.reply(Reply::stream([gemini::finish(&[gemini::text("x")], "STOP")]));
    assert_eq!(
        usage_of_turn(&mut start(&world, MODELS[2])),
        json!({ "input_tokens": 12, "output_tokens": 7, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 0 })
    );
}

#[test]
fn what_a_server_does_not_count_is_guessed_and_called_a_guess() {
    let peer = Peer::start();
    let world = provided(&peer);
    let mut child = start(&world, MODELS[1]);
    peer.reply(Reply::stream([openai::text("some words"), openai::finish("stop"), openai::DONE.to_owned()]));
    let usage = usage_of_turn(&mut child);
    assert_eq!((&usage["estimated"], &usage["output_tokens"]), (&json!(true), &json!(3)), "{usage}");
    let input = usage["input_tokens"].as_u64().unwrap();
    assert!(input > 100, "the system prompt and the tools are given, too: {usage}");
    // An answer that fails has been given, too; one without a word is not known to have been.
    peer.reply(Reply::stream([openai::text("half"), openai::finish("length"), openai::DONE.to_owned()]));
    let usage = usage_of_turn(&mut child);
    assert!(usage["input_tokens"].as_u64() > Some(input), "{usage}");
    assert_eq!(stats(&mut child)["estimated"], true);
    let mut other = start(&world, MODELS[1]);
    peer.reply(Reply::status(401, "no"));
    let usage = usage_of_turn(&mut other);
    assert_eq!((usage.get("estimated"), &usage["input_tokens"]), (None, &json!(0)), "{usage}");
}

#[test]
fn a_cost_is_the_sum_over_all_models_and_is_absent_if_a_price_is_unknown() {
    let peer = Peer::start();
    let world = provided_with(&peer, &format!("{IMPATIENT}{PRICES}"));
    let mut child = start(&world, MODELS[0]);
    assert_eq!(stats(&mut child)["cost"], 0.0, "nothing was used yet");
    let used = anthropic::Answer::new(1_000_000).cache(1_000_000, 1_000_000).text(&["x"]);
    peer.reply(Reply::stream(used.stop("end_turn", 1_000_000)));
    child.turn("1", "go");
    let told = stats(&mut child);
    assert_eq!(told["cost"], 3.0 + 15.0 + 0.3 + 3.75);
    assert_eq!(told["context_window"], 123_456);
    assert_eq!(
        (&told["cache_read_input_tokens"], &told["cache_creation_input_tokens"]),
        (&json!(1_000_000), &json!(1_000_000))
    );

    child.ask(json!({ "type": "set_model", "id": "m", "model": MODELS[1] }));
    let plain =
        [openai::text("x"), openai::finish("stop"), openai::usage(1_000_000, 0, 0), openai::DONE.to_owned()];
    peer.reply(Reply::stream(plain));
    child.turn("2", "go");
    assert_eq!(stats(&mut child)["cost"], 22.05 + 2.5);
    let session = child.session_id.clone();
    drop(child);

    // It is the same after a restart, and gone once something without a price was used.
    let mut child = Child::start(&world, &["--continue", &session]);
    assert_eq!(stats(&mut child)["cost"], 22.05 + 2.5);
    let cached =
        [openai::text("x"), openai::finish("stop"), openai::usage(100, 60, 1), openai::DONE.to_owned()];
    peer.reply(Reply::stream(cached));
    child.turn("3", "go");
    let told = stats(&mut child);
    assert_eq!(told.get("cost"), None, "{told}");
    assert_eq!(told["cache_read_input_tokens"], 1_000_060);
}

#[test]
fn anthropic_is_asked_to_cache_what_will_be_sent_again() {
    let peer = Peer::start();
    peer.reply(Reply::stream(anthropic::Answer::new(1).text(&["x"]).stop("end_turn", 1)));
    let world = provided(&peer);
    start(&world, MODELS[0]).turn("p", "go");
    let body = peer.only_request().body;
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
}
