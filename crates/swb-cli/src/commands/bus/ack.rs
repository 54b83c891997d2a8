//! `swb bus ack`.

use clap::Args;

use super::{PlaceArgs, place};
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    /// The message; everything before it counts as dealt with too.
    id: String,
    /// Who dealt with it.
    #[arg(long, value_name = "NAME")]
    reader: String,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(args: &AckArgs, set: &[String], io: &Io) -> Result<(), Failure> {
    let bus = place::for_reading(&args.place, set)?;
    let cannot = |error| Failure::new(format!("cannot keep the cursor of {:?}", args.reader)).because(error);
    let cursor = bus.acknowledge(&args.reader, &args.id).map_err(cannot)?;
    let acked = cursor.acked.map(|mark| mark.msg_id).unwrap_or_default();
    if io.json {
        io.object(&serde_json::json!({ "reader": args.reader, "acked": acked }))
    } else {
        io.line(format!("acked: {acked}"))
    }
}
