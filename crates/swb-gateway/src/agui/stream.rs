//! `GET /agui/stream`: everything that happens, under its names for front ends, outside runs and from any place on.
//!
//! Each event is `id: <seq>` and one line of data. A client that comes back with the last id goes on behind it; one that
//! is too slow loses a range, is told which, and goes on: what it holds here is a number.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use swb_bus::topics::{Delivery, Subscription};
use swb_proto::events::SubscribeParams;
use swb_proto::{BusError, TopicGlob};
use tokio::sync::watch;
use tokio::time::sleep;

use super::ui;
use crate::failure::Failure;
use crate::messages::Query;
use crate::routes::App;
use crate::sse::{self, KEEP_ALIVE, Seat};
use crate::visit::Visit;

/// What has a name for front ends.
const TOPICS: [&str; 10] = [
    "agent.run.*",
    "approval.*",
    "terminal.*",
    "session.*",
    "renderer.*",
    "share.*",
    "workspace.*",
    "project.*",
    "bus.ready",
    "bus.stopping",
];
/// What is ready is sent together up to this.
const CHUNK: usize = 64 * 1024;

/// `GET /agui/stream`.
pub(crate) async fn stream_ui(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let topics = TOPICS.iter().filter_map(|glob| TopicGlob::try_from((*glob).to_owned()).ok()).collect();
    let params = SubscribeParams { topics, after: cursor(&query, &headers)? };
    let seat = sse::seat(&app)?;
    let subscribe = async {
        let subscribed = app.bus.topics().subscribe(params.topics.clone(), params.after);
        subscribed.map_err(|error| Failure::from(BusError::from(error)))
    };
    let events = visit.pass_about("events/subscribe", &params, subscribe).await?;
    let reader = Reader { events, heartbeat: app.keep_alive(), stopping: app.stopping.clone(), _seat: seat };
    Ok(sse::response(stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((chunk, reader))
    })))
}

/// A browser that reconnects sends its header beside the first query, and means the header.
fn cursor(query: &Query, headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let header =
        headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).trim().to_owned());
    let given = header.filter(|id| !id.is_empty()).or_else(|| query.get("after").map(str::to_owned));
    let number = given.map(|given| given.parse()).transpose();
    number.map_err(|_| Failure::bad_request("the cursor must be the number of an event"))
}

/// A stream as it is being read. Chunks are made when the client can take one, so a slow one holds nothing.
struct Reader {
    events: Subscription,
    heartbeat: Duration,
    stopping: watch::Receiver<bool>,
    _seat: Seat,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let stopping = &mut self.stopping;
            let stopped = async { drop(stopping.wait_for(|stopping| *stopping).await) };
            let delivery = tokio::select! {
                delivery = self.events.next() => delivery?,
                () = stopped => return None,
                () = sleep(self.heartbeat) => return Some(KEEP_ALIVE),
            };
            let mut chunk = Vec::new();
            write(&mut chunk, &delivery);
            while chunk.len() < CHUNK
                && let Some(Some(delivery)) = self.events.next().now_or_never()
            {
                write(&mut chunk, &delivery);
            }
            if !chunk.is_empty() {
                return Some(chunk.into());
            }
        }
    }
}

fn write(out: &mut Vec<u8>, delivery: &Delivery) {
    let name = match delivery {
        Delivery::Event(event) => ui::name_of(event.envelope()),
        Delivery::Gap(_) => Some(ui::SYSTEM_NOTICE),
    };
    let Some(name) = name else { return };
    out.extend_from_slice(format!("id: {}\ndata: ", delivery.seq()).as_bytes());
    match delivery {
        Delivery::Event(event) => ui::write(out, name, event.envelope()),
        Delivery::Gap(gap) => ui::write_gap(out, gap),
    }
    out.extend_from_slice(b"\n\n");
}
