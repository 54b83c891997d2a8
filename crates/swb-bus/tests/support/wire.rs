//! A client that knows nothing but lines.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::within;

pub(crate) struct Wire {
    pub(crate) reader: BufReader<OwnedReadHalf>,
    pub(crate) writer: OwnedWriteHalf,
}

impl Wire {
    pub(crate) async fn connect(socket: &Path) -> Self {
        let (reader, writer) = UnixStream::connect(socket).await.unwrap().into_split();
        Wire { reader: BufReader::new(reader), writer }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        within("the daemon reads", self.writer.write_all(bytes)).await.unwrap();
    }

    /// The next line; `None` once the daemon has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let bytes = within("the daemon writes a line", self.reader.read_line(&mut line)).await.unwrap_or(0);
        (bytes > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn recv(&mut self) -> Value {
        self.next().await.expect("the connection is open")
    }

    /// One line and the line that answers it.
    pub(crate) async fn ask(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.recv().await
    }

    /// The result of a JSON-RPC request.
    pub(crate) async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        let mut reply = self.ask(&rpc(id, method, params)).await;
        assert_eq!(reply["id"], id, "{reply}");
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].take()
    }

    /// Shows that the connection is alive and well.
    pub(crate) async fn assert_usable(&mut self) {
        let pong = self.call(9_999, "$/ping", json!({})).await;
        assert!(pong["ts"].is_string(), "{pong}");
    }
}

/// A JSON-RPC request line.
#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
pub(crate) fn rpc(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A message for `agents/*` as parameters.
pub(crate) fn message(content: &str) -> Value {
    json!({ "channel_id": "chan_1", "content": content })
}

/// An envelope command line. `more` replaces or adds fields; null removes one.
#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
pub(crate) fn command(id: &str, method: &str, payload: Value, more: Value) -> String {
    let mut envelope = json!({
        "id": id,
        "type": "command",
        "method": method,
        "ts": "2026-02-26T00:00:00.000Z",
        "actor": { "kind": "user", "id": "user_local" },
        "workspace_id": "ws_123",
        "payload": payload,
    });
    let fields = envelope.as_object_mut().unwrap();
    for (name, value) in more.as_object().unwrap() {
        match value {
            Value::Null => fields.remove(name),
            value => fields.insert(name.clone(), value.clone()),
        };
    }
    envelope.to_string()
}
