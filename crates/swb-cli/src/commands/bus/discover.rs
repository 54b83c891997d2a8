//! `swb bus discover`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use swb_journal::message_bus::discover;

use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Where to start looking; normally here.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    from: Option<PathBuf>,
    /// Accepted and ignored, as scripts expect.
    #[arg(hide = true)]
    ignored: Vec<String>,
}

pub(super) fn run(args: &DiscoverArgs, io: &Io) -> Result<(), Failure> {
    let from = args.from.clone().map_or_else(std::env::current_dir, Ok)?;
    let found = discover(&from).map_err(|error| Failure::new(error.to_string()))?;
    if io.json { io.object(&serde_json::json!({ "path": found })) } else { io.line(found.display()) }
}
