//! The record: every command from outside, from its start to its one end, in the audit log before it is answered.
//!
//! ```text
//! gate ─ started ─► shown (redacted, bounded) ─► audit log          Written: in the file when the call returns
//!          │                                         ▲               Synced:  when the future says so
//!          └─► Started ─ ended ──────────────────────┘
//! ```
//!
//! * `command` – a command under way. `shown` – what of its arguments, and of the question to the rules, is kept. `refusal` – when nothing can be kept.
//! * `tool` – what was decided about the call of an agent's tool.
//! * `care` – holds, purges, and `anchor`: the end of the record told to a place outside.
//! * `events` – the recorder as the keeper of the bus: events of weight are recorded before anybody sees them, and read
//!   back for those who were away. `announce` – telling of records.
//!
//! Invariants: a start is in the log before its command is carried out, an end before it is answered; every start has
//! one end, written as `interrupted` by the next daemon if this one dies in between, or when whoever had the command
//! lets go of it; when the log takes no more, no command is carried out. No secret, no key press and no absolute path
//! of an error goes in; argument hashes are keyed and cover the whole of what came.
//! Proof: tests beside the code, `tests/record.rs`, and `swb-cli/tests/audit.rs` with kill -9 under load.

mod anchor;
mod announce;
mod care;
mod command;
mod events;
mod refusal;
mod shown;
mod tool;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use swb_bus::topics::Topics;
use swb_journal::audit::{
    AppendError, AuditLog, AuditReader, Durability, Entry, Head, Moment, OpenError, Status,
};

use anchor::Anchor;
use announce::Announcer;
pub(crate) use care::{Care, recorded, tell_of};
pub use command::{Recorded, Start, Started};
pub use refusal::{RecordError, presentable};
pub use shown::Shown;
pub(crate) use tool::ToolDecision;

use crate::config::AuditConfig;
use crate::telemetry::{CommandCounts, CommandEnds};

/// The one writer of the audit log.
#[derive(Debug)]
pub struct Recorder {
    log: AuditLog,
    durability: Durability,
    announcer: Announcer,
    anchor: Anchor,
    retention_days: u32,
    counts: CommandCounts,
    /// Who else wants to know of ends.
    ends: OnceLock<CommandEnds>,
}

impl Recorder {
    /// Opens the log in a folder, or makes one, and ends what the last daemon left without an end.
    pub fn open(folder: &Path, config: &AuditConfig) -> Result<Arc<Self>, OpenError> {
        let options = config.options();
        let durability = options.durability;
        let now = Moment::now();
        let (log, opened) = AuditLog::open(folder, options, now)?;
        if let Some(cut) = opened.cut {
            tracing::warn!(segment = cut.segment, bytes = cut.bytes, "a torn end of the audit log was cut");
        }
        if let Some(damage) = opened.damage {
            let (segment, offset) = (damage.segment, damage.offset);
            tracing::error!(segment, offset, "the audit log is damaged and goes on behind the damage");
        }
        let recorder = Recorder {
            log,
            durability,
            announcer: Announcer::default(),
            anchor: Anchor::new(&config.anchor_command),
            retention_days: config.retention_days,
            counts: CommandCounts::default(),
            ends: OnceLock::new(),
        };
        recorder.end_what_is_open(&opened.unfinished, now).map_err(OpenError::Append)?;
        Ok(Arc::new(recorder))
    }

    /// Commands that the last daemon began and did not end: nobody knows what became of them.
    fn end_what_is_open(&self, unfinished: &[u64], now: Moment) -> Result<(), AppendError> {
        let reader = AuditReader::new(self.log.folder());
        for number in unfinished {
            // A start that cannot be read still gets its end; only the ids are missing there.
            let start = match reader.get(*number) {
                Ok(Some(record)) => record.entry,
                Ok(None) | Err(_) => Entry::start(now, "unknown"),
            };
            let end = Entry {
                message: Some("the daemon ended while this was under way".to_owned()),
                ..start.into_end(now, *number, Status::Interrupted)
            };
            self.log.append_now(&end)?;
        }
        if !unfinished.is_empty() {
            tracing::warn!(
                commands = unfinished.len(),
                "commands were interrupted by the end of the last daemon"
            );
        }
        Ok(())
    }

    /// From now on records are told of on these topics, to whoever listens there.
    pub fn speak_on(&self, topics: &Arc<Topics>) {
        self.announcer.speak_on(topics);
    }

    /// Makes everything safe and takes no more. The next daemon may open the log then.
    pub fn close(&self) {
        if let Err(error) = self.log.close() {
            tracing::error!(%error, "the audit log was not closed as it should be");
        }
    }

    /// The keyed hash of arguments, as records have it.
    pub fn hash_arguments(&self, arguments: &[u8]) -> String {
        self.log.hash_arguments(arguments).to_string()
    }

    /// The end of the log.
    pub fn head(&self) -> Head {
        self.log.head()
    }

    /// What was decided, and how commands ended, since the daemon began.
    pub(crate) fn counts(&self) -> &CommandCounts {
        &self.counts
    }

    /// From now on ends of commands are told here too.
    pub(crate) fn tell_ends(&self, ends: CommandEnds) {
        let _ = self.ends.set(ends);
    }

    /// Why nothing can be recorded, if it cannot.
    pub fn check(&self) -> Result<(), RecordError> {
        self.log.check().map_err(RecordError)
    }
}

#[cfg(test)]
mod tests;
