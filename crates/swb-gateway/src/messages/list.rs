//! Listing. Messages go from the file's bytes into the answer without a copy in between.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use swb_journal::message_bus::{MessageBus, ReadError};
use swb_proto::message::MessageItem;

use super::query::Query;
use super::scope::{ProjectPath, Scope};
use crate::failure::Failure;
use crate::json;
use crate::routes::App;
use crate::visit::Visit;

/// The most that a limit can be.
const MOST_MESSAGES: usize = 5000;

/// `GET /api/v1/messages`.
pub(crate) async fn list_v1(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    query: Query,
) -> Result<Response, Failure> {
    let scope = Scope::from_query(&query)?;
    visit.pass("message/read", &scope, None, list(app, scope.clone(), &query)).await
}

/// `GET /api/projects/{project}[/tasks/{task}]/messages`.
pub(crate) async fn list_path(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    ProjectPath(scope): ProjectPath,
    query: Query,
) -> Result<Response, Failure> {
    visit.pass("message/read", &scope, None, list(app, scope.clone(), &query)).await
}

async fn list(app: Arc<App>, scope: Scope, query: &Query) -> Result<Response, Failure> {
    // Both doors know both words for the cursor.
    let since = query.get("since").or_else(|| query.get("after")).unwrap_or_default().to_owned();
    let limit = query.get("limit").map_or(0, limit);
    let body = tokio::task::spawn_blocking(move || {
        let bus = app.buses.get(&scope)?;
        Ok::<_, Failure>(render(&bus, &since, limit)?)
    })
    .await??;
    Ok(([(header::CONTENT_TYPE, json::CONTENT_TYPE)], body).into_response())
}

/// Anything that is no positive number means "no limit"; a number too large to be one means the most.
fn limit(text: &str) -> usize {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    digits.parse::<usize>().unwrap_or(MOST_MESSAGES).min(MOST_MESSAGES)
}

/// The latest `limit` messages after the cursor, or all of them.
fn render(bus: &MessageBus, since: &str, limit: usize) -> Result<Vec<u8>, ReadError> {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"messages\":[");
    let empty = out.len();
    let mut push = |item: &MessageItem<'_>| {
        if out.len() > empty {
            out.push(b',');
        }
        json::write(&mut out, item);
    };
    if limit == 0 {
        bus.visit(Some(since), |record| {
            push(&MessageItem::from(&record));
            ControlFlow::Continue(())
        })?;
    } else {
        bus.read_since_limited(since, limit)?.iter().for_each(|message| push(&MessageItem::from(message)));
    }
    out.extend_from_slice(b"]}\n");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::limit;

    #[test]
    fn limits_are_read_as_clients_expect() {
        let read: Vec<_> =
            ["7", "+7", "0", "-3", "x", "", "5001", "99999999999999999999"].into_iter().map(limit).collect();
        assert_eq!(read, [7, 7, 0, 0, 0, 0, 5000, 5000]);
    }
}
