//! Streamable HTTP, with every answer bounded.
//!
//! The protocol's own client reads a JSON answer into memory whatever its size; this one counts all bytes that come in
//! ([`Flow`]) and gives up on a server that sends too many. Redirects stay at the same origin, so that headers with
//! secrets go nowhere else, and no error repeats the address, which may hold one.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::time::Instant;

use super::fault::Fault;
use super::flow::{Flow, Framing, MAX_MESSAGE_BYTES, TooMuch};

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;
/// How much of an error page is repeated.
const SHOWN_CHARS: usize = 200;

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failed = StreamableHttpError<HttpError>;

/// What can go wrong beyond the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Request(String),
    #[error("it answered HTTP {status}{}{shown}", if shown.is_empty() { "" } else { ": " })]
    Status { status: u16, shown: String },
    #[error("it wants to know who we are (HTTP {0}); give it a header in its settings")]
    Unauthorized(u16),
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        HttpError::Request(text)
    }
}

impl From<HttpError> for Failed {
    fn from(error: HttpError) -> Self {
        StreamableHttpError::Client(error)
    }
}

/// Our client.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: Client,
    /// What all answers of this server together may be.
    flow: Arc<Mutex<Flow>>,
    fault: Fault,
}

impl Http {
    pub(super) fn new(fault: &Fault) -> Result<Self, HttpError> {
        // Somebody else may have chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_PATIENCE)
            .redirect(Policy::custom(redirect))
            .build()?;
        let flow = Arc::new(Mutex::new(Flow::new(Framing::Events, Instant::now())));
        Ok(Http { client, flow, fault: fault.clone() })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_MESSAGE_BYTES {
                self.fault.raise(TooMuch::Message);
                return Err(TooMuch::Message.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn events(&self, response: Response) -> Events {
        SseStream::from_bytes_stream(self.counted(response)).boxed()
    }

    fn counted(&self, response: Response) -> impl Stream<Item = Result<bytes::Bytes, HttpError>> + use<> {
        let (flow, fault) = (Arc::clone(&self.flow), self.fault.clone());
        response.bytes_stream().map(move |chunk| {
            let chunk = chunk?;
            let taken = flow.lock().unwrap_or_else(PoisonError::into_inner).take(&chunk, Instant::now());
            taken.inspect_err(|too_much| fault.raise(too_much))?;
            Ok(chunk)
        })
    }
}

/// The address of a redirect may be followed if it is another path of the same server, with the request unchanged.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    let whole = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if same && whole && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn with_headers(mut request: RequestBuilder, session: Option<&str>, headers: Headers) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match session {
        Some(session) => request.header(HEADER_SESSION_ID, session),
        None => request,
    }
}

fn is(response: &Response, kind: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).map_or(b"".as_slice(), HeaderValue::as_bytes);
    given.get(..kind.len()).is_some_and(|given| given.eq_ignore_ascii_case(kind.as_bytes()))
}

fn status_error(status: StatusCode, body: &[u8]) -> HttpError {
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return HttpError::Unauthorized(status.as_u16());
    }
    let shown = String::from_utf8_lossy(body).trim().chars().take(SHOWN_CHARS).collect();
    HttpError::Status { status: status.as_u16(), shown }
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let request = self
            .client
            .post(&*uri)
            .header(CONTENT_TYPE, JSON_MIME_TYPE)
            .header(ACCEPT, format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}"));
        let request = with_headers(request, session.as_deref(), headers).body(serde_json::to_vec(&message)?);
        let response = request.send().await.map_err(HttpError::from)?;
        let status = response.status();
        let awaits_reply = matches!(message, JsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let new_session = response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok());
        let new_session = new_session.map(str::to_owned);
        if status.is_success() && is(&response, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), new_session));
        }
        let is_json = is(&response, JSON_MIME_TYPE);
        let body = self.body(response).await?;
        let answer = is_json.then(|| serde_json::from_slice::<ServerJsonRpcMessage>(&body));
        match answer {
            // A failure may carry an answer of the protocol, which says more than its number.
            Some(Ok(answer)) if status.is_success() || matches!(answer, JsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(answer, new_session))
            }
            _ if status.is_success() && !awaits_reply => Ok(StreamableHttpPostResponse::Accepted),
            Some(Err(error)) if status.is_success() => Err(error.into()),
            _ => Err(status_error(status, &body).into()),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        let request = with_headers(self.client.delete(&*uri), Some(&session), headers);
        // Not every server can forget on request; none of their answers matters.
        request.send().await.map_err(HttpError::from)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let mut request = self.client.get(&*uri).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(last_event) = last_event {
            request = request.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let request = with_headers(request, session.as_deref(), headers);
        let response = request.send().await.map_err(HttpError::from)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(status_error(status, b"").into()),
            _ if !is(&response, EVENT_STREAM_MIME_TYPE) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Ok(self.events(response)),
        }
    }
}
