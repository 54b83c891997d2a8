//! What went wrong at a provider, in our words, and whether it is worth another try.
//!
//! A provider's own words are quoted, but cut, on one line, and without anything that is or looks like a key.

use std::time::{Duration, SystemTime};

use genai::webc;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::model::ModelError;
use crate::model::provider::{Access, Provider};

/// How much of a provider's words is quoted.
const QUOTED: usize = 400;

/// One failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether the same call may succeed later.
    pub(super) passing: bool,
    /// How long the provider wants us to wait.
    pub(super) wait: Option<Duration>,
}

impl Failure {
    pub(super) fn lasting(error: ModelError) -> Self {
        Failure { error, passing: false, wait: None }
    }

    pub(super) fn passing(error: ModelError) -> Self {
        Failure { error, passing: true, wait: None }
    }

    /// What an error of the library means.
    pub(super) fn of(provider: &Provider, error: &genai::Error) -> Self {
        use genai::Error;
        match error {
            Error::HttpError { status, body, headers, .. } => refused(provider, *status, body, headers),
            Error::WebStream { error, .. } => broken_stream(provider, error.as_ref()),
            Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    webc::Error::ResponseFailedStatus { status, body, headers } => {
                        refused(provider, *status, body, headers)
                    }
                    webc::Error::Reqwest(error) => unreachable(provider, error),
                    other => malformed(provider, &other.to_string()),
                }
            }
            Error::ChatResponse { body, .. } => told_in_stream(provider, body),
            Error::StreamParse { serde_error, .. } => malformed(provider, &serde_error.to_string()),
            other => malformed(provider, &other.to_string()),
        }
    }
}

pub(super) fn refused(provider: &Provider, status: StatusCode, body: &str, headers: &HeaderMap) -> Failure {
    let said = serde_json::from_str(body).ok().as_ref().and_then(message);
    let message = quote(provider, said.as_deref().unwrap_or(body));
    if is_too_long(status, body) {
        return Failure::lasting(ModelError::TooLong { message });
    }
    let passing = matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504 | 529);
    let passing = match headers.get("x-should-retry").map(reqwest::header::HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => passing,
    };
    let hint = match status.as_u16() {
        401 | 403 => match &provider.access {
            Access::Key(_) => " (is the key right?)",
            Access::Open | Access::Missing(_) => " (it seems to want a key)",
        },
        404 => " (is there such a model?)",
        _ => "",
    };
    let status = status.as_u16();
    let error =
        ModelError::Refused { provider: provider.name.clone(), status, message: format!("{message}{hint}") };
    Failure { error, passing, wait: passing.then(|| retry_after(headers, SystemTime::now())).flatten() }
}

/// An error of the connection, or of what came over it.
fn broken_stream(provider: &Provider, error: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
    if let Some(error) = error.downcast_ref::<genai::Error>() {
        return Failure::of(provider, error);
    }
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return unreachable(provider, error);
    }
    if error.is::<std::string::FromUtf8Error>() || error.is::<std::str::Utf8Error>() {
        return malformed(provider, "not UTF-8");
    }
    malformed(provider, &error.to_string())
}

pub(super) fn unreachable(provider: &Provider, error: &reqwest::Error) -> Failure {
    // The innermost cause is the one that says something.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let message = quote(provider, &cause.to_string());
    if error.is_connect() || error.is_timeout() {
        let message = format!("cannot connect to {}: {message}", provider.base_url);
        return Failure::passing(ModelError::Unreachable { provider: provider.name.clone(), message });
    }
    if error.is_builder() || error.is_redirect() {
        return Failure::lasting(ModelError::Unreachable { provider: provider.name.clone(), message });
    }
    let message = format!("the connection broke: {message}");
    Failure::passing(ModelError::Unreachable { provider: provider.name.clone(), message })
}

/// An error that came where a piece of the answer should have been.
pub(super) fn told_in_stream(provider: &Provider, body: &Value) -> Failure {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = [text("/error/type"), text("/type"), text("/error/status"), text("/code")].join(" ");
    let code = body.pointer("/error/code").or_else(|| body.get("code")).and_then(Value::as_u64);
    let words = message(body).unwrap_or_else(|| body.to_string());
    let message = quote(provider, &words);
    if is_too_long(StatusCode::BAD_REQUEST, &body.to_string()) {
        return Failure::lasting(ModelError::TooLong { message });
    }
    let passing =
        ["overloaded", "rate_limit", "api_error", "server_error", "timeout", "UNAVAILABLE", "INTERNAL"]
            .iter()
            .any(|word| kind.contains(word))
            || code.is_some_and(|code| matches!(code, 429 | 500 | 502 | 503 | 529));
    let error = ModelError::Broken { provider: provider.name.clone(), message };
    Failure { error, passing, wait: None }
}

pub(super) fn malformed(provider: &Provider, message: &str) -> Failure {
    let message = quote(provider, message);
    Failure::lasting(ModelError::Malformed { provider: provider.name.clone(), message })
}

/// What a provider says, wherever it says it.
fn message(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    ["/error/message", "/message", "/error/error/message", "/detail", "/error"]
        .iter()
        .find_map(|pointer| body.pointer(pointer).and_then(Value::as_str))
        .map(str::to_owned)
}

/// Whether this is the one complaint that a shorter conversation would answer. Every provider has its own words.
fn is_too_long(status: StatusCode, body: &str) -> bool {
    let words = [
        "context_length_exceeded",
        "prompt is too long",
        "maximum context length",
        "context window",
        "context size",
        "exceeds the maximum number of tokens",
        "input length and `max_tokens` exceed",
    ];
    let body = body.to_lowercase();
    matches!(status.as_u16(), 400 | 413 | 422 | 500) && words.iter().any(|word| body.contains(word))
}

/// How long the provider wants us to wait.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1e3).ok();
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let when = httpdate::parse_http_date(text).ok()?;
    Some(when.duration_since(now).unwrap_or_default())
}

/// The provider's words, fit to be shown.
fn quote(provider: &Provider, words: &str) -> String {
    let mut words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(key) = provider.key() {
        words = words.replace(key.expose(), "[key]");
    }
    let mut words = swb_rules::redact::redact(&words).text;
    if let Some((cut, _)) = words.char_indices().nth(QUOTED) {
        words.truncate(cut);
        words.push('…');
    }
    if words.is_empty() { "no reason given".to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::{Dialect, Key};
    use serde_json::json;

    fn provider() -> Provider {
        Provider {
            name: "mine".into(),
            dialect: Dialect::OpenAi,
            base_url: "http://box/v1/".into(),
            access: Access::Key(Key::new("top-secret-key-1").unwrap()),
            local: true,
        }
    }

    fn http(status: u16, body: &str, headers: &[(&'static str, &str)]) -> Failure {
        let headers = headers.iter().map(|(name, value)| {
            (
                reqwest::header::HeaderName::from_static(name),
                reqwest::header::HeaderValue::from_str(value).unwrap(),
            )
        });
        let error = genai::Error::HttpError {
            status: StatusCode::from_u16(status).unwrap(),
            canonical_reason: String::new(),
            body: body.to_owned(),
            headers: Box::new(headers.collect()),
        };
        Failure::of(&provider(), &error)
    }

    #[test]
    fn a_refusal_quotes_the_provider_without_the_key() {
        let other = format!("ghp_{}", "a1B2".repeat(9));
        let body = json!({ "error": { "message": format!("bad key top-secret-key-1\nand {other}") } });
        let failure = http(401, &body.to_string(), &[]);
        let text = failure.error.to_string();
        assert!(
            text.contains("mine") && text.contains("401") && text.contains("bad key [key] and"),
            "{text}"
        );
        assert!(!text.contains("top-secret") && !text.contains(&other), "{text}");
        assert!(!failure.passing);
        assert!(http(500, &"x".repeat(100_000), &[]).error.to_string().len() < 1000);
    }

    #[test]
    fn what_passes_is_told_from_what_lasts() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            assert!(http(status, "", &[]).passing, "{status}");
        }
        for status in [301, 400, 401, 403, 404, 422] {
            assert!(!http(status, "", &[]).passing, "{status}");
        }
        assert!(!http(429, "", &[("x-should-retry", "false")]).passing);
        assert!(http(409, "", &[("x-should-retry", "true")]).passing);
    }

    #[test]
    fn the_wait_is_read_in_all_its_forms() {
        assert_eq!(http(429, "", &[("retry-after", "7")]).wait, Some(Duration::from_secs(7)));
        assert_eq!(http(429, "", &[("retry-after-ms", "250")]).wait, Some(Duration::from_millis(250)));
        assert_eq!(http(429, "", &[("retry-after", "-1")]).wait, None);
        assert_eq!(http(429, "", &[("retry-after", "soon")]).wait, None);
        let headers = HeaderMap::from_iter([(
            reqwest::header::RETRY_AFTER,
            reqwest::header::HeaderValue::from_static("Thu, 01 Jan 1970 00:01:00 GMT"),
        )]);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(retry_after(&headers, at(45)), Some(Duration::from_secs(15)));
        assert_eq!(retry_after(&headers, at(90)), Some(Duration::ZERO));
    }

    #[test]
    fn a_conversation_that_is_too_long_is_known_in_all_dialects() {
        for (status, body) in [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"The input token count exceeds the maximum number of tokens allowed"}}"#,
            ),
            (400, r#"{"error":{"message":"the request exceeds the available context size"}}"#),
            (500, r#"{"error":{"message":"Requested tokens (2100) exceed context window of 2048"}}"#),
        ] {
            assert!(matches!(http(status, body, &[]).error, ModelError::TooLong { .. }), "{body}");
        }
        assert!(!matches!(
            http(400, r#"{"error":{"message":"bad tool"}}"#, &[]).error,
            ModelError::TooLong { .. }
        ));
    }

    #[test]
    fn an_error_inside_a_stream_says_whether_it_passes() {
        let overloaded =
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        let failure = told_in_stream(&provider(), &overloaded);
        assert!(failure.passing && failure.error.to_string().contains("Overloaded"), "{failure:?}");
        let bad = json!({ "message": "bad", "type": "invalid_request_error" });
        assert!(!told_in_stream(&provider(), &bad).passing);
        assert!(told_in_stream(&provider(), &json!({ "error": { "code": 503, "message": "x" } })).passing);
    }
}
