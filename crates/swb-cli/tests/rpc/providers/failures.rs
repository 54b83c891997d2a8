//! Providers that refuse, break off or talk nonsense: a clear error, and a history that can be gone on with.

use serde_json::json;
use testkit::peer::{Peer, Reply, anthropic, gemini, openai};

use super::{IMPATIENT, KEY, MODELS, failure, provided, provided_with, retries, start};
use crate::child::{Child, kinds, text};

/// What each dialect says before it breaks off.
fn half(model: &str) -> Vec<String> {
    match model {
        "claude-sonnet-4-6" => anthropic::Answer::new(1).text(&["half"]).unfinished(),
        "openai/gpt-4o" => vec![openai::text("half")],
        _ => vec![gemini::parts(&[gemini::text("half")])],
    }
}

fn whole(model: &str) -> Vec<String> {
    match model {
        "claude-sonnet-4-6" => anthropic::Answer::new(1).text(&["whole"]).stop("end_turn", 1),
        "openai/gpt-4o" => openai::answer(&["whole"]),
        _ => vec![gemini::finish(&[gemini::text("whole")], "STOP")],
    }
}

#[test]
fn what_passes_is_tried_again_in_sight_of_the_parent() {
    for model in MODELS {
        let peer = Peer::start();
        peer.reply(Reply::status(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after-ms", "20"));
        peer.reply(Reply::status(500, "oops"));
        peer.reply(Reply::status(
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ));
        peer.reply(Reply::reset());
        peer.reply(Reply::stream(whole(model)));
        let world = provided(&peer);
        let mut child = start(&world, model);
        let frames = child.turn("p", "go");
        assert_eq!(
            kinds(&frames),
            [
                "model_retry",
                "model_retry",
                "model_retry",
                "model_retry",
                "text_delta",
                "agent_end",
                "response"
            ],
            "{model}"
        );
        assert_eq!((text(&frames).as_str(), &frames[6]["ok"]), ("whole", &json!(true)), "{model}");
        let waits = retries(&frames);
        assert_eq!((&waits[0]["wait_ms"], &waits[0]["attempt"]), (&json!(20), &json!(1)));
        assert!(waits[0]["reason"].as_str().unwrap().contains("429: slow down"), "{}", waits[0]);
        assert!(waits[2]["reason"].as_str().unwrap().contains("529: Overloaded"), "{}", waits[2]);
        assert_eq!((&waits[3]["attempt"], &waits[3]["retries"]), (&json!(4), &json!(4)));
        let asked = peer.asked();
        assert_eq!(asked.len(), 5);
        assert_eq!(asked[0].body, asked[4].body, "the same is asked again");
    }
}

#[test]
fn an_error_inside_a_stream_is_tried_again_only_if_nothing_was_said() {
    let peer = Peer::start();
    let overloaded = anthropic::error("overloaded_error", "Overloaded");
    peer.reply(Reply::stream([overloaded.clone()])).reply(Reply::stream(whole(MODELS[0])));
    let world = provided(&peer);
    let mut child = start(&world, MODELS[0]);
    let frames = child.turn("p", "go");
    assert_eq!(kinds(&frames), ["model_retry", "text_delta", "agent_end", "response"]);
    peer.reply(Reply::opening().frames(half(MODELS[0])).bytes(overloaded).end());
    let frames = child.turn("q", "go");
    assert_eq!(kinds(&frames), ["text_delta", "error", "agent_end", "response"]);
    assert!(failure(&frames).contains("Overloaded"), "{}", failure(&frames));
}

#[test]
fn retries_come_to_an_end() {
    let peer = Peer::start();
    for _ in 0..3 {
        peer.reply(Reply::status(503, "busy"));
    }
    let world = provided_with(&peer, &format!("{IMPATIENT}retries = 2\n"));
    let mut child = start(&world, MODELS[1]);
    let frames = child.turn("p", "go");
    assert_eq!(kinds(&frames), ["model_retry", "model_retry", "error", "agent_end", "response"]);
    let error = failure(&frames);
    assert!(error.contains("503: busy") && error.contains("3 times"), "{error}");
    assert_eq!(peer.asked().len(), 3);
    // The words of the user stay, and the next turn works.
    peer.reply(Reply::stream(whole(MODELS[1])));
    assert_eq!(text(&child.turn("q", "again")), "whole");
    assert_eq!(peer.asked()[3].body["messages"][1]["content"], "go");
}

#[test]
fn a_provider_that_wants_to_be_left_alone_for_an_hour_is() {
    let peer = Peer::start();
    peer.reply(Reply::status(429, r#"{"error":{"message":"quota"}}"#).header("retry-after", "3600"));
    let world = provided(&peer);
    let frames = start(&world, MODELS[1]).turn("p", "go");
    assert_eq!(kinds(&frames), ["error", "agent_end", "response"]);
    let error = failure(&frames);
    assert!(error.contains("quota") && error.contains("3600 s"), "{error}");
}

#[test]
fn what_lasts_is_not_tried_again_and_shows_no_key() {
    for model in MODELS {
        for (status, part) in [(400, "bad request"), (401, "is the key right"), (404, "such a model")] {
            let peer = Peer::start();
            let body = json!({ "error": { "message": format!("bad request with {KEY}") } });
            peer.reply(Reply::status(status, body.to_string()));
            let world = provided(&peer);
            let mut child = start(&world, model);
            let frames = child.turn("p", "go");
            let error = failure(&frames);
            assert!(error.contains(part) && error.contains(&status.to_string()), "{model}: {error}");
            assert_eq!(peer.asked().len(), 1);
            assert!(!format!("{frames:?}").contains(KEY));
            child.send(json!({ "type": "shutdown" }));
            child.exit_code();
            assert_eq!(child.stderr(), "");
            let sessions = std::fs::read_dir(world.paths().state.join("sessions")).unwrap();
            for file in sessions.flatten().filter(|file| file.path().is_file()) {
                assert!(!std::fs::read_to_string(file.path()).unwrap().contains(KEY));
            }
        }
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let (peer, elsewhere) = (Peer::start(), Peer::start());
    peer.reply(Reply::status(307, "").header("location", &format!("{}/messages", elsewhere.url())));
    elsewhere.reply(Reply::stream(whole(MODELS[0])));
    let world = provided(&peer);
    let frames = start(&world, MODELS[0]).turn("p", "go");
    assert!(failure(&frames).contains("307"), "{}", failure(&frames));
    assert!(elsewhere.asked().is_empty(), "the key would have gone along");
}

#[test]
fn an_answer_that_is_cut_off_is_a_failure_and_what_was_said_stays() {
    for model in MODELS {
        for (how, reply) in [
            ("in the middle of the body", Reply::opening().frames(half(model)).cut()),
            ("in good form", Reply::opening().frames(half(model)).end()),
            ("in the middle of a frame", Reply::opening().frames(half(model)).bytes("data: {\"cho").cut()),
        ] {
            let peer = Peer::start();
            peer.reply(reply);
            let world = provided(&peer);
            let mut child = start(&world, model);
            let frames = child.turn("p", "go");
            assert_eq!(kinds(&frames), ["text_delta", "error", "agent_end", "response"], "{model} {how}");
            failure(&frames);
            assert_eq!(peer.asked().len(), 1, "{model} {how}: words that were said cannot be taken back");
            let messages = child.messages();
            assert_eq!(messages[1]["content"], json!([{ "type": "text", "text": "half" }]), "{model} {how}");
            peer.reply(Reply::stream(whole(model)));
            assert_eq!(text(&child.turn("q", "go on")), "whole", "{model} {how}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_before_its_first_word_is_tried_again() {
    for model in MODELS {
        let peer = Peer::start();
        peer.reply(Reply::opening().bytes(": hello\n\n").cut()).reply(Reply::stream(whole(model)));
        let world = provided(&peer);
        let frames = start(&world, model).turn("p", "go");
        assert_eq!(kinds(&frames), ["model_retry", "text_delta", "agent_end", "response"], "{model}");
    }
}

#[test]
fn a_call_that_is_cut_off_is_never_run() {
    let peer = Peer::start();
    let broken =
        anthropic::Answer::new(1).text(&["I do it"]).call("toolu_1", "bash", &["{\"command\":\"touch x\"}"]);
    let mut frames = broken.unfinished();
    frames.pop();
    peer.reply(Reply::opening().frames(frames).cut());
    let world = provided(&peer);
    let mut child = start(&world, MODELS[0]);
    let frames = child.turn("p", "go");
    assert_eq!(
        kinds(&frames),
        [
            "text_delta",
            "toolcall_start",
            "toolcall_input_delta",
            "toolcall_result",
            "error",
            "agent_end",
            "response"
        ]
    );
    assert!(!world.folder().join("x").exists());
    assert_eq!(child.messages()[1]["content"], json!([{ "type": "text", "text": "I do it" }]));
}

#[test]
fn the_last_word_may_be_missing_if_the_reason_was_given() {
    let peer = Peer::start();
    peer.reply(Reply::stream([openai::text("whole"), openai::finish("stop")]));
    let world = provided(&peer);
    let frames = start(&world, MODELS[1]).turn("p", "go");
    assert_eq!((text(&frames).as_str(), &frames.last().unwrap()["ok"]), ("whole", &json!(true)));
    peer.reply(Reply::stream([openai::text("half"), openai::finish("length")]));
    assert!(failure(&start(&world, MODELS[1]).turn("p", "go")).contains("length"));
}

#[test]
fn a_last_word_without_a_reason_is_no_end() {
    let peer = Peer::start();
    peer.reply(Reply::stream([openai::text("half"), openai::DONE.to_owned()]));
    let world = provided(&peer);
    let frames = start(&world, MODELS[1]).turn("p", "go");
    assert!(failure(&frames).contains("cut off"));
}

#[test]
fn an_answer_at_its_limit_and_one_that_is_filtered_are_failures() {
    for (model, limit, filter) in [
        (MODELS[0], "max_tokens", "refusal"),
        (MODELS[1], "length", "content_filter"),
        (MODELS[2], "MAX_TOKENS", "SAFETY"),
    ] {
        for reason in [limit, filter] {
            let peer = Peer::start();
            peer.reply(Reply::stream(match model {
                "claude-sonnet-4-6" => anthropic::Answer::new(1).text(&["half"]).stop(reason, 9),
                "openai/gpt-4o" => {
                    vec![openai::text("half"), openai::finish(reason), openai::DONE.to_owned()]
                }
                _ => vec![gemini::finish(&[gemini::text("half")], reason)],
            }));
            let world = provided(&peer);
            let frames = start(&world, model).turn("p", "go");
            assert!(failure(&frames).contains(reason), "{model}: {}", failure(&frames));
            assert_eq!(text(&frames), "half");
        }
    }
}

#[test]
fn nonsense_is_named_as_such() {
    for model in MODELS {
        let event = "event: content_block_delta\n";
        for (what, reply) in [
            ("JSON", Reply::opening().frames(half(model)).bytes(format!("{event}data: {{\"no\n\n")).end()),
            ("UTF-8", Reply::opening().frames(half(model)).bytes(b"data: \xff\xfe\n\n".to_vec()).end()),
            ("a page", Reply::status(200, "<html>welcome to the hotel</html>")),
        ] {
            let peer = Peer::start();
            peer.reply(reply);
            let world = provided(&peer);
            let mut child = start(&world, model);
            let frames = child.turn("p", "go");
            let error = failure(&frames);
            assert!(error.contains("cannot be understood"), "{model}, {what}: {error}");
            assert_eq!(peer.asked().len(), 1, "{model}, {what}");
            peer.reply(Reply::stream(whole(model)));
            assert_eq!(text(&child.turn("q", "go on")), "whole", "{model}, {what}");
        }
    }
}

#[test]
fn nobody_at_home_is_said_plainly() {
    let peer = Peer::start();
    let world = provided_with(&peer, &format!("{IMPATIENT}retries = 1\n"));
    let mut child = Child::start(&world, &["--model", "ollama/m"]);
    let frames = child.turn("p", "go");
    assert_eq!(kinds(&frames), ["model_retry", "error", "agent_end", "response"]);
    let error = failure(&frames);
    assert!(error.contains("http://127.0.0.1:1/v1/") && error.contains("refused"), "{error}");
}

#[test]
fn a_conversation_that_is_too_long_is_no_mystery() {
    let peer = Peer::start();
    let body = r#"{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}"#;
    peer.reply(Reply::status(400, body));
    let world = provided(&peer);
    let frames = start(&world, MODELS[1]).turn("p", "go");
    assert!(failure(&frames).contains("too long for the model"), "{}", failure(&frames));
}

#[test]
fn an_answer_without_end_comes_to_one() {
    let peer = Peer::start();
    peer.reply(Reply::opening().flood(&openai::text(&"x".repeat(50_000)), 2000).end());
    let world = provided(&peer);
    let mut child = start(&world, MODELS[1]);
    let frames = child.turn("p", "go");
    assert!(failure(&frames).contains("longer than 16 MiB"), "{}", failure(&frames));
    assert!(peer.sent() < 64 << 20, "{} bytes were taken", peer.sent());
}

#[test]
fn commands_of_the_model_do_not_see_keys() {
    let peer = Peer::start();
    let call = |id: &str| {
        let arguments = json!({ "command": "env; echo end" }).to_string();
        anthropic::Answer::new(1).call(id, "bash", &[&arguments]).stop("tool_use", 1)
    };
    for settings in ["", "share_keys = true\n"] {
        peer.reply(Reply::stream(call("toolu_1"))).reply(Reply::stream(whole(MODELS[0])));
        let world = provided_with(&peer, &format!("{IMPATIENT}{settings}"));
        let frames = Child::start(&world, &["--model", MODELS[0], "--tool-mode", "full"]).turn("p", "go");
        let result = crate::child::results(&frames)[0].to_owned();
        assert!(result.contains("end") && result.contains("LOCAL_ENDPOINT"), "{result}");
        assert_eq!(result.contains(KEY), !settings.is_empty(), "{result}");
    }
}
