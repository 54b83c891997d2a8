//! The table of routes, and what they share.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;
use swb_bus::Bus;
use tokio::sync::watch;

use crate::agui::{Threads, post_run, stream_ui};
use crate::buses::Buses;
use crate::failure::{ErrorCode, Failure};
use crate::messages::{list_path, list_v1, post_path, post_v1};
use crate::metrics::{self, Figures, Metrics};
use crate::stream::{Feeds, stream_path, stream_v1};
use crate::{json, openapi};

/// Paths that anybody may ask for, because their answers say nothing.
pub(crate) const OPEN: [&str; 3] = ["/healthz", "/api/v1/health", "/api/v1/version"];

/// What handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) buses: Buses,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) metrics: Arc<Metrics>,
    /// What else there is to say on the page of figures.
    pub(crate) figures: Option<Arc<dyn Figures>>,
    pub(crate) heartbeat: Duration,
    pub(crate) most_streams: i64,
    pub(crate) bus: Arc<Bus>,
    pub(crate) threads: Threads,
    /// True once the server is to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    /// How long a stream for front ends may be quiet. What lies between them and us may cut a line after half a minute.
    pub(crate) fn keep_alive(&self) -> Duration {
        self.heartbeat.min(Duration::from_secs(15))
    }
}

/// Whether the server is well.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always `ok`: a server that is not does not answer.
    status: &'static str,
}

/// Which version the server is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// The version.
    version: &'static str,
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/healthz", get(health))
        .route("/metrics", get(show_metrics))
        .route("/api/openapi.json", get(document))
        .route("/agui", post(post_run))
        .route("/agui/stream", get(stream_ui))
        .route("/api/v1/health", get(health))
        .route("/api/v1/version", get(version))
        .route("/api/v1/messages", get(list_v1).post(post_v1))
        .route("/api/v1/messages/stream", get(stream_v1))
        .route("/api/projects/{project}/messages", get(list_path).post(post_path))
        .route("/api/projects/{project}/messages/stream", get(stream_path))
        .route("/api/projects/{project}/tasks/{task}/messages", get(list_path).post(post_path))
        .route("/api/projects/{project}/tasks/{task}/messages/stream", get(stream_path))
        .fallback(async || Failure::not_found())
        .method_not_allowed_fallback(async || method_not_allowed())
        .with_state(app)
}

/// Whether a path is that of commands, which pass the gate.
pub(crate) fn is_command(path: &str) -> bool {
    path.ends_with("/messages")
        || path.ends_with("/messages/stream")
        || path == "/agui"
        || path == "/agui/stream"
}

/// The path is right, the method is not.
pub(crate) fn method_not_allowed() -> Failure {
    Failure::new(ErrorCode::MethodNotAllowed, "method not allowed")
}

async fn home() -> Html<&'static str> {
    Html(concat!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Switchboard</title>",
        "<h1>Switchboard ",
        env!("CARGO_PKG_VERSION"),
        "</h1>",
        "<p>This browser is signed in. <a href=\"/api/openapi.json\">The interface</a> is all there is to see yet.</p>\n",
    ))
}

async fn health() -> Response {
    answer(&Health { status: "ok" })
}

async fn version() -> Response {
    answer(&Version { version: env!("CARGO_PKG_VERSION") })
}

async fn show_metrics(State(app): State<Arc<App>>) -> Response {
    let page = tokio::task::spawn_blocking(move || {
        let mut families = app.metrics.families(app.feeds.count());
        families.extend(app.figures.as_ref().map(|house| house.figures()).unwrap_or_default());
        metrics::page(&families)
    });
    let Ok(page) = page.await else {
        return Failure::new(ErrorCode::Internal, "the figures cannot be told").into_response();
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}

async fn document() -> Response {
    ([(header::CONTENT_TYPE, json::CONTENT_TYPE)], openapi::text()).into_response()
}

fn answer(value: &impl Serialize) -> Response {
    ([(header::CONTENT_TYPE, json::CONTENT_TYPE)], json::line(value)).into_response()
}
