//! `swb audit head`: the end of the record, as an anchor.

use clap::Args;

use super::place::{PlaceArgs, read_failed};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &HeadArgs, io: &Io) -> Result<u8, Failure> {
    match args.place.reader()?.head().map_err(read_failed)? {
        // The same line for people and for scripts: it is there to be kept.
        Some(head) => io.json_line(&head)?,
        None => return Err(Failure::new("nothing has been recorded yet")),
    }
    Ok(exit_code::SUCCESS)
}
