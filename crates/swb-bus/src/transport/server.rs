//! The listening end of the control socket.
//!
//! Only the same user gets in: the socket lies in a folder of mode 0700, has mode 0600, and the kernel is asked who
//! connected. Each connection is one task with bounded buffers, so a stalled or hostile client costs a fixed amount and
//! delays nobody. Running out of file descriptors pauses accepting instead of spinning.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use swb_proto::line::Dialect;
use swb_proto::{BusError, MAX_ENVELOPE_OVERHEAD, MAX_PAYLOAD_BYTES, error, reply};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::peer;
use crate::dispatch::Bus;
use crate::gate::{Gate, Visitor};
use crate::stats::{Throttle, count};

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Connections at once.
    pub connections: usize,
    /// Unanswered requests per connection; beyond that the connection is not read.
    pub in_flight: usize,
    /// Subscriptions per connection.
    pub subscriptions: usize,
    /// The longest line.
    pub line_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 1024,
            in_flight: 1024,
            subscriptions: 64,
            line_bytes: MAX_PAYLOAD_BYTES + MAX_ENVELOPE_OVERHEAD,
        }
    }
}

/// The control socket of a daemon.
#[derive(Debug)]
pub struct ControlServer {
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
}

impl ControlServer {
    /// Listens on `path`, which must not exist, in a folder that only this user can enter.
    pub fn listen(bus: Arc<Bus>, path: &Path, limits: ServerLimits) -> io::Result<Self> {
        Self::listen_behind(None, bus, path, limits)
    }

    /// The same, where everything that comes in passes a gate.
    pub fn listen_behind(
        gate: Option<Arc<dyn Gate>>,
        bus: Arc<Bus>,
        path: &Path,
        limits: ServerLimits,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let (stop, stopping) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, gate, bus, limits, stopping));
        Ok(ControlServer { stop, accepting })
    }

    /// Accepts nobody any more and lets every connection send what it still owes, for at most `patience`.
    pub async fn close(self, patience: Duration) {
        self.stop.send_replace(true);
        let abort = self.accepting.abort_handle();
        if tokio::time::timeout(patience, self.accepting).await.is_err() {
            abort.abort();
        }
    }
}

async fn accept(
    listener: UnixListener,
    gate: Option<Arc<dyn Gate>>,
    bus: Arc<Bus>,
    limits: ServerLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let (troubles, strangers) = (Throttle::default(), Throttle::default());
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopping.changed() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                if let Some(times) = troubles.pass() {
                    tracing::warn!(%error, times, "cannot accept a connection");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if !peer::is_same_user(&stream).unwrap_or(false) {
            count(&bus.stats().refused);
            if let Some(times) = strangers.pass() {
                tracing::warn!(times, "refused a connection of another user");
            }
            continue;
        }
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            count(&bus.stats().refused);
            turn_away(&stream);
            continue;
        };
        let (gate, bus, stopping) = (gate.clone(), Arc::clone(&bus), stopping.clone());
        connections.spawn(async move {
            bus.stats().connections.fetch_add(1, Ordering::Relaxed);
            let _open = Open(&bus);
            let guest = gate.map(|gate| gate.meet(&Visitor::Local(&stream)));
            let connection = Connection::new(Arc::clone(&bus), limits, guest);
            if let Err(error) = connection.run(stream, stopping).await {
                tracing::debug!(%error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

struct Open<'a>(&'a Bus);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.stats().connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells a client that there is no place for it. It may not be reading; then it learns it from the closed connection.
fn turn_away(stream: &UnixStream) {
    let error = BusError::new(error::ERR_OVERLOADED, "there are too many connections")
        .because("TOO_MANY_CONNECTIONS");
    let mut line = Vec::new();
    reply::write(&mut line, Dialect::JsonRpc, None, None, std::time::SystemTime::now(), &Err(error));
    let _ = stream.try_write(&line);
}
