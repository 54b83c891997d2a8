//! `swb audit`: the record of what happened. Reading works on the files, without a daemon; what changes it goes through
//! the daemon, its one writer.

mod export;
mod head;
mod hold;
mod place;
mod purge;
mod rebuild;
pub(in crate::commands) mod search;
mod show;
mod tail;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::io::Io;

/// The commands of `swb audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the last records; --follow goes on with new ones.
    Tail(tail::TailArgs),
    /// Search the record by words, actor, method, session, correlation, time and status.
    #[command(after_help = SEARCH_HELP)]
    Search(Box<search::SearchArgs>),
    /// Check that nothing was changed, removed, inserted or moved; against an anchor, that nothing was cut off or rewritten.
    #[command(after_help = VERIFY_HELP)]
    Verify(verify::VerifyArgs),
    /// Write everything about a session as one JSON document that proves itself.
    #[command(after_help = EXPORT_HELP)]
    Export(export::ExportArgs),
    /// Print the end of the record, to be kept in another place as an anchor.
    #[command(after_help = HEAD_HELP)]
    Head(head::HeadArgs),
    /// Build the index that searches use again, from the record.
    Rebuild(rebuild::RebuildArgs),
    /// Keep records from being purged, until the hold is released.
    #[command(after_help = HOLD_HELP)]
    Hold(hold::HoldArgs),
    /// List the holds that are in force.
    Holds(hold::HoldsArgs),
    /// End a hold.
    Release(hold::ReleaseArgs),
    /// Remove old records for good; a proof of what was removed is recorded.
    #[command(after_help = PURGE_HELP)]
    Purge(purge::PurgeArgs),
}

const SEARCH_HELP: &str = "\
Examples:
  swb audit search cargo test                 both words, in any order; `car*` for the beginning of one
  swb audit search --status denied --since 7d
  swb audit search --actor agent:agent_ada --method 'terminal.*'
  swb audit search --chain cor_01J…           everything that belongs together, from its beginning
The latest 100 that match are shown, the oldest of them first. Every hit is read from the record itself.";

const VERIFY_HELP: &str = "\
Examples:
  swb audit verify
  swb audit verify --anchor heads.jsonl       what `swb audit head` has printed, kept in another place
  swb audit verify --bundle session.json      a bundle that `swb audit export` has written
Exits with 1 if anything is wrong, or if an anchor was given and none could be matched.";

const EXPORT_HELP: &str = "\
Examples:
  swb audit export --session sess_01J… --out session.json
  swb audit export --session sess_01J… | jq .manifest
The bundle holds the records, a proof that they stand in the chain, and the rules it was redacted by.";

const HEAD_HELP: &str = "\
Examples:
  swb audit head | ssh elsewhere 'cat >> heads.jsonl'
  swb audit head | systemd-cat -t swb-audit
A head that was kept where this machine cannot change it shows later whether the end was cut off or everything rewritten.";

const HOLD_HELP: &str = "\
Examples:
  swb audit hold --session sess_01J… --reason 'case 4711'
  swb audit hold --everything --reason 'audit of the year'
A segment in which a held record stands is not purged.";

const PURGE_HELP: &str = "\
Examples:
  swb audit purge --reason 'moved to the archive'            as old as [audit] retention_days says
  swb audit purge --days 45 --reason 'disk is small' --yes
The daemon does the same by itself once a day. Only whole segments go, never one with a held record or an open command.
A copy of what was removed can be proven against the record of the purge.";

pub(crate) async fn run(command: AuditCommand, io: &Io) -> Result<u8, Failure> {
    match command {
        AuditCommand::Tail(args) => tail::run(&args, io),
        AuditCommand::Search(args) => search::run(*args, io),
        AuditCommand::Verify(args) => verify::run(&args, io),
        AuditCommand::Export(args) => export::run(&args, io),
        AuditCommand::Head(args) => head::run(&args, io),
        AuditCommand::Rebuild(args) => rebuild::run(&args, io),
        AuditCommand::Hold(args) => hold::run(args, io).await,
        AuditCommand::Holds(args) => hold::list(&args, io),
        AuditCommand::Release(args) => hold::release(args, io).await,
        AuditCommand::Purge(args) => purge::run(args, io).await,
    }
}
