//! Walls around a child: namespaces of its own in which what it must not touch is not there.
//!
//! A cell is built by two short programs of this binary, one inside the other. The first ([`crate::entry`] calls
//! it `cell`) leaves the user, mount, process and IPC namespaces of the house, hides folders, and starts the second, which is
//! process 1 of the new ones (`cell-init`): it gives up every capability, starts the child, reaps, and ends when the child
//! ends. The kernel then ends whatever is left in there. Each of the three is told by the kernel when the one above it
//! dies, so killing any of them ends all below.
//!
//! Without capabilities nothing in a cell can unmount what hides a folder; in a namespace made further inside, those mounts
//! are locked. Proof: `tests/cell.rs`, with a shell that tries.

mod fence;
mod init;
mod walls;
mod way_in;

use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use tokio::process::Command;

pub(crate) use init::init;
pub use walls::Walls;
pub(crate) use way_in::enter;

use crate::entry;

/// The command that runs another one in a cell.
pub(crate) fn command(walls: &Walls, inner: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new(entry::this_program());
    command.arg(entry::CELL).arg(serde_json::to_string(walls)?).arg("--").args(inner);
    Ok(command)
}

/// Builds one of these walls around a program that does nothing, to know beforehand what the kernel allows.
pub async fn try_out(walls: &Walls) -> Result<(), String> {
    let nothing = [entry::this_program().into(), entry::NOTHING.into()];
    let mut command = command(walls, &nothing).map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = command.output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
