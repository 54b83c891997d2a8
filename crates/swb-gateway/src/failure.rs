//! What a caller is told when something did not work: one envelope, a closed set of codes.
//!
//! A cause inside the house stays inside: it is logged, and the caller gets `INTERNAL` and the request's id.

use std::error::Error;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swb_journal::message_bus::{
    AppendError, AppendErrorKind, OpenError, OpenErrorKind, ReadError, ReadErrorKind,
};

use crate::json;

/// The envelope of every error but a missing token.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong.
    error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ErrorDetail {
    /// For programs.
    code: ErrorCode,
    /// For people.
    message: String,
}

/// For programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ErrorCode {
    /// The request makes no sense.
    BadRequest,
    /// There is no such thing.
    NotFound,
    /// The path is right, the method is not.
    MethodNotAllowed,
    /// It is there, and not for this caller.
    Forbidden,
    /// It does not fit how things stand.
    Conflict,
    /// Too many streams, or too many posts that wait.
    TooManyRequests,
    /// The server is stopping.
    Unavailable,
    /// Something inside.
    Internal,
}

impl ErrorCode {
    fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A request that did not work.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    code: ErrorCode,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    pub(crate) fn is_internal(&self) -> bool {
        self.code == ErrorCode::Internal
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "not found")
    }

    /// Logs the cause and hides it.
    pub(crate) fn internal(what: &'static str, cause: &dyn Error) -> Self {
        let mut causes = cause.to_string();
        let mut next = cause.source();
        while let Some(source) = next {
            causes = format!("{causes}: {source}");
            next = source.source();
        }
        tracing::warn!(error = causes, "{what}");
        Self::new(ErrorCode::Internal, what)
    }

    /// A link, a FIFO or a folder where a bus should be is refused; everything else is the house's own trouble.
    fn opening(error: &OpenError) -> Self {
        match error.kind {
            OpenErrorKind::Symlink => {
                Self::forbidden("the path escapes the configured root: it is a symlink")
            }
            OpenErrorKind::NotRegular => Self::forbidden("the message bus is not a regular file"),
            OpenErrorKind::NotAFolder => Self::forbidden("the project or task is not a folder"),
            _ => Self::internal("the message bus cannot be opened", error),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match &error.kind {
            ReadErrorKind::UnknownCursor { .. } => Self::new(ErrorCode::NotFound, "message id not found"),
            ReadErrorKind::Open(open) => Self::opening(open),
            _ => Self::internal("the message bus cannot be read", &error),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        match &error.kind {
            AppendErrorKind::Blank { .. }
            | AppendErrorKind::ReservedMeta { .. }
            | AppendErrorKind::RepeatedMeta { .. } => Self::bad_request(error.kind.to_string()),
            AppendErrorKind::Open(open) => Self::opening(open),
            _ => Self::internal("the message cannot be appended", &error),
        }
    }
}

impl From<tokio::task::JoinError> for Failure {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::internal("the request did not finish", &error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = json::line(&ErrorBody { error: ErrorDetail { code: self.code, message: self.message } });
        (status, [(header::CONTENT_TYPE, json::CONTENT_TYPE)], body).into_response()
    }
}

/// The answer to a request without a valid token. Its envelope differs from the others because clients know it so.
pub(crate) fn unauthorized() -> Response {
    let headers = [
        (header::CONTENT_TYPE, json::CONTENT_TYPE),
        (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"switchboard\"")),
    ];
    let body = r#"{"error":"unauthorized","message":"valid API key required"}"#;
    (StatusCode::UNAUTHORIZED, headers, body).into_response()
}
