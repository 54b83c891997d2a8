//! The request for a stream: where to begin, and the headers that are sent at once.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use swb_journal::message_bus::{FollowFrom, MessageBus};

use super::feed::{Feed, FeedError};
use super::history::History;
use super::reader::{Begin, Reader};
use crate::failure::{ErrorCode, Failure};
use crate::messages::{ProjectPath, Query, Scope};
use crate::routes::App;
use crate::sse;
use crate::visit::Visit;

/// `GET /api/v1/messages/stream`.
pub(crate) async fn stream_v1(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let scope = Scope::from_query(&query)?;
    visit.pass("message/read", &scope, None, respond(app, scope.clone(), &query, &headers)).await
}

/// `GET /api/projects/{project}[/tasks/{task}]/messages/stream`.
pub(crate) async fn stream_path(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    ProjectPath(scope): ProjectPath,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    visit.pass("message/read", &scope, None, respond(app, scope.clone(), &query, &headers)).await
}

async fn respond(
    app: Arc<App>,
    scope: Scope,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let from = begin(query, headers)?;
    let counted = sse::seat(&app)?;
    let (heartbeat, metrics) = (app.heartbeat, Arc::clone(&app.metrics));
    let opened = tokio::task::spawn_blocking(move || {
        let bus = app.buses.get(&scope)?;
        let Some(feed) = app.feeds.get(&bus, &app.metrics)? else { return Ok(None) };
        let begin = open(&bus, &feed, &from)?;
        Ok::<_, Failure>(Some((bus, feed, begin)))
    });
    let Some((bus, feed, begin)) = opened.await?? else {
        return Err(Failure::new(ErrorCode::Internal, "the server is stopping"));
    };
    let reader = Reader::new(bus, feed, begin, heartbeat, metrics);
    // The count goes with the reader: a client that leaves drops both.
    let chunks = stream::unfold((reader, counted), |(mut reader, counted)| async move {
        let chunk = reader.next().await?;
        Some((chunk, (reader, counted)))
    });
    Ok(sse::response(chunks))
}

/// Where the client wants to begin. A browser that reconnects sends its header beside the first query, and means the header.
fn begin(query: &Query, headers: &HeaderMap) -> Result<FollowFrom, Failure> {
    let last =
        headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).trim().to_owned());
    if let Some(id) = last.filter(|id| !id.is_empty()) {
        return Ok(FollowFrom::After(id));
    }
    if let Some(id) = query.get("after") {
        return Ok(FollowFrom::After(id.to_owned()));
    }
    match query.get("tail").map(str::parse) {
        None => Ok(FollowFrom::Beginning),
        Some(Ok(0)) => Ok(FollowFrom::End),
        Some(Ok(count)) => Ok(FollowFrom::Last(count)),
        Some(Err(_)) => Err(Failure::bad_request("tail must be a whole number, 0 or more")),
    }
}

/// In the ring if it has the place, else in the file.
fn open(bus: &MessageBus, feed: &Feed, from: &FollowFrom) -> Result<Begin, FeedError> {
    let line = |id: &str| Bytes::from(format!("id: {id}\n"));
    match from {
        FollowFrom::End => {
            // Noted before the look, so that nothing posted in between is left out of both.
            let next = feed.head();
            let last = bus.read_last(1)?.first().map(|message| line(&message.id)).unwrap_or_default();
            Ok(Begin::Ring { next, last })
        }
        FollowFrom::After(id) if let Some(next) = feed.after_id(id) => {
            Ok(Begin::Ring { next, last: line(id) })
        }
        _ => {
            let (history, known) = History::open(bus, from)?;
            let last = match from {
                FollowFrom::After(id) if known => line(id),
                _ => Bytes::new(),
            };
            Ok(Begin::File { history: Box::new(history), last })
        }
    }
}

impl From<FeedError> for Failure {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::Read(error) => error.into(),
            other @ FeedError::Thread(_) => Failure::internal("the message bus cannot be followed", &other),
        }
    }
}
