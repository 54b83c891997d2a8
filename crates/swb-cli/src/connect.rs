//! The way to the daemon that every command takes.

use std::time::Duration;

use swb_bus::BusHandle;
use swb_bus::transport::client::{ConnectError, ConnectErrorKind};
use swb_daemon::Paths;
use swb_proto::Meta;

use crate::failure::Failure;

/// How long a command waits for a daemon that crashed and is being started again.
const COMEBACK: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A handle to the running daemon.
pub(crate) async fn connect(context: Meta) -> Result<BusHandle, Failure> {
    let paths = Paths::from_env()?;
    let mut waited = Duration::ZERO;
    loop {
        match BusHandle::connect_as(paths.control_socket(), context.clone()).await {
            Ok(handle) => return Ok(handle),
            Err(error) if waited < COMEBACK && may_come_back(&paths, &error) => {
                tokio::time::sleep(PAUSE).await;
                waited += PAUSE;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A daemon that stopped takes its description along. One that left it behind crashed, and its watch is at work.
fn may_come_back(paths: &Paths, error: &ConnectError) -> bool {
    matches!(error.kind, ConnectErrorKind::Io(_) | ConnectErrorKind::Hello(_)) && paths.description().exists()
}

/// A handle, or nothing if no daemon is running.
pub(crate) async fn connect_if_running() -> Result<Option<BusHandle>, Failure> {
    match connect(Meta::default()).await {
        Ok(handle) => Ok(Some(handle)),
        Err(failure) if failure.code == crate::exit_code::NOT_RUNNING => Ok(None),
        Err(failure) => Err(failure),
    }
}
