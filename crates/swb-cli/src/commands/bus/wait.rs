//! `swb bus wait`.

use std::time::{Duration, Instant};

use clap::Args;
use swb_journal::message_bus::{FollowEvent, FollowFrom};

use super::read::{Filter, failed};
use super::{PlaceArgs, place, show};
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    filter: Filter,
    /// Look at messages after this one; without it, only at new ones.
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
}

pub(super) fn run(args: WaitArgs, set: &[String], io: &Io) -> Result<(), Failure> {
    let bus = place::for_reading(&args.place, set)?;
    let timeout = args.timeout.map(Duration::try_from_secs_f64).transpose();
    let timeout = timeout.map_err(|error| Failure::new("--timeout makes no sense").because(error))?;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut follower = bus.follow(&args.since.map_or(FollowFrom::End, FollowFrom::After)).map_err(failed)?;
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match follower.next_event(left).map_err(failed)? {
            Some(FollowEvent::Message(message)) if args.filter.wants(&message) => {
                return show::message(&message, io);
            }
            Some(_) => {}
            None => return Err(Failure::new("no such message came in time")),
        }
    }
}
