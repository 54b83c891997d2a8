//! `swb bus`: messages between agents and people, in plain Markdown files. No daemon is needed.
//!
//! Flags, variables, their precedence, output and exit codes are those of the program whose files these are, so scripts
//! written for it work under either name. Every failure exits with 1, whatever its kind.

mod ack;
mod discover;
mod place;
mod post;
mod read;
mod show;
mod stdin;
mod thread;
mod wait;

use clap::{Args, Subcommand};

use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

/// The commands of `swb bus`.
#[derive(Debug, Subcommand)]
pub(crate) enum BusCommand {
    /// Post a message; prints its id.
    #[command(after_help = POST_HELP)]
    Post(post::PostArgs),
    /// Read messages: the last 20, or what was asked for; --follow waits for more.
    #[command(after_help = READ_HELP)]
    Read(read::ReadArgs),
    /// Wait until a message that matches appears, print it, and end.
    Wait(wait::WaitArgs),
    /// Show a conversation as a tree: what a message answers, and what answers it.
    Thread(thread::ThreadArgs),
    /// Note that a named reader has dealt with a message.
    Ack(ack::AckArgs),
    /// Find the bus file that is meant here: in this folder or above it.
    Discover(discover::DiscoverArgs),
}

const POST_HELP: &str = "\
The bus: --bus, else $MESSAGE_BUS (or $JRUN_MESSAGE_BUS), else --project and --task, else the nearest file found upwards.
Examples:
  swb bus post --project demo --type FACT --body 'tests are green'
  cargo test 2>&1 | swb bus post --type PROGRESS
  swb bus post --reply-to MSG-… --type ANSWER --body 'yes'";

const READ_HELP: &str = "\
The bus: --project and --task, or --bus, else $MESSAGE_BUS (or $JRUN_MESSAGE_BUS), else the nearest file found upwards.
Examples:
  swb bus read --project demo --follow
  swb bus read --type FACT --type DECISION --tail 0 --json
  swb bus read --reader ada          what ada has not read yet, marked as read when it was printed";

/// Where the bus is.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The bus file.
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub(crate) bus: String,
    /// The project: a folder below the root.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(crate) project: String,
    /// The task: a folder below the project's.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(crate) task: String,
    /// The folder that projects lie in.
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    pub(crate) root: String,
    /// Accepted and ignored, as scripts expect.
    #[arg(hide = true)]
    pub(crate) ignored: Vec<String>,
}

pub(crate) fn run(command: BusCommand, set: &[String], io: &Io) -> Result<u8, Failure> {
    let done = match command {
        BusCommand::Post(args) => post::run(args, set, io),
        BusCommand::Read(args) => read::run(args, set, io),
        BusCommand::Wait(args) => wait::run(args, set, io),
        BusCommand::Thread(args) => thread::run(&args, set, io),
        BusCommand::Ack(args) => ack::run(&args, set, io),
        BusCommand::Discover(args) => discover::run(&args, io),
    };
    done.map(|()| exit_code::SUCCESS).map_err(|failure| failure.code(exit_code::FAILURE))
}
