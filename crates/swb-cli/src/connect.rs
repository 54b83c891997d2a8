//! The way to the daemon that every command takes.

use swb_bus::BusHandle;
use swb_daemon::Paths;
use swb_proto::Meta;

use crate::failure::Failure;

/// A handle to the running daemon.
pub(crate) async fn connect(context: Meta) -> Result<BusHandle, Failure> {
    let paths = Paths::from_env()?;
    Ok(BusHandle::connect_as(paths.control_socket(), context).await?)
}

/// A handle, or nothing if no daemon is running.
pub(crate) async fn connect_if_running() -> Result<Option<BusHandle>, Failure> {
    match connect(Meta::default()).await {
        Ok(handle) => Ok(Some(handle)),
        Err(failure) if failure.code == crate::exit_code::NOT_RUNNING => Ok(None),
        Err(failure) => Err(failure),
    }
}
