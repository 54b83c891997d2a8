//! `swb audit purge`: old records go, with a proof.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use swb_proto::Meta;
use swb_proto::audit::{Purge, PurgeParams, Purged};

use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io};

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// How many days of records stay, 30 or more; as the configuration says if not given.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(30..))]
    days: Option<u32>,
    /// Why; it is recorded.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: PurgeArgs, io: &Io) -> Result<u8, Failure> {
    if !args.yes && !confirmed(&args)? {
        io.note("nothing was removed");
        return Ok(exit_code::FAILURE);
    }
    let params = PurgeParams { retention_days: args.days, reason: args.reason };
    let purged = connect(Meta::default()).await?.call::<Purge>(params).await?;
    if io.json {
        io.object(&purged)?;
        return Ok(exit_code::SUCCESS);
    }
    let Purged { records, segments, kept_segments, audit_id } = &purged;
    match audit_id {
        Some(proof) => {
            io.line(format!(
                "{GOOD}removed{GOOD:#} {records} records in {segments} segments; record {proof} proves it"
            ))?;
        }
        None => io.line("nothing is old enough to be removed")?,
    }
    if *kept_segments > 0 {
        io.line(format!(
            "{DIM}{kept_segments} old segments stay: a hold or an open command keeps them{DIM:#}"
        ))?;
    }
    Ok(exit_code::SUCCESS)
}

/// Asks whoever sits at the terminal. Nobody there means no.
fn confirmed(args: &PurgeArgs) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let failure = Failure::new("records that are purged are gone for good, and there is nobody to ask");
        return Err(failure.hint("add --yes").code(exit_code::USAGE));
    }
    let days = args.days.map_or("the configured number of".to_owned(), |days| days.to_string());
    let mut stderr = std::io::stderr();
    write!(stderr, "Remove records older than {days} days for good? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
