//! What every event stream shares: its headers, and a seat among those that may be open at once.

use std::convert::Infallible;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use crate::failure::{ErrorCode, Failure};
use crate::metrics::{Counted, Metrics};
use crate::routes::App;

/// A comment, which clients pass over: the line is alive.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// One stream more for as long as it lives.
pub(crate) type Seat = Counted<fn(&Metrics) -> &AtomicI64>;

/// A seat, if there is one.
pub(crate) fn seat(app: &App) -> Result<Seat, Failure> {
    let seat = Counted::new(&app.metrics, (|metrics| &metrics.streams) as fn(&Metrics) -> &AtomicI64);
    if app.metrics.streams.load(Ordering::Relaxed) > app.most_streams {
        return Err(Failure::new(ErrorCode::TooManyRequests, "too many streams are open"));
    }
    app.metrics.streams_opened.fetch_add(1, Ordering::Relaxed);
    Ok(seat)
}

/// The answer whose body comes piece by piece.
pub(crate) fn response(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(chunks.map(Ok::<Bytes, Infallible>))).into_response()
}
