//! Both ways to a server of this dialect: `genai` is the measure, whatever is streamed and however it is cut.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Value, json};
use swb_proto::agent::{Block, Message, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::attempt::Attempt;
use super::super::http::Clients;
use super::*;
use crate::model::provider::{Access, Dialect, Key};
use crate::model::settings::{Limits, ModelSettings};
use crate::model::{FileBody, Prompt, Task, Thinking, ToolSpec};

/// What a call was asked with, and what came of it.
type Outcome = (Value, Vec<Delta>, Result<(), Failure>);

/// A server that answers every call with these pieces, each of which arrives on its own.
async fn serve(listener: TcpListener, status: u16, pieces: Vec<Vec<u8>>, asked: Arc<Mutex<Vec<Value>>>) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let (head, body) = read_request(&mut connection).await;
        assert!(head.contains("authorization: bearer sk-of-the-test"), "{head}");
        assert!(head.starts_with("post /v1/chat/completions http/1.1"), "{head}");
        asked.lock().unwrap().push(body);
        let head = format!(
            "HTTP/1.1 {status} X\r\nretry-after: 7\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        // Whoever has read enough hangs up.
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            let size = format!("{:x}\r\n", piece.len());
            let _ = connection.write_all(&[size.as_bytes(), piece, b"\r\n"].concat()).await;
        }
        let _ = connection.write_all(b"0\r\n\r\n").await;
    }
}

async fn read_request(connection: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        connection.read_buf(&mut bytes).await.unwrap();
        let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        if bytes.len() >= end + 4 + length.parse::<usize>().unwrap() {
            return (head, serde_json::from_slice(&bytes[end + 4..]).unwrap());
        }
    }
}

fn model(name: &str, base_url: String, settings: ModelSettings) -> Inner {
    let provider = Arc::new(Provider {
        name: "mine".into(),
        dialect: Dialect::OpenAi,
        base_url,
        access: Access::Key(Key::new("sk-of-the-test").unwrap()),
        local: true,
    });
    let limits = Limits::default();
    let line = Clients::new(limits.connect).get(&provider).unwrap();
    Inner { name: format!("mine/{name}"), model: name.into(), provider, line, settings, limits }
}

async fn outcome(attempt: Result<Attempt, Failure>, model: &Inner) -> (Vec<Delta>, Result<(), Failure>) {
    let (mut all, mut waiting) = (Vec::new(), VecDeque::new());
    let mut attempt = attempt.unwrap();
    loop {
        let advanced = attempt.advance(model, &mut waiting).await;
        all.extend(waiting.drain(..));
        if advanced.is_err() || all.last() == Some(&Delta::Stop) {
            return (with_plain_ids(all), advanced);
        }
    }
}

/// Ids that were made up differ from call to call.
fn with_plain_ids(mut deltas: Vec<Delta>) -> Vec<Delta> {
    let mut known = HashMap::new();
    for delta in &mut deltas {
        if let Delta::CallStart { id, .. } | Delta::CallInput { id, .. } = delta {
            let number = known.len();
            *id = known.entry(id.clone()).or_insert(number).to_string();
        }
    }
    deltas
}

/// What comes of the same call on both ways.
fn both(
    name: &str,
    settings: &ModelSettings,
    prompt: &Prompt,
    status: u16,
    pieces: &[Vec<u8>],
) -> [Outcome; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = model(name, format!("http://{}/v1/", listener.local_addr().unwrap()), settings.clone());
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(serve(listener, status, pieces.to_vec(), Arc::clone(&asked)));
        let theirs = outcome(Attempt::with_library(&model, prompt).await, &model).await;
        let ours = outcome(Attempt::of_our_own(&model, prompt), &model).await;
        let mut asked = asked.lock().unwrap();
        let ours_asked = asked.pop().unwrap();
        [(asked.pop().unwrap(), theirs.0, theirs.1), (ours_asked, ours.0, ours.1)]
    })
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        messages: messages.into_iter().map(Arc::new).collect(),
        files: std::iter::empty().collect(),
        system: "be brief".into(),
        task: Task::Answer,
        thinking: Thinking::Medium,
        tools: vec![],
    }
}

fn streamed(status: u16, pieces: &[Vec<u8>]) -> [Outcome; 2] {
    both("m", &ModelSettings::default(), &prompt(vec![Message::user("go")]), status, pieces)
}

fn said(delta: &Value) -> Value {
    json!({ "id": "1", "usage": null, "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn ended(delta: &Value, reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
}

/// Everything that a server may say in one event, and some of what it may not.
fn event() -> impl Strategy<Value = String> {
    let counts = json!({ "prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 4 } });
    let call = (0_u32..3, prop_oneof![Just(json!("id_1")), Just(json!("id_2")), Just(Value::Null)], "[a-z{\":é]{0,5}")
        .prop_map(|(index, id, text)| json!({ "index": index, "id": id, "function": { "name": "ls", "arguments": text } }));
    let fragment = (0_u32..3, "[a-z{\":é]{0,5}")
        .prop_map(|(index, text)| json!({ "index": index, "function": { "arguments": text } }));
    let odd = prop_oneof![
        Just(json!({})),
        Just(json!([])),
        Just(json!(7)),
        Just(json!({ "choices": null })),
        Just(json!({ "choices": [null] })),
        Just(json!({ "choices": [{ "delta": null }] })),
        Just(said(&json!({ "role": "assistant", "content": null }))),
        Just(said(&json!({ "content": "" }))),
        Just(said(&json!({ "content": 7, "tool_calls": {} }))),
        Just(said(&json!({ "tool_calls": [{ "index": -1, "function": {} }, { "index": 0 }, 7] }))),
        Just(json!({ "choices": [{ "delta": { "content": "a" } }, { "delta": { "content": "b" } }] })),
        Just(json!({ "error": { "message": "no more", "type": "server_error" } })),
        Just(json!({ "choices": [], "usage": counts })),
        Just(json!({ "choices": [{ "delta": { "content": "a" } }], "usage": counts })),
        Just(json!({ "choices": [{ "delta": { "content": "a" } }], "x_groq": { "usage": counts } })),
    ];
    let words = prop_oneof![
        any::<String>().prop_map(|text| said(&json!({ "content": text }))),
        any::<String>().prop_map(|text| ended(&json!({ "content": text }), "stop")),
        any::<String>().prop_map(|text| said(&json!({ "reasoning_content": text, "content": "" }))),
        any::<String>().prop_map(|text| said(&json!({ "reasoning": text, "content": "both" }))),
        Just(said(&json!({ "reasoning": "a", "reasoning_content": "" }))),
        any::<String>().prop_map(|text| said(&json!({ "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": text }, {}] }, { "type": "text", "text": text },
            { "type": "thinking", "thinking": "x" }, { "type": "novelty" }, 7,
        ]}))),
        proptest::collection::vec(call, 1..3).prop_map(|calls| said(&json!({ "tool_calls": calls }))),
        fragment.prop_map(|call| said(&json!({ "tool_calls": [call], "content": "beside" }))),
        prop_oneof![Just("length"), Just("tool_calls"), Just("content_filter"), Just("novelty")]
            .prop_map(|reason| ended(&json!({}), reason)),
    ];
    let text = any::<String>().prop_map(|text| said(&json!({ "content": text })));
    prop_oneof![
        40 => text.prop_map(|event| format!("data: {event}\n\n")),
        40 => words.prop_map(|event| format!("data: {event}\n\n")),
        10 => odd.prop_map(|event| format!("event: x\ndata:{event}\n\n")),
        4 => Just(": a comment\n\n".to_owned()),
        2 => Just("data: {\"choices\":[\n\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        2 => Just("data: [DONE]\n\n".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_read_the_same(events in proptest::collection::vec(event(), 0..12), cuts in proptest::collection::vec(0_usize..3000, 0..12)) {
        let end = ended(&json!({}), "stop");
        let stream = format!("{}data: {end}\n\ndata: [DONE]\n\n", events.concat());
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= stream.len()).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<Vec<u8>> = cuts.windows(2).map(|cut| stream.as_bytes()[cut[0]..cut[1]].to_vec()).collect();
        let [theirs, ours] = streamed(200, &pieces);
        prop_assert_eq!(theirs, ours, "{}", stream);
    }
}

#[test]
fn both_ways_fail_the_same() {
    let text = format!("data: {}\n\n", said(&json!({ "content": "a" })));
    let refusal = json!({ "error": { "message": "slow down" } }).to_string();
    for (status, body) in [
        (429, refusal.as_str()),
        (401, "go away"),
        (400, "prompt is too long: context_length_exceeded"),
        (200, "<html>welcome</html>"),
        (200, ""),
        (200, text.as_str()),
        (200, "data: [DONE]\n\n"),
    ] {
        let [theirs, ours] = streamed(status, &[body.as_bytes().to_vec()]);
        assert!(ours.2.is_err(), "{body}");
        assert_eq!(theirs, ours, "{body}");
    }
    let [theirs, ours] = streamed(200, &[b"data: \xff\n\n".to_vec()]);
    assert_eq!(theirs, ours);
}

#[test]
fn the_last_event_may_be_missing_but_not_the_reason() {
    let text = format!("data: {}\r\n\r\n", ended(&json!({ "content": "a" }), "stop"));
    for end in ["", "data: [DONE]", "data: [DONE]\r\n"] {
        let [_, (_, deltas, ended)] = streamed(200, &[format!("{text}{end}").into_bytes()]);
        assert_eq!((deltas, ended), (vec![Delta::Text("a".into()), Delta::Stop], Ok(())), "{end:?}");
    }
    let [_, (_, deltas, ended)] =
        streamed(200, &[b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}".to_vec()]);
    assert_eq!((deltas, ended), (vec![Delta::Text("a".into())], Err(Failure::passing(ModelError::CutOff))));
}

#[test]
fn an_error_of_nothing_is_none() {
    let stream =
        "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let [_, (_, deltas, ended)] = streamed(200, &[stream.as_bytes().to_vec()]);
    assert_eq!((deltas, ended), (vec![Delta::Text("a".into()), Delta::Stop], Ok(())));
}

#[test]
fn an_event_without_an_end_is_refused_before_it_fills_the_memory() {
    let piece = vec![b'x'; 4 << 20];
    let mut pieces = vec![b"data: ".to_vec()];
    pieces.extend(std::iter::repeat_n(piece, 9));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let model = model("m", url, ModelSettings::default());
        tokio::spawn(serve(listener, 200, pieces, Arc::default()));
        outcome(Attempt::of_our_own(&model, &prompt(vec![Message::user("go")])), &model).await.1
    });
    assert!(matches!(ended, Err(Failure { error: ModelError::Malformed { .. }, .. })), "{ended:?}");
}

#[test]
fn both_ways_ask_the_same() {
    let file = |id: &str, kind: &str| Source::File { file_id: id.into(), media_type: kind.into(), size: 3 };
    let image = Block::Image { title: "a.png".into(), source: file("1", "image/png") };
    let pdf = Block::Document { title: "b.pdf".into(), source: file("2", "application/pdf") };
    let input = json!({ "path": ".", "z": 1, "a": [null] });
    let call = |id: &str| Block::ToolUse { id: id.into(), name: "ls".into(), input: input.clone() };
    let result = |id: &str| Block::ToolResult { tool_use_id: id.into(), content: "x".into(), is_error: true };
    let text = |text: &str| Block::Text { text: text.into() };
    let mut prompt = prompt(vec![
        Message::user("go \"é\""),
        Message::assistant(vec![text("one"), text("two"), call("c1"), call("c2")]),
        Message::results(vec![result("c1"), result("c2")]),
        Message::assistant(vec![call("c3")]),
        Message::results(vec![result("c3")]),
        Message::with_files("look", vec![image, pdf, text("there")]),
    ]);
    let bodies = ["1", "2"].map(|id| (id.to_owned(), FileBody::Base64("AAAA".into())));
    prompt.files = bodies.into_iter().collect();
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = ToolSpec { name: "ls".into(), description: "lists".into(), input_schema: schema };
    let all = ModelSettings { images: Some(true), pdf: Some(true), ..ModelSettings::default() };
    let end = format!("data: {}\n\ndata: [DONE]\n\n", ended(&json!({ "content": "a" }), "stop")).into_bytes();
    for thinks in [None, Some(true)] {
        for (name, limit) in
            [("m", None), ("m-high", Some(10)), ("gpt-5-mini", Some(10)), ("o3", None), ("a/b::c", None)]
        {
            let settings = ModelSettings { thinking: thinks, max_output_tokens: limit, ..all.clone() };
            for thinking in [Thinking::Off, Thinking::Low, Thinking::High] {
                for tools in [vec![], vec![tool.clone()]] {
                    let prompt = Prompt { thinking, tools, ..prompt.clone() };
                    let [(theirs, ..), (ours, ..)] =
                        both(name, &settings, &prompt, 200, std::slice::from_ref(&end));
                    assert_eq!(theirs, ours, "{name}");
                }
            }
        }
    }
}
