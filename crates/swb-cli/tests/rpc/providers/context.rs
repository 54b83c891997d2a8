//! What real models are given besides words, and what happens when it is too much for them.

use serde_json::{Value, json};
use testkit::peer::{Peer, Reply, anthropic, gemini, openai};

use super::{MODELS, provided, start};
use crate::child::{Child, kinds, text};

const GIF: (&[u8], &str) = (b"GIF89a\x05\0\x06\0\0\0;", "R0lGODlhBQAGAAAAOw==");
const PDF: (&[u8], &str) = (b"%PDF-1.4\n%%EOF\n", "JVBERi0xLjQKJSVFT0YK");

fn whole(model: &str, words: &str) -> Vec<String> {
    match model {
        "claude-sonnet-4-6" => anthropic::Answer::new(1).text(&[words]).stop("end_turn", 1),
        "gemini-2.5-flash" => vec![gemini::finish(&[gemini::text(words)], "STOP")],
        _ => openai::answer(&[words]),
    }
}

fn attached(world: &testkit::World, files: &[(&str, &[u8])]) -> Vec<Value> {
    let attach = |(name, bytes): &(&str, &[u8])| {
        let path = world.folder().join(name);
        std::fs::write(&path, bytes).unwrap();
        json!({ "path": path })
    };
    files.iter().map(attach).collect()
}

#[test]
fn files_are_sent_in_the_form_of_each_provider_and_again_with_every_call() {
    for model in MODELS {
        let peer = Peer::start();
        peer.reply(Reply::stream(whole(model, "seen")));
        peer.reply(Reply::stream(whole(model, "still seen")));
        let world = provided(&peer);
        let files = attached(&world, &[("a.gif", GIF.0), ("b.pdf", PDF.0), ("c.txt", b"plain words")]);
        let mut child = start(&world, model);
        child.send(json!({ "type": "prompt", "id": "p", "message": "look", "attachments": files }));
        assert_eq!(text(&child.until_response("p")), "seen", "{model}");
        child.close_stdin();
        child.exit_code();
        let mut again = Child::start(&world, &["--continue", &child.session_id]);
        assert_eq!(text(&again.turn("q", "and now?")), "still seen", "{model}");
        for asked in peer.asked() {
            let body = asked.body.to_string();
            for part in [GIF.1, "image/gif", PDF.1, "plain words", "look"] {
                assert!(body.contains(part), "{model}: no {part} in {body}");
            }
        }
    }
}

#[test]
fn anthropic_gets_images_and_documents_as_blocks() {
    let peer = Peer::start();
    peer.reply(Reply::stream(whole(MODELS[0], "seen")));
    let world = provided(&peer);
    let files = attached(&world, &[("a.gif", GIF.0), ("b.pdf", PDF.0)]);
    let mut child = start(&world, MODELS[0]);
    child.send(json!({ "type": "prompt", "id": "p", "message": "look", "attachments": files }));
    child.until_response("p");
    let content = peer.only_request().body["messages"][0]["content"].take();
    let source =
        |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
    assert_eq!((&content[0]["type"], &content[0]["source"]), (&json!("image"), &source("image/gif", GIF.1)));
    assert_eq!(
        (&content[1]["type"], &content[1]["source"]),
        (&json!("document"), &source("application/pdf", PDF.1))
    );
}

#[test]
fn a_model_that_only_reads_gets_no_pictures() {
    let peer = Peer::start();
    let world = provided(&peer);
    let files = attached(&world, &[("a.gif", GIF.0)]);
    let mut child = start(&world, "local/tiny");
    let error = child.ask(json!({ "type": "prompt", "id": "p", "message": "look", "attachments": files }));
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("Selected model lacks exact image input capability metadata"), "{message}");
    assert_eq!(peer.asked().len(), 0);
    assert_eq!(child.state("message_count"), 0);
}

#[test]
fn a_provider_that_finds_it_too_long_is_asked_for_a_summary_and_tried_once_more() {
    let too_long = [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)","status":"INVALID_ARGUMENT"}}"#,
    ];
    for (model, too_long) in MODELS.into_iter().zip(too_long) {
        let peer = Peer::start();
        peer.reply(Reply::stream(whole(model, "begun")));
        peer.reply(Reply::status(400, too_long));
        peer.reply(Reply::stream(whole(model, "we chose B")));
        peer.reply(Reply::stream(whole(model, "done")));
        let world = provided(&peer);
        let mut child = start(&world, model);
        child.turn("p", "the first task");
        let frames = child.turn("q", "go on");
        assert_eq!(
            kinds(&frames),
            ["compaction_start", "compaction_end", "text_delta", "agent_end", "response"],
            "{model}"
        );
        assert_eq!((&frames[0]["reason"], text(&frames).as_str()), (&json!("overflow"), "done"), "{model}");
        let asked = peer.asked();
        let summary = asked[2].body.to_string();
        assert!(summary.contains("> the first task") && summary.contains("Agent:"), "{model}: {summary}");
        assert!(asked[2].body.get("tools").is_none_or(|tools| tools == &json!([])), "{model}: {summary}");
        let last = asked[3].body.to_string();
        assert!(
            last.contains("we chose B") && last.contains("context-summary") && last.contains("go on"),
            "{last}"
        );
        assert!(!last.contains("begun\""), "{model}: {last}");
    }
}
