//! The same message in each form that is compared, as the plain typed structs that anybody would write.

use serde::{Deserialize, Serialize};
use swb_bus::BusHandle;
use swb_proto::BusPayload;

/// How one kind of line is written and read.
pub(crate) struct Words {
    /// Appends question number `n`, newline included.
    pub(crate) write: fn(&mut Vec<u8>, u64),
    /// The number of the question that this line answers.
    pub(crate) read: fn(&[u8]) -> u64,
}

pub(crate) const ECHO: Words = Words { write: write_json_rpc, read: |line| parse::<Question>(line).id };
pub(crate) const JSON_RPC: Words = Words {
    write: write_json_rpc,
    read: |line| {
        let Answer { id, result, .. } = parse(line);
        assert!(!result.content.is_empty());
        id
    },
};
pub(crate) const ENVELOPE: Words = Words {
    write: |out, n| {
        let command = Command {
            id: n.to_string(),
            r#type: "command".to_owned(),
            method: METHOD.to_owned(),
            ts: "2026-11-15T10:00:00.000Z".to_owned(),
            actor: Actor { kind: "user".to_owned(), id: "user_local".to_owned() },
            workspace_id: "ws_1".to_owned(),
            payload: text(2),
        };
        write_line(out, &command);
    },
    read: |line| {
        let Response { id, status, result, .. } = parse(line);
        assert!(status == "ok" && !result.content.is_empty());
        id.parse().expect("a number came back")
    },
};

const METHOD: &str = "agents.echo.handle";

#[derive(Serialize, Deserialize)]
pub(crate) struct Question {
    jsonrpc: String,
    pub(crate) id: u64,
    method: String,
    params: Text,
}

#[derive(Serialize, Deserialize)]
struct Text {
    channel_id: String,
    content: String,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: String,
    id: u64,
    result: Text,
}

#[derive(Serialize)]
struct Command {
    id: String,
    r#type: String,
    method: String,
    ts: String,
    actor: Actor,
    workspace_id: String,
    payload: Text,
}

#[derive(Serialize)]
struct Actor {
    kind: String,
    id: String,
}

#[derive(Deserialize)]
struct Response {
    id: String,
    #[serde(rename = "type")]
    _type: String,
    status: String,
    #[serde(rename = "ts")]
    _ts: String,
    result: Text,
}

fn write_json_rpc(out: &mut Vec<u8>, n: u64) {
    let method = METHOD.to_owned();
    write_line(out, &Question { jsonrpc: "2.0".to_owned(), id: n, method, params: text(89) });
}

/// The rest of the line differs, so the content makes up the 200 bytes.
fn text(content: usize) -> Text {
    Text { channel_id: "pty0".to_owned(), content: "x".repeat(content) }
}

pub(crate) fn write_line(out: &mut Vec<u8>, words: &impl Serialize) {
    serde_json::to_writer(&mut *out, words).expect("words serialise into memory");
    out.push(b'\n');
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(line: &[u8]) -> T {
    serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)))
}

/// One question through a handle; its line has about as many bytes as the others.
pub(crate) async fn ask(handle: &BusHandle) {
    let Text { channel_id, content } = text(52);
    let reply = handle.request("agents/echo/handle", BusPayload::CommsMessage { channel_id, content }).await;
    assert!(matches!(reply, Ok(Ok(BusPayload::CommsMessage { .. }))));
}

pub(crate) fn sizes() -> String {
    let size = |words: &Words| {
        let mut line = Vec::new();
        (words.write)(&mut line, 123_456);
        line.len()
    };
    format!("JSON-RPC and echo {}, envelope {}", size(&JSON_RPC), size(&ENVELOPE))
}
