//! `swb daemon`: the process itself.

use swb_daemon::Paths;
use swb_daemon::process::{self, Ended};

use crate::exit_code;
use crate::failure::Failure;

pub(crate) fn run(set: &[String]) -> Result<u8, Failure> {
    Ok(match process::run(Paths::from_env()?, set) {
        Ended::Stopped | Ended::AlreadyRunning => exit_code::SUCCESS,
        Ended::Failed => exit_code::START_FAILED,
    })
}
