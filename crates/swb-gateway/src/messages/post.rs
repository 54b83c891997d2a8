//! Posting: one message, one answer.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use swb_journal::message_bus::{Draft, IdempotencyKey, moment};
use swb_proto::message::Moment;

use super::draft;
use super::scope::{ProjectPath, Scope};
use crate::failure::Failure;
use crate::json;
use crate::routes::App;
use crate::visit::Visit;

/// What a poster is told.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Posted<'a> {
    /// The message's id.
    msg_id: &'a str,
    /// When it was posted.
    timestamp: Moment<'a>,
}

/// `POST /api/v1/messages`.
pub(crate) async fn post_v1(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    once: Once,
    body: Body,
) -> Result<Response, Failure> {
    let (scope, draft) = draft::for_v1(&draft::read_message(body).await?)?;
    post(&app, &visit, &scope, once.of(draft)?).await
}

/// `POST /api/projects/{project}[/tasks/{task}]/messages`.
pub(crate) async fn post_path(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    ProjectPath(scope): ProjectPath,
    once: Once,
    body: Body,
) -> Result<Response, Failure> {
    let draft = draft::for_path(&draft::read_message(body).await?, &scope)?;
    post(&app, &visit, &scope, once.of(draft)?).await
}

/// The header that lets a message be posted only once, however often it is sent. It is judged when the body has been
/// read: a client that is still sending would not hear what is wrong.
#[derive(Debug)]
pub(crate) struct Once(Option<HeaderValue>);

impl Once {
    fn of(self, draft: Draft) -> Result<Draft, Failure> {
        let Some(key) = self.0 else { return Ok(draft) };
        let key = IdempotencyKey::new(key.to_str().unwrap_or_default().trim());
        let key = key.map_err(|error| Failure::bad_request(error.to_string()))?;
        Ok(Draft { idempotency_key: Some(key), ..draft })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Once(parts.headers.get("idempotency-key").cloned()))
    }
}

async fn post(app: &App, visit: &Visit, scope: &Scope, draft: Draft) -> Result<Response, Failure> {
    let kind = draft.kind.clone();
    let post = app.buses.append(scope, draft, visit.actor().clone());
    let appended = visit.pass("message/post", scope, Some(&kind), post).await?;
    let body =
        json::line(&Posted { msg_id: appended.id.as_str(), timestamp: moment(appended.timestamp.as_ref()) });
    Ok((StatusCode::CREATED, [(header::CONTENT_TYPE, json::CONTENT_TYPE)], body).into_response())
}
