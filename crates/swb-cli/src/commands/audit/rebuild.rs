//! `swb audit rebuild`: the index of the record, from the record.

use clap::Args;
use serde_json::json;

use super::place::{PlaceArgs, ledger_failed};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &RebuildArgs, io: &Io) -> Result<u8, Failure> {
    let done = args.place.ledger()?.rebuild().map_err(ledger_failed)?;
    if io.json {
        io.object(&json!({ "records": done.added, "damaged": done.damaged, "last": done.number }))?;
    } else {
        io.line(format!("{} records, up to number {}", done.added, done.number))?;
        if done.damaged > 0 {
            io.line(format!("{} damaged ones are left out: `swb audit verify` names them", done.damaged))?;
        }
    }
    Ok(exit_code::SUCCESS)
}
