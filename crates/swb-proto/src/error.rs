//! Errors on the bus and on the wire, and the one table that relates their numbers to their names.
//!
//! A [`BusError`] is the JSON-RPC error object. The envelope dialect says the same with a name out of a short list
//! ([`ErrorCode`]), whether a retry makes sense, and a finer reason in `details.reason`. Nothing else maps one to the
//! other. `docs/errors.md` is printed from [`TABLE`] and compared in the tests.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The line is not JSON.
pub const ERR_PARSE: i32 = -32700;
/// The line is JSON but not a request.
pub const ERR_INVALID_REQUEST: i32 = -32600;
/// No handler serves the method.
pub const ERR_METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not have the method's type.
pub const ERR_INVALID_PARAMS: i32 = -32602;
/// Something broke on our side.
pub const ERR_INTERNAL: i32 = -32603;
/// A handler answered that it could not do the work.
pub const ERR_HANDLER: i32 = -32000;
/// The caller, or somebody on its behalf, cancelled the request.
pub const ERR_CANCELLED: i32 = -32001;
/// The deadline passed before the handler answered.
pub const ERR_TIMEOUT: i32 = -32002;
/// The daemon is stopping.
pub const ERR_SHUTTING_DOWN: i32 = -32003;
/// A queue or a limit is full; the same request may pass later.
pub const ERR_OVERLOADED: i32 = -32004;
/// Calls were nested too deeply.
pub const ERR_DEPTH: i32 = -32005;
/// The cursor lies beyond the newest event.
pub const ERR_CURSOR_AHEAD: i32 = -32006;
/// The actor may not do this in this scope.
pub const ERR_UNAUTHORIZED: i32 = -32010;
/// A rule said no, or nobody agreed.
pub const ERR_POLICY_DENIED: i32 = -32011;
/// There is no such session.
pub const ERR_SESSION_NOT_FOUND: i32 = -32020;
/// There is no such terminal.
pub const ERR_TERMINAL_NOT_FOUND: i32 = -32021;
/// The target renderer cannot be switched to while running.
pub const ERR_RENDERER_UNSUPPORTED: i32 = -32022;
/// The switch failed and was rolled back.
pub const ERR_RENDERER_FAILED: i32 = -32023;
/// A share could not be started.
pub const ERR_SHARE_FAILED: i32 = -32024;
/// A call to an MCP server failed.
pub const ERR_MCP_FAILED: i32 = -32025;
/// A call to an A2A agent failed.
pub const ERR_A2A_FAILED: i32 = -32026;
/// A model did not answer.
pub const ERR_MODEL_FAILED: i32 = -32027;

/// The names of seed 004, section 8, and `INTERNAL_ERROR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the wire names say it; the table below gives each its meaning")]
pub enum ErrorCode {
    InvalidRequest,
    UnauthorizedAction,
    PolicyDenied,
    SessionNotFound,
    TerminalNotFound,
    RendererSwitchUnsupported,
    RendererSwitchFailed,
    ShareStartFailed,
    McpCallFailed,
    #[serde(rename = "A2A_CALL_FAILED")]
    A2aCallFailed,
    InternalError,
}

/// One row of the table: a number, the name it has in an envelope, and what it means.
#[derive(Debug, Clone, Copy)]
pub struct CodeRow {
    /// The JSON-RPC number.
    pub code: i32,
    /// The envelope's name.
    pub name: ErrorCode,
    /// `details.reason` when the error itself gives no finer one.
    pub reason: &'static str,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// For people.
    pub meaning: &'static str,
}

macro_rules! table {
    ($($code:ident $name:ident $reason:literal $retryable:literal $meaning:literal;)*) => {
        /// Every number that leaves the bus.
        pub const TABLE: &[CodeRow] = &[$(CodeRow {
            code: $code, name: ErrorCode::$name, reason: $reason, retryable: $retryable, meaning: $meaning,
        }),*];
    };
}

table! {
    ERR_PARSE InvalidRequest "MALFORMED_ENVELOPE" false "the line is not JSON, or not UTF-8";
    ERR_INVALID_REQUEST InvalidRequest "VALIDATION_ERROR" false "the line is JSON but not a well-formed request";
    ERR_METHOD_NOT_FOUND InvalidRequest "METHOD_NOT_FOUND" false "nobody serves this method";
    ERR_INVALID_PARAMS InvalidRequest "INVALID_PARAMS" false "the parameters do not have the type of the method";
    ERR_INTERNAL InternalError "INTERNAL" false "something broke on our side; the log has the rest";
    ERR_HANDLER InternalError "HANDLER_ERROR" false "the handler could not do the work";
    ERR_CANCELLED InvalidRequest "CANCELLED" false "the request was cancelled";
    ERR_TIMEOUT InternalError "TIMEOUT" true "the deadline passed before there was an answer";
    ERR_SHUTTING_DOWN InternalError "SHUTTING_DOWN" true "the daemon is stopping; connect again";
    ERR_OVERLOADED InternalError "OVERLOADED" true "a limit is reached; try again a little later";
    ERR_DEPTH InternalError "DEPTH_EXCEEDED" false "calls were nested too deeply";
    ERR_CURSOR_AHEAD InvalidRequest "CURSOR_AHEAD" false "the cursor lies beyond the newest event";
    ERR_UNAUTHORIZED UnauthorizedAction "UNAUTHORIZED" false "the actor may not do this here";
    ERR_POLICY_DENIED PolicyDenied "POLICY_DENIED" false "a rule forbids it, or nobody agreed in time";
    ERR_SESSION_NOT_FOUND SessionNotFound "SESSION_NOT_FOUND" false "there is no such session";
    ERR_TERMINAL_NOT_FOUND TerminalNotFound "TERMINAL_NOT_FOUND" false "there is no such terminal";
    ERR_RENDERER_UNSUPPORTED RendererSwitchUnsupported "RENDERER_SWITCH_UNSUPPORTED" true "the renderer cannot be switched while running";
    ERR_RENDERER_FAILED RendererSwitchFailed "RENDERER_SWITCH_FAILED" false "the switch failed and was rolled back";
    ERR_SHARE_FAILED ShareStartFailed "SHARE_START_FAILED" false "the share could not be started";
    ERR_MCP_FAILED McpCallFailed "MCP_CALL_FAILED" true "a call to an MCP server failed";
    ERR_A2A_FAILED A2aCallFailed "A2A_CALL_FAILED" true "a call to an A2A agent failed";
    ERR_MODEL_FAILED InternalError "MODEL_FAILED" true "the model did not answer; the reason says why";
}

/// The row of `code`. Numbers of others that are not in the table count as internal errors.
pub fn row(code: i32) -> &'static CodeRow {
    let internal = || TABLE.iter().find(|row| row.code == ERR_INTERNAL);
    TABLE
        .iter()
        .find(|row| row.code == code)
        .or_else(internal)
        .expect("the table has a row for internal errors")
}

/// The JSON-RPC error object: what a request is answered with when it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message} ({code})")]
pub struct BusError {
    /// A number of [`TABLE`].
    pub code: i32,
    /// One sentence for people.
    pub message: String,
    /// What a program may want to know: `reason` and fields that go with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, Value>>,
}

impl BusError {
    /// An error without further data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        BusError { code, message: message.into(), data: None }
    }

    /// The same error with one more field in `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// The same error with a finer reason than its number gives.
    #[must_use]
    pub fn because(self, reason: &str) -> Self {
        self.with("reason", reason)
    }

    /// The finest reason known.
    pub fn reason(&self) -> &str {
        self.data.as_ref().and_then(|data| data.get("reason")?.as_str()).unwrap_or(row(self.code).reason)
    }

    /// Whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        row(self.code).retryable
    }
}

/// The error object of an envelope (seed 004, section 8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEnvelope {
    /// One of the documented names.
    pub code: ErrorCode,
    /// One sentence for people.
    pub message: String,
    /// Whether the same command may succeed later.
    pub retryable: bool,
    /// `reason`, and fields that go with it.
    #[serde(default)]
    pub details: Option<BTreeMap<String, Value>>,
}

impl From<BusError> for ErrorEnvelope {
    fn from(error: BusError) -> Self {
        let row = row(error.code);
        let mut details = error.data.unwrap_or_default();
        details.entry("reason".to_owned()).or_insert_with(|| row.reason.into());
        ErrorEnvelope {
            code: row.name,
            message: error.message,
            retryable: row.retryable,
            details: Some(details),
        }
    }
}

/// The table as the page `docs/errors.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Error codes\n\nPrinted from the table in `swb-proto`; `cargo xtask schema` writes it.\n\
         A JSON-RPC error carries the number, an envelope the name; both carry the reason\n\
         (`error.data.reason` where it is finer than the number, always `error.details.reason`).\n\n\
         | number | name | reason | retry | meaning |\n|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let name = serde_json::to_string(&row.name).unwrap_or_default();
        let (name, retry) = (name.trim_matches('"'), if row.retryable { "yes" } else { "no" });
        page.push_str(&format!(
            "| {} | `{name}` | `{}` | {retry} | {} |\n",
            row.code, row.reason, row.meaning
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_application_errors_stay_in_their_range() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|earlier| earlier.code != row.code), "{} twice", row.code);
            let standard = matches!(
                row.code,
                ERR_PARSE | ERR_INVALID_REQUEST | ERR_METHOD_NOT_FOUND | ERR_INVALID_PARAMS | ERR_INTERNAL
            );
            assert!(standard || (-32099..=-32000).contains(&row.code), "{}", row.code);
        }
    }

    #[test]
    fn all_ten_names_of_the_seed_and_the_eleventh_are_reachable() {
        let mut names: Vec<_> = TABLE.iter().map(|row| serde_json::to_string(&row.name).unwrap()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 11, "{names:?}");
        assert!(names.contains(&"\"A2A_CALL_FAILED\"".to_owned()));
    }

    #[test]
    fn an_envelope_error_always_has_a_reason() {
        let envelope = ErrorEnvelope::from(BusError::new(ERR_CANCELLED, "stopped"));
        assert_eq!(envelope.details.unwrap()["reason"], "CANCELLED");
        let finer = ErrorEnvelope::from(
            BusError::new(ERR_INVALID_REQUEST, "no").because("INVALID_TIMESTAMP").with("field", "ts"),
        );
        assert_eq!(finer.code, ErrorCode::InvalidRequest);
        assert_eq!(finer.details.unwrap()["reason"], "INVALID_TIMESTAMP");
    }
}
