//! Providers that take their time: limits, signs of life, and aborts that do not wait.

use serde_json::json;
use testkit::peer::{Peer, Reply, openai};

use super::{MODELS, failure, provided_with, start};
use crate::child::{Child, kinds, text};

#[test]
fn a_provider_that_says_nothing_is_given_up() {
    for reply in [Reply::silent(), Reply::opening().stall()] {
        let peer = Peer::start();
        peer.reply(reply);
        let world = provided_with(&peer, "[model]\nfirst_byte_timeout_ms = 300\n");
        let frames = start(&world, MODELS[1]).turn("p", "go");
        assert_eq!(kinds(&frames), ["error", "agent_end", "response"]);
        assert_eq!(failure(&frames), "openai said nothing for 0.3 s");
        peer.wait_for_hang_up();
    }
}

#[test]
fn a_provider_that_falls_silent_is_given_up_and_what_it_said_stays() {
    let peer = Peer::start();
    peer.reply(Reply::opening().frames([openai::text("half")]).stall());
    let world = provided_with(&peer, "[model]\nsilence_timeout_ms = 300\n");
    let mut child = start(&world, MODELS[1]);
    let frames = child.turn("p", "go");
    assert_eq!(kinds(&frames), ["text_delta", "error", "agent_end", "response"]);
    assert!(failure(&frames).contains("said nothing for 0.3 s"));
    assert_eq!(child.messages()[1]["content"][0]["text"], "half");
    peer.wait_for_hang_up();
}

#[test]
fn an_abort_does_not_wait_for_the_next_attempt() {
    let peer = Peer::start();
    peer.reply(Reply::status(503, "busy"));
    let world = provided_with(&peer, "[model]\nretry_wait_ms = 60000\n");
    let mut child = start(&world, MODELS[1]);
    child.prompt("p", "go");
    child.until("the wait", |frame| frame["type"] == "model_retry");
    assert_eq!(child.state("streaming"), true, "it answers while it waits");
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(kinds(&frames), ["agent_end", "response", "response"]);
    assert_eq!(frames[1]["cancelled"], true);
    assert_eq!(peer.asked().len(), 1);
}

#[test]
fn an_abort_does_not_wait_for_a_silent_provider() {
    let peer = Peer::start();
    peer.reply(Reply::silent());
    let world = provided_with(&peer, "");
    let mut child = start(&world, MODELS[1]);
    child.prompt("p", "go");
    testkit::wait("the call", || peer.asked().len() == 1);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(frames[1]["cancelled"], true);
    peer.wait_for_hang_up();
}

#[test]
fn comments_are_signs_of_life() {
    let peer = Peer::start();
    // Longer in all than the limit, but never silent for as long.
    let comments = std::iter::repeat_n(": still here\n\n", 200);
    let gates: Vec<_> = (0..4).map(|_| testkit::peer::Gate::default()).collect();
    let mut reply = Reply::opening().frames([openai::text("a")]);
    for gate in &gates {
        reply = reply.wait(gate).frames(comments.clone());
    }
    peer.reply(reply.frames(openai::answer(&["b"])).end());
    let world = provided_with(&peer, "[model]\nsilence_timeout_ms = 2000\n");
    let mut child = Child::start(&world, &["--model", MODELS[1]]);
    child.prompt("p", "go");
    child.until("the first word", |frame| frame["event"]["type"] == "text_delta");
    let begun = std::time::Instant::now();
    for (at, gate) in gates.iter().enumerate() {
        let due = std::time::Duration::from_millis(1000 * at as u64);
        testkit::wait("the next sign of life to be due", || begun.elapsed() >= due);
        gate.open();
    }
    assert_eq!(text(&child.until_response("p")), "b");
}
