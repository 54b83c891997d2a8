//! `swb policy`: look at the rules, check them, ask them, and try others on the recorded past. Needs no daemon.
//!
//! Everything here reads the files as they are now, with the same code as the daemon; only what a running daemon has in
//! force while a file is broken can be something else, and `swb status` tells that.

mod check;
mod explain;
pub(super) mod files;
mod question;
mod rules;
mod test;

use clap::Subcommand;
use swb_rules::policy::{DEFAULT_RULES, SCHEMA};

use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check rule files; without any, your own and those of this project.
    #[command(after_help = "Exit codes: 0 they can be used, 1 they cannot.")]
    Check(check::CheckArgs),
    /// List the rules that hold here.
    Rules(files::HereArgs),
    /// Ask the rules: may this be done, which rule says so, and what would change the answer?
    #[command(after_help = EXPLAIN_HELP)]
    Explain(explain::ExplainArgs),
    /// Try a rule file on the recorded past: which calls would have been decided differently?
    #[command(after_help = TEST_HELP)]
    Test(test::TestArgs),
    /// Print the schema that rules are checked against, for editors.
    Schema,
    /// Print the rules everyone starts with.
    Default,
}

const EXPLAIN_HELP: &str = "\
Examples:
  swb policy explain tool.bash '{\"command\":\"git push\"}'
  swb policy explain tool.write '{\"path\":\".git/hooks/pre-commit\"}' --actor agent:sess_1
  swb policy explain session.create '{}' --actor agent:sess_1 --workspace ws_1 --json
Tools are asked about for an agent, methods for you, unless --actor says otherwise.";

const TEST_HELP: &str = "\
Examples:
  swb policy test new.cedar --since 7d
  swb policy test ~/.config/switchboard/policy/own.cedar --since 12h --json
The file stands beside your other rule files, in the place of the one with its name.";

pub(crate) fn run(command: PolicyCommand, set: &[String], io: &Io) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Check(args) => check::run(&args, set, io),
        PolicyCommand::Rules(args) => rules::run(&args, set, io),
        PolicyCommand::Explain(args) => explain::run(&args, set, io),
        PolicyCommand::Test(args) => test::run(&args, set, io),
        PolicyCommand::Schema => printed(SCHEMA, io),
        PolicyCommand::Default => printed(DEFAULT_RULES, io),
    }
}

fn printed(text: &str, io: &Io) -> Result<u8, Failure> {
    io.verbatim(text.trim_end())?;
    Ok(exit_code::SUCCESS)
}
