//! What streams in comes out as it should, in all dialects and however it was cut into pieces.

use serde_json::{Value, json};
use testkit::peer::{Gate, Peer, Reply, anthropic, gemini, openai};

use super::{KEY, MODELS, inputs, joined, provided, start};
use crate::child::{Child, kinds, results, text};

/// Letters of every length, what JSON escapes, and what some take for the end of a line.
const ODD: &str = "ä€🦀 \"quoted\" \\ back\u{2028}\u{7f}\t.";

fn calls_ls() -> Value {
    json!({ "path": "." })
}

#[test]
fn anthropic_thinks_speaks_calls_and_is_given_its_thoughts_back() {
    let peer = Peer::start();
    let first = anthropic::Answer::new(10)
        .thinking(&["first ", "thought"], "seal-1")
        .redacted_thinking("only-anthropic-can-read-this")
        .thinking(&["second"], "seal-2")
        .text(&["I ", "look."])
        .call("toolu_1", "ls", &["", "{\"pa", "th\": \".\"}"])
        .call("toolu_2", "ls", &[]);
    peer.reply(Reply::stream(first.stop("tool_use", 20)));
    peer.reply(Reply::stream(anthropic::Answer::new(30).text(&["done"]).stop("end_turn", 2)));
    let world = provided(&peer);
    let mut child = start(&world, MODELS[0]);
    let frames = child.turn("p", "go");
    assert_eq!(
        kinds(&frames),
        [
            "thinking_delta",
            "thinking_delta",
            "thinking_delta",
            "text_delta",
            "text_delta",
            "toolcall_start",
            "toolcall_input_delta",
            "toolcall_input_delta",
            "toolcall_start",
            "toolcall_input",
            "toolcall_input",
            "toolcall_result",
            "toolcall_result",
            "text_delta",
            "agent_end",
            "response"
        ]
    );
    assert_eq!(inputs(&frames), [&calls_ls(), &json!({})]);
    let asked = peer.asked();
    assert_eq!(asked[0].path, "/anthropic/messages");
    assert_eq!(asked[0].headers["x-api-key"], KEY);
    assert_eq!(asked[0].body["model"], "claude-sonnet-4-6");
    assert_eq!(asked[0].body["stream"], true);
    assert!(asked[0].body["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ls"));
    let said = asked[1].body["messages"].as_array().unwrap();
    assert_eq!(
        said[1]["content"].as_array().unwrap()[..4],
        [
            json!({ "type": "thinking", "thinking": "first thought", "signature": "seal-1" }),
            json!({ "type": "redacted_thinking", "data": "only-anthropic-can-read-this" }),
            json!({ "type": "thinking", "thinking": "second", "signature": "seal-2" }),
            json!({ "type": "text", "text": "I look." }),
        ]
    );
    assert_eq!(said[1]["content"][4]["input"], calls_ls());
    assert_eq!(said[2]["content"].as_array().unwrap().len(), 2, "both results in one message");
    assert_eq!(said[2]["content"][0]["tool_use_id"], "toolu_1");
}

#[test]
fn openai_style_servers_think_speak_and_call_in_fragments() {
    let peer = Peer::start();
    let frames = [
        openai::delta(&json!({ "role": "assistant", "content": null })),
        openai::thinking("hm"),
        openai::text("I look."),
        openai::call(0, "call_a", "ls"),
        openai::arguments(0, "{\"pa"),
        openai::call(1, "call_b", "ls"),
        openai::arguments(1, "{}"),
        openai::arguments(0, "th\":\".\"}"),
        openai::finish("tool_calls"),
        openai::usage(100, 60, 9),
        openai::DONE.to_owned(),
    ];
    peer.reply(Reply::stream(frames)).reply(Reply::stream(openai::answer(&["done"])));
    let world = provided(&peer);
    let mut child = start(&world, MODELS[1]);
    let frames = child.turn("p", "go");
    assert_eq!(joined(&frames, "thinking_delta"), "hm");
    assert_eq!(inputs(&frames), [&calls_ls(), &json!({})]);
    assert_eq!(results(&frames).len(), 2);
    assert_eq!(text(&frames), "I look.done");
    let asked = peer.asked();
    assert_eq!(asked[0].path, "/openai/chat/completions");
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(asked[0].body["stream_options"]["include_usage"], true);
    assert_eq!(asked[0].body.get("reasoning_effort"), None, "a model that does not think is not asked to");
    let said = asked[1].body["messages"].as_array().unwrap();
    assert_eq!(said[2]["tool_calls"][0]["id"], "call_a");
    assert_eq!((&said[3]["role"], &said[3]["tool_call_id"]), (&json!("tool"), &json!("call_a")));
    assert_eq!(said[4]["tool_call_id"], "call_b");
}

#[test]
fn gemini_thinks_speaks_calls_and_is_given_its_seal_back() {
    let peer = Peer::start();
    peer.reply(Reply::stream([
        gemini::parts(&[gemini::thought("hm")]),
        gemini::parts(&[gemini::text("I look.")]),
        gemini::parts(&[
            gemini::call("ls", &calls_ls(), "the-seal"),
            json!({ "functionCall": { "name": "ls", "args": {} } }),
        ]),
        gemini::finish(&[], "STOP"),
    ]));
    peer.reply(Reply::stream([gemini::finish(&[gemini::text("done")], "STOP")]));
    let world = provided(&peer);
    let mut child = start(&world, MODELS[2]);
    let frames = child.turn("p", "go");
    assert_eq!(joined(&frames, "thinking_delta"), "hm");
    assert_eq!(inputs(&frames), [&calls_ls(), &json!({})]);
    assert_eq!(text(&frames), "I look.done");
    let asked = peer.asked();
    assert_eq!(asked[0].path, "/gemini/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(asked[0].headers["x-goog-api-key"], KEY);
    assert!(!asked[0].path.contains(KEY));
    let said = asked[1].body["contents"].as_array().unwrap();
    let calls: Vec<&Value> = said[1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part.get("functionCall").is_some())
        .collect();
    assert_eq!(calls[0]["thoughtSignature"], "the-seal");
    assert_eq!(calls[1].get("thoughtSignature"), None);
    assert_eq!(said[2]["parts"].as_array().unwrap().len(), 2, "both results in one message");
    // Two calls without ids of their own are still two.
    let ids: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["event"]["type"] == "toolcall_start")
        .map(|frame| &frame["event"]["tool_id"])
        .collect();
    assert_ne!(ids[0], ids[1]);
}

fn odd_frames(model: &str) -> Vec<String> {
    let arguments = json!({ "path": ODD }).to_string();
    // In the middle of an escape, and of a letter.
    let (one, two) = arguments.split_at(arguments.find('\\').unwrap() + 1);
    match model {
        "claude-sonnet-4-6" => {
            anthropic::Answer::new(1).text(&[ODD]).call("toolu_1", "ls", &[one, two]).stop("tool_use", 1)
        }
        "openai/gpt-4o" => vec![
            openai::text(ODD),
            openai::call(0, "call_a", "ls"),
            openai::arguments(0, one),
            openai::arguments(0, two),
            openai::finish("tool_calls"),
            openai::DONE.to_owned(),
        ],
        _ => vec![
            gemini::parts(&[gemini::text(ODD)]),
            gemini::finish(&[gemini::call("ls", &json!({ "path": ODD }), "s")], "STOP"),
        ],
    }
}

fn last_frames(model: &str) -> Vec<String> {
    match model {
        "claude-sonnet-4-6" => anthropic::Answer::new(1).text(&["end"]).stop("end_turn", 1),
        "openai/gpt-4o" => openai::answer(&["end"]),
        _ => vec![gemini::finish(&[gemini::text("end")], "STOP")],
    }
}

#[test]
fn bytes_may_be_split_anywhere() {
    for model in MODELS {
        let peer = Peer::start();
        let world = provided(&peer);
        let mut child = start(&world, model);
        for size in [1, 2, 3, 5, 64] {
            peer.reply(Reply::opening().split(odd_frames(model), size).end());
            peer.reply(Reply::stream(last_frames(model)));
            let frames = child.turn("p", "go");
            assert_eq!(text(&frames), format!("{ODD}end"), "{model} in pieces of {size}");
            assert_eq!(inputs(&frames), [&json!({ "path": ODD })], "{model} in pieces of {size}");
            assert_eq!(frames.last().unwrap()["ok"], true);
        }
    }
}

#[test]
fn words_come_out_as_they_come_in() {
    for model in MODELS {
        let (peer, gate) = (Peer::start(), Gate::default());
        let mut frames = last_frames(model);
        let rest = frames.split_off(frames.iter().position(|frame| frame.contains("end")).unwrap());
        let (first, waiting) = match model {
            "gemini-2.5-flash" => (gemini::parts(&[gemini::text("first")]), rest),
            "openai/gpt-4o" => (openai::text("first"), rest),
            _ => (anthropic::Answer::new(1).text(&["first"]).unfinished().swap_remove(3), rest),
        };
        peer.reply(Reply::opening().frames(frames).bytes(first).wait(&gate).frames(waiting).end());
        let world = provided(&peer);
        let mut child = start(&world, model);
        child.prompt("p", "go");
        let early = child.until("the first word", |frame| frame["event"]["type"] == "text_delta");
        assert_eq!(text(&early), "first", "{model}");
        gate.open();
        assert_eq!(text(&child.until_response("p")), "end", "{model}");
    }
}

#[test]
fn an_abort_in_the_middle_hangs_up_and_keeps_what_was_said() {
    let peer = Peer::start();
    let said = anthropic::Answer::new(77).text(&["half of it"]).unfinished();
    peer.reply(Reply::opening().frames(said).stall());
    let world = provided(&peer);
    let mut child = start(&world, MODELS[0]);
    child.prompt("p", "go");
    child.until("the first word", |frame| frame["event"]["type"] == "text_delta");
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    assert_eq!(kinds(&frames), ["agent_end", "response", "response"]);
    assert_eq!(frames[0]["usage"]["input_tokens"], 77, "what was told by then counts");
    assert_eq!(frames[1]["cancelled"], true);
    peer.wait_for_hang_up();
    assert_eq!(
        child.messages()[1],
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "half of it" }] })
    );
    // And the next turn works.
    peer.reply(Reply::stream(last_frames(MODELS[0])));
    assert_eq!(text(&child.turn("q", "go on")), "end");
}

#[test]
fn a_parent_that_does_not_read_holds_the_provider_up() {
    let peer = Peer::start();
    let frame = openai::text(&"x".repeat(1000));
    peer.reply(Reply::opening().flood(&frame, 100_000).end());
    let world = provided(&peer);
    let mut process = crate::child::spawn(&world, &["--model", MODELS[1]]);
    let mut stdin = process.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"{\"type\":\"prompt\",\"id\":\"p\",\"message\":\"go\"}\n")
        .unwrap();
    // Nobody reads stdout.
    peer.wait_until_held_up();
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = resident.trim().trim_end_matches("kB").trim().parse().unwrap();
    let _ = process.kill();
    let _ = process.wait();
    assert!(peer.sent() < 64 << 20, "{} bytes were taken", peer.sent());
    assert!(kilobytes < 96 << 10, "{kilobytes} kB are resident");
}

#[test]
fn models_may_be_changed_in_the_middle_of_a_conversation() {
    let peer = Peer::start();
    let world = provided(&peer);
    let mut child = start(&world, MODELS[2]);
    peer.reply(Reply::stream([
        gemini::parts(&[gemini::thought("google thinks")]),
        gemini::finish(&[gemini::call("ls", &calls_ls(), "google-seal")], "STOP"),
    ]));
    peer.reply(Reply::stream(last_frames(MODELS[2])));
    child.turn("1", "go");
    for model in [MODELS[0], MODELS[1]] {
        child.ask(json!({ "type": "set_model", "id": "m", "model": model }));
        peer.reply(Reply::stream(last_frames(model)));
        assert_eq!(text(&child.turn("2", "go on")), "end", "{model}");
        let said = peer.asked().pop().unwrap().body.to_string();
        assert!(!said.contains("google-seal") && !said.contains("google thinks"), "{said}");
        assert!(!said.contains('#'), "ids are written in letters that everybody takes: {said}");
    }
}

#[test]
fn a_server_at_home_needs_no_key() {
    let peer = Peer::start();
    peer.reply(Reply::stream(openai::answer(&["hello"])));
    let world = provided(&peer);
    let mut child = Child::start(&world, &["--model", "local/some-model-high"]);
    assert_eq!(text(&child.turn("p", "go")), "hello");
    let asked = peer.only_request();
    assert_eq!(asked.path, "/local/chat/completions");
    assert_eq!(asked.headers.get("authorization"), None);
    assert_eq!(asked.body["model"], "some-model-high", "the end of a name is no setting");
}
