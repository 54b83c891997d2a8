//! The record of a call: what was called, with what, for whom, for how long, and what became of it.
//!
//! Arguments leave this process redacted and shortened, and as a keyed hash of all of them.

use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::{Map, Value};
use swb_proto::Timestamp;
use swb_proto::agent::{McpCall, McpCallError, McpOutcome};
use swb_proto::error::ErrorCode;
use swb_rules::redact::{redact, redact_json};
use tokio::time::Instant;

use super::key::{self, Key};
use crate::tools::Caller;

/// What is shown of one text among the arguments.
const SHOWN_CHARS: usize = 1000;
/// What is shown of the arguments together.
const SHOWN_BYTES: usize = 16 * 1024;

/// The key of this installation, once it is needed.
#[derive(Debug)]
pub(super) struct Records {
    key_file: std::path::PathBuf,
    key: OnceLock<Key>,
}

impl Records {
    pub(super) fn new(key_file: std::path::PathBuf) -> Self {
        Records { key_file, key: OnceLock::new() }
    }

    pub(super) fn hash(&self, arguments: &Value) -> String {
        let key = self.key.get_or_init(|| key::load(&self.key_file));
        let mut canonical = Vec::new();
        write_canonical(arguments, &mut canonical);
        blake3::keyed_hash(key, &canonical).to_hex().to_string()
    }
}

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Record {
    call: McpCall,
    began: Instant,
}

impl Record {
    pub(super) fn begin(
        records: &Records,
        tool: &str,
        server: &str,
        caller: &Caller,
        tool_id: &str,
        arguments: &Value,
    ) -> Self {
        let call = McpCall {
            tool: tool.to_owned(),
            server: server.to_owned(),
            tool_id: tool_id.to_owned(),
            session_id: caller.session_id.clone(),
            agents: caller.agents.clone(),
            args_hash: records.hash(arguments),
            args: shown(arguments),
            started_at: Timestamp::from_system_time(SystemTime::now()).as_str().to_owned(),
            duration_ms: 0,
            outcome: McpOutcome::Ok,
            error: None,
        };
        Record { call, began: Instant::now() }
    }

    /// The whole record, now that it is over.
    pub(crate) fn end(mut self, outcome: McpOutcome, why: Option<(String, bool)>) -> McpCall {
        self.call.duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.call.outcome = outcome;
        self.call.error = why.map(|(message, retryable)| McpCallError {
            code: match outcome {
                McpOutcome::Denied => ErrorCode::PolicyDenied,
                _ => ErrorCode::McpCallFailed,
            },
            message: cut(&redact(&message).text),
            retryable,
        });
        self.call
    }
}

fn shown(arguments: &Value) -> Value {
    let mut shown = arguments.clone();
    redact_json(&mut shown);
    shorten(&mut shown);
    let text = shown.to_string();
    if text.len() <= SHOWN_BYTES {
        return shown;
    }
    let end = text.floor_char_boundary(SHOWN_BYTES);
    Value::String(format!("{}… [{} more bytes]", &text[..end], text.len() - end))
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(text),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}… [{} more bytes]", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

/// The value with the fields of objects in the order of their names, however they came.
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            out.push(b'{');
            for (at, name) in sorted(fields).into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(Value::String(name.clone()).to_string().as_bytes());
                out.push(b':');
                write_canonical(&fields[name], out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        plain => out.extend_from_slice(plain.to_string().as_bytes()),
    }
}

fn sorted(fields: &Map<String, Value>) -> Vec<&String> {
    let mut names: Vec<_> = fields.keys().collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(arguments: &Value) -> Record {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().join("key"));
        let mode = crate::Mode::Workspace;
        let caller = Caller { session_id: "s".into(), agents: vec!["scout".into()], mode };
        Record::begin(&records, "a__b", "a", &caller, "t", arguments)
    }

    #[test]
    fn a_hash_tells_arguments_apart_and_depends_on_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().join("key"));
        let one: Value = serde_json::from_str(r#"{"a": [1, "x"], "b": {"d": null, "c": 2}}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"b": {"c": 2, "d": null}, "a": [1, "x"]}"#).unwrap();
        assert_eq!(records.hash(&one), records.hash(&same));
        assert_ne!(records.hash(&one), records.hash(&json!({ "a": [1, "x"] })));
        assert_ne!(records.hash(&json!([["a"], "b"])), records.hash(&json!([["a", "b"]])));
        assert_eq!(Records::new(dir.path().join("key")).hash(&one), records.hash(&one));
        assert_ne!(Records::new(dir.path().join("other")).hash(&one), records.hash(&one));
    }

    #[test]
    fn secrets_and_bulk_stay_at_home() {
        let arguments = json!({ "api_key": "hunter2hunter2", "text": "y".repeat(5000),
            "url": "https://u:hunter2@h/" });
        let call = record(&arguments).end(McpOutcome::Failed, Some(("password=hunter2hunter2".into(), true)));
        let text = serde_json::to_string(&call).unwrap();
        assert!(!text.contains("hunter2") && text.contains("[4000 more bytes]"), "{text}");
        assert_eq!(call.error.unwrap().code, ErrorCode::McpCallFailed);
        let many = Value::Array((0..5000).map(|number| json!(format!("number {number}"))).collect());
        let call = record(&many).end(McpOutcome::Ok, None);
        assert!(call.args.to_string().len() < SHOWN_BYTES * 2);
    }

    #[test]
    fn a_denied_call_says_so() {
        let call = record(&json!({})).end(McpOutcome::Denied, Some(("no".into(), false)));
        assert_eq!(call.error.unwrap().code, ErrorCode::PolicyDenied);
    }
}
