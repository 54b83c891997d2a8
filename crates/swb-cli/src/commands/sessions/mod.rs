//! `swb sessions`: what agents have worked on, and the sessions that a running daemon keeps.
//!
//! One id, one thing: the history of an agent and the session of the daemon under the same id are one line. Histories are
//! files and listed without a daemon; what is begun, attached to or ended goes through it.

mod histories;
mod kept;

use clap::{Args, Subcommand};

use super::rpc::profile_name;
use crate::connect::connect_if_running;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;
pub(crate) use histories::{age, columns};
use kept::Kept;

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Only those that were started in this folder.
    #[arg(long)]
    here: bool,
    /// All of them: those of subagents, below the sessions that started them, and those that have ended.
    #[arg(long, short)]
    all: bool,
    /// So many at most, the latest. Usually 30; with --json or --all as many as there are.
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<usize>,
    /// Those of this profile.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Begin a session in a project.
    Create {
        /// The project, by id or short name.
        project: String,
        /// For an agent; otherwise for a person.
        #[arg(long)]
        agent: bool,
        /// A file of rules that hold in it beside all others; they may only forbid or ask.
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        rules: Option<std::path::PathBuf>,
    },
    /// Say that somebody is at a session.
    Attach {
        /// Its id.
        session: String,
        /// Bring back what was there before.
        #[arg(long)]
        restore: bool,
    },
    /// End a session. What was allowed for it ends with it.
    End {
        /// Its id.
        session: String,
        /// Why, for people.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub(crate) async fn run(args: &SessionsArgs, io: &Io) -> Result<u8, Failure> {
    match &args.what {
        Some(What::Create { project, agent, rules }) => {
            kept::create(project, *agent, rules.as_deref(), io).await?;
        }
        Some(What::Attach { session, restore }) => kept::attach(session, *restore, io).await?,
        Some(What::End { session, reason }) => kept::end(session, reason.clone(), io).await?,
        None => {
            let kept = match connect_if_running().await? {
                Some(handle) => Kept::ask(&handle, args.all).await?,
                None => Kept::default(),
            };
            histories::list(args, kept, io)?;
        }
    }
    Ok(exit_code::SUCCESS)
}
