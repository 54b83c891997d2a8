//! Connections: taking them, bounding them, ending them.
//!
//! The accept loop is ours rather than a framework's because three things matter here that it would hide: a connection that
//! sends no request is closed, their number is bounded, and at the end each gets a moment to finish and no more.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use swb_bus::gate::Visitor;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::eager::Eager;
use crate::front::Front;
use crate::metrics::{Counted, Metrics};
use crate::patience::Patience;
use crate::visit::Connected;

/// How long a connection may take to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// After a failed accept (no descriptors left, most often).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Ports tried after the wanted one.
const NEXT_PORTS: u16 = 99;

/// Listens on the first free port from this one on; 0 means any.
pub(crate) async fn listen(host: &str, port: u16) -> std::io::Result<TcpListener> {
    let last = if port == 0 { 0 } else { port.saturating_add(NEXT_PORTS) };
    let mut at = port;
    loop {
        match TcpListener::bind((host, at)).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && at < last => at += 1,
            done => return done,
        }
    }
}

/// Takes connections until the stop; returns when all have ended.
pub(crate) async fn run(
    listener: TcpListener,
    front: Arc<Front>,
    most_connections: usize,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(most_connections));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some((stream, peer, seat)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (front, stop) = (Arc::clone(&front), stop.clone());
        connections.spawn(async move {
            connection(stream, peer, front, stop).await;
            drop(seat);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let seat = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, seat)),
        Err(error) => {
            tracing::warn!(%error, "a connection was not taken");
            None
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, front: Arc<Front>, mut stop: watch::Receiver<bool>) {
    let _counted = Counted::new(&front.metrics, |metrics: &Metrics| &metrics.connections);
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    // Nobody is served before it is known who it is.
    let guest = match (&front.gate, stream.local_addr()) {
        (None, _) => None,
        (Some(_), Err(_)) => return,
        (Some(gate), Ok(here)) => {
            let gate = Arc::clone(gate);
            let meet = move || gate.meet(&Visitor::Network { from: peer, to: here });
            let Ok(guest) = tokio::task::spawn_blocking(meet).await else { return };
            Some(guest)
        }
    };
    let connected = Connected::new(guest);
    let service = service_fn(|request| front.serve(&connected, request));
    let served = http1::Builder::new()
        .timer(Patience::default())
        .header_read_timeout(HEAD_PATIENCE)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = Eager::new(Box::pin(served));
    tokio::select! {
        // What a client does wrong on its connection concerns nobody else.
        _ = &mut served => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    served.inner().as_mut().graceful_shutdown();
    let _ = served.await;
}
