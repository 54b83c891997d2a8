//! The host: a small process that owns one child and nothing else.
//!
//! It starts the child, keeps what comes out of it ([`crate::wire`] says how that is read), hands over what goes in, and
//! keeps the exit status until somebody has read it. It knows nothing of what the child is for and outlives whoever
//! started it. Its own end is the end of everything the child has started.
//!
//! One thread, one task per stream and per client; they share `state`. Invariants: a byte that came out is kept until it
//! was acknowledged; a write is handed over once; `Exited` is said only after all output is here and no process of the
//! child's tree is left. Proof: `tests/host.rs` with real children and the client of this room.

mod child;
mod connection;
mod input;
mod state;

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::cell::Walls;
use crate::descendants;
use crate::output::Limits;
pub(crate) use child::Control;
use connection::Connection;
use state::Shared;

/// How long the child's tree may take to end when it was asked to.
const PATIENCE: Duration = Duration::from_secs(4);
/// Clients at once. One daemon and a few viewers are expected.
const MOST_CLIENTS: usize = 64;
/// How often a disk that refused is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What a host is told when it is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; must not exist. Its folder also takes the spill.
    pub socket: PathBuf,
    /// How much output is kept.
    pub limits: Limits,
    /// What the child shall not see; `None` means that nobody asked for containment.
    pub walls: Option<Walls>,
    /// Where the child works; absent for where whoever starts the host does.
    pub folder: Option<PathBuf>,
    /// Variables that the child has besides, or in place of, those of whoever starts the host.
    pub environment: Vec<(OsString, OsString)>,
    /// The child and its arguments.
    pub command: Vec<OsString>,
}

/// Runs a host until it is released or told to end. Returns when its child and everything that started is gone.
/// `ready` is called once it listens and the child runs.
pub(crate) async fn run(
    options: Options,
    control: Control,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    descendants::adopt_orphans();
    let folder = options.socket.parent().unwrap_or(Path::new("/"));
    let shared = Arc::new(Shared::new(options.limits, folder)?);
    let listener = UnixListener::bind(&options.socket)?;
    let name = SocketName(&options.socket);
    std::fs::set_permissions(&options.socket, std::fs::Permissions::from_mode(0o600))?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut child_ended = signal(SignalKind::child())?;

    let mut tasks = child::start(&options, control, &shared).await?;
    ready()?;
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            () = shared.until(|state| state.released.then_some(())) => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = child_ended.recv() => descendants::reap_ended(),
            Some(_) = clients.join_next() => {}
            accepted = listener.accept(), if clients.len() < MOST_CLIENTS => match accepted {
                Ok((stream, _)) if crate::lineage::may_command(&stream) => {
                    clients.spawn(Connection::new(Arc::clone(&shared)).run(stream));
                }
                // A stranger, or somebody who is gone already.
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            () = tokio::time::sleep(RETRY), if is_stuck(&shared) => shared.change(|state| {
                for stream in crate::wire::Stream::OUT {
                    state.output(stream).into_iter().for_each(crate::output::Output::make_room);
                }
            }),
        }
    }
    // First: whoever hears of our end may start another host under this name, which is not ours to remove then.
    drop(name);
    descendants::end_all(PATIENCE).await;
    tasks.shutdown().await;
    // The answer to the release that ended us is on its way.
    let _ = tokio::time::timeout(Duration::from_millis(200), async {
        clients.join_next().await;
    })
    .await;
    Ok(())
}

fn is_stuck(shared: &Shared) -> bool {
    let mut state = shared.look();
    crate::wire::Stream::OUT
        .into_iter()
        .any(|stream| state.output(stream).is_some_and(|output| output.is_stuck()))
}

/// Removes the socket's name when the host ends, so that nobody looks for it there.
struct SocketName<'a>(&'a Path);

impl Drop for SocketName<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
