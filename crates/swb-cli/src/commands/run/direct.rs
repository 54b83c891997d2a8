//! Without the daemon: an agent that is our own child, and ends with us.

use std::ffi::OsString;

use clap::ValueEnum;
use swb_daemon::Paths;

use super::drive::{Bond, Drive};
use super::prompt::{self, Said, Wanted};
use super::{RunArgs, Seat, child};
use crate::failure::Failure;
use crate::io::Io;

pub(super) async fn run(args: RunArgs, said: Said, set: &[String], io: &Io) -> Result<u8, Failure> {
    let session = match said.session {
        Some(Wanted::Latest) => Some(prompt::latest(&Paths::from_env()?.sessions(args.profile.as_deref()))?),
        Some(Wanted::Id(id)) => Some(id),
        None => None,
    };
    let prompt = prompt::command(prompt::read(said.prompt)?, &args.attach)?;
    let seat = Seat::take(io)?;

    let mut arguments: Vec<OsString> = vec!["rpc".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // In one word, so that a value may begin with a dash.
            arguments.push(format!("--{name}={value}").into());
        }
    };
    option("continue", session);
    option("system", args.system);
    option("model", args.model);
    option("profile", args.profile);
    let mode = args.mode.and_then(|mode| mode.to_possible_value());
    option("tool-mode", mode.map(|mode| mode.get_name().to_owned()));
    for value in set {
        option("set", Some(value.clone()));
    }
    if seat.keyboard.is_some() {
        arguments.push("--asks".into());
    }
    let link = child::start(&arguments)?;
    let finish =
        Drive::new(link, seat.view, seat.keyboard, seat.signals, Bond::Child).run(Some(&prompt)).await?;
    Ok(finish.code)
}
