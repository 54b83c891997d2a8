//! `swb audit tail`: the last records, and those that come.

use clap::Args;
use swb_journal::audit::AuditReadError;

use super::place::{PlaceArgs, read_failed};
use super::show;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, WARN, wait_for_reader_to_go};

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// How many.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    /// All after this number instead of the last ones.
    #[arg(long, value_name = "NUMBER", conflicts_with = "lines")]
    after: Option<u64>,
    /// Go on with new records until interrupted.
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(args: &TailArgs, io: &Io) -> Result<u8, Failure> {
    let reader = args.place.reader()?;
    let last = reader.head().map_err(read_failed)?.map_or(0, |head| head.number);
    let after = args.after.unwrap_or_else(|| last.saturating_sub(args.lines as u64));
    if last == 0 && !args.follow && !io.json {
        io.note(format!("{DIM}nothing has been recorded yet{DIM:#}"));
    }
    if !args.follow {
        for record in reader.records_after(after).map_err(read_failed)? {
            match record {
                Ok(record) => show::record(&record, io)?,
                Err(error) => skip(error, io)?,
            }
        }
        return Ok(exit_code::SUCCESS);
    }
    let mut follower = reader.follow(after).map_err(read_failed)?;
    // A reader that goes away must end us even if nothing is ever recorded.
    let ending = follower.ending();
    std::thread::spawn(move || {
        wait_for_reader_to_go();
        ending.end();
    });
    loop {
        match follower.next_record() {
            Ok(Some(record)) => show::record(&record, io)?,
            Ok(None) => return Ok(exit_code::SUCCESS),
            Err(error) => skip(error, io)?,
        }
    }
}

/// A damaged record is named and passed over; whoever looks wants to see the rest all the more.
fn skip(error: AuditReadError, io: &Io) -> Result<(), Failure> {
    match error {
        AuditReadError::Damaged { .. } => {
            io.note(format!(
                "{WARN}warning:{WARN:#} {error}: `swb audit verify` shows everything that is wrong"
            ));
            Ok(())
        }
        error => Err(read_failed(error)),
    }
}
