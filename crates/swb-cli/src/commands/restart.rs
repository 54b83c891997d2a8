//! `swb restart`: stop, then start with this binary. Clients reconnect by themselves.

use crate::commands::{down, up};
use crate::failure::Failure;
use crate::io::Io;

pub(crate) async fn run(set: &[String], io: &Io) -> Result<u8, Failure> {
    down::stop("swb restart", false, io).await?;
    up::background(set, io).await
}
