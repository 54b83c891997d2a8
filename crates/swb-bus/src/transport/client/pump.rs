//! The task that keeps the connection: writes what callers queued, resolves replies, connects again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use swb_proto::events::EventNotification;
use swb_proto::{BusError, MAX_ENVELOPE_OVERHEAD, MAX_PAYLOAD_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use uuid::Uuid;

use super::{ConnectErrorKind, Link, write_request};
use crate::request_id;
use crate::topics::Delivery;
use crate::transport::line_buffer::{Line, LineBuffer};
use crate::transport::peer;

/// Replies may be larger than requests (pages of events, documents), but not without end.
const MAX_REPLY_BYTES: usize = 64 * (MAX_PAYLOAD_BYTES + MAX_ENVELOPE_OVERHEAD);
const READ_BYTES: usize = 16 * 1024;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Connects to a socket of the same user.
pub(super) async fn open(socket: &Path) -> Result<UnixStream, ConnectErrorKind> {
    let stream = UnixStream::connect(socket).await?;
    if peer::is_same_user(&stream)? { Ok(stream) } else { Err(ConnectErrorKind::AnotherUser) }
}

/// Runs until the last handle is gone.
pub(super) async fn run(link: Arc<Link>, mut stream: UnixStream) {
    loop {
        serve(&link, &mut stream).await;
        {
            let mut shared = link.lock();
            shared.up = false;
            shared.out.clear();
            shared.calls.fail_all();
            shared.subscriptions.disconnected();
        }
        link.connected.send_replace(false);
        link.room.notify_waiters();
        let mut pause = FIRST_PAUSE;
        stream = loop {
            if link.abandoned.load(Ordering::Acquire) {
                return;
            }
            if let Ok(stream) = open(&link.socket).await {
                break stream;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        link.introduce_again();
        link.connected.send_replace(true);
    }
}

/// Serves one connection until it breaks, or nobody holds a handle and everything is written.
async fn serve(link: &Link, stream: &mut UnixStream) {
    let mut lines = LineBuffer::new(MAX_REPLY_BYTES);
    let mut writing: Vec<u8> = Vec::new();
    let mut written = 0;
    let (mut reader, mut writer) = stream.split();
    loop {
        if written == writing.len() {
            writing.clear();
            written = 0;
            if link.collect(&mut writing) && writing.len() < READ_BYTES {
                // Other callers are about to send too: let them, and write once.
                tokio::task::yield_now().await;
                link.collect(&mut writing);
            }
            if writing.is_empty() && link.abandoned.load(Ordering::Acquire) {
                return;
            }
        }
        let idle = written == writing.len();
        let space = lines.space();
        space.reserve(READ_BYTES);
        let read = tokio::select! {
            biased;
            write = writer.write(&writing[written..]), if !idle => match write {
                Ok(n) if n > 0 => {
                    written += n;
                    continue;
                }
                _ => return,
            },
            read = reader.read_buf(space) => read,
            () = link.outgoing.notified(), if idle => continue,
        };
        if !read.is_ok_and(|n| n > 0) {
            return;
        }
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => link.take_line(line),
                Line::Oversized(_) => return,
            }
        }
    }
}

/// A line from the daemon: a reply or an event.
#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(default)]
    id: Option<Uuid>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<BusError>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl Link {
    /// Moves what callers queued into `writing`. True if it is something, and more calls than one are under way.
    fn collect(&self, writing: &mut Vec<u8>) -> bool {
        let mut shared = self.lock();
        if shared.out.is_empty() {
            return false;
        }
        if writing.is_empty() {
            std::mem::swap(&mut shared.out, writing);
        } else {
            writing.append(&mut shared.out);
        }
        let many = shared.calls.len() > 1;
        drop(shared);
        self.room.notify_waiters();
        many
    }

    fn take_line(&self, line: &[u8]) {
        let Ok(incoming) = serde_json::from_slice::<Incoming<'_>>(line) else {
            tracing::warn!("the daemon sent a line that is not a reply");
            return;
        };
        match (incoming.id, incoming.params) {
            (Some(id), _) => self.take_reply(id, incoming.result, incoming.error),
            (None, Some(params)) => self.take_event(params),
            (None, None) => tracing::warn!(error = ?incoming.error, "the daemon did not understand a line"),
        }
    }

    fn take_reply(&self, id: Uuid, result: Option<&RawValue>, error: Option<BusError>) {
        let reply = match (result, error) {
            (_, Some(error)) => Err(error),
            (Some(result), None) => Ok(result.to_owned()),
            (None, None) => return,
        };
        let mut shared = self.lock();
        let unwanted = shared.subscriptions.opened(id, &reply);
        let waiting = shared.calls.take(id);
        drop(shared);
        if let Some(unwanted) = unwanted {
            self.unsubscribe(unwanted);
        }
        if let Some(waiting) = waiting {
            let _ = waiting.send(reply);
        }
    }

    fn take_event(&self, params: &RawValue) {
        let Ok(EventNotification { subscription, event }) = serde_json::from_str(params.get()) else {
            return;
        };
        if let Ok(delivery) = Delivery::from_envelope(event) {
            self.lock().subscriptions.deliver(&subscription, delivery);
        }
    }

    /// Says hello on a new connection and asks for every subscription again.
    fn introduce_again(&self) {
        let mut shared = self.lock();
        let mut lines = vec![(request_id::next(), "bus/hello", self.hello())];
        let resumed = shared.subscriptions.resume_all().into_iter();
        lines.extend(resumed.map(|(request, params)| (request, "events/subscribe", params.into())));
        for (request, method, payload) in lines {
            write_request(&mut shared.out, Some(request), method, None, |out| payload.write_bare(out));
        }
        shared.up = true;
    }
}
