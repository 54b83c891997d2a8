//! `swb approvals`: what agents ask for, answered by a person.
//!
//! Everything an agent has written passes [`crate::plain`] before it reaches a terminal: whoever is to judge a command line
//! must not be shown another one.

mod answer;
pub(crate) mod find;
mod grants;
mod list;
mod show;

pub(crate) use list::since;

use clap::{Args, Subcommand};
use swb_proto::Meta;

use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Those that were answered or timed out, too.
    #[arg(long, short)]
    all: bool,
    /// Those of this session and of agents below it.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show everything about a question.
    Show {
        /// Its id, or the beginning or end of it.
        id: String,
    },
    /// Say yes: the call goes on.
    Approve(answer::ApproveArgs),
    /// Say no: the call is refused, and whoever asked is told why.
    Deny(answer::DenyArgs),
    /// List what was allowed for a session and still holds.
    Grants,
    /// Take back what was allowed for a session.
    Revoke {
        /// The id of the grant, or the beginning or end of it.
        grant: String,
    },
}

pub(crate) async fn run(args: ApprovalsArgs, io: &Io) -> Result<u8, Failure> {
    let handle = connect(Meta::default()).await?;
    match args.what {
        None => list::run(&handle, args.all, args.session, io).await?,
        Some(What::Show { id }) => show::run(&handle, &id, io).await?,
        Some(What::Approve(args)) => return answer::approve(&handle, args, io).await,
        Some(What::Deny(args)) => return answer::deny(&handle, args, io).await,
        Some(What::Grants) => grants::list(&handle, io).await?,
        Some(What::Revoke { grant }) => grants::revoke(&handle, &grant, io).await?,
    }
    Ok(exit_code::SUCCESS)
}
