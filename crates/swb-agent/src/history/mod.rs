//! What was said: the conversation of one session, in memory and on disk.
//!
//! A session is one file of JSON lines, `<id>.jsonl` ([`record`]). It is written before its id is announced, every line
//! is appended whole, and a turn ends with a sync; what a crash tore off at the end is cut when the file is opened again
//! and calls without an answer are closed ([`load`], [`store`]). Attached files lie beside it ([`files`]). Only one process has a
//! session open: the file itself is locked ([`lock`]). What a list of sessions shows stands at the two ends of each file ([`glance`]).
//!
//! Invariants: memory and file say the same; the history a model sees has an answer for each call.

mod file;
mod files;
mod gauge;
mod glance;
mod load;
mod lock;
mod record;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use swb_proto::agent::{Block, Message, TurnUsage};

pub(crate) use file::WriteError;
pub(crate) use files::FileStore;
pub use glance::{Glance, Known, LastTurn, Listed, newest_first};
pub(crate) use record::TurnOutcome;
pub use store::OpenError;
pub(crate) use store::Sessions;

use crate::compaction::{self, estimate};
use file::HistoryFile;
use gauge::Gauge;
use record::Record;

/// What the result of a call says whose tool did not come to its end.
const CUT_SHORT: &str =
    "aborted: the agent stopped before this tool had finished; its effects may be partial";

/// The conversation of one session.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) system: Option<String>,
    /// The session that started this one.
    pub(crate) parent: Option<String>,
    messages: Vec<Arc<Message>>,
    turns: u64,
    /// A turn has begun and not ended; after a crash also one that never will.
    in_turn: bool,
    totals: TurnUsage,
    /// The same, by the model that used it.
    by_model: BTreeMap<String, TurnUsage>,
    gauge: Gauge,
    /// How often messages were replaced by a summary.
    compactions: u64,
    files: Arc<FileStore>,
    file: HistoryFile,
}

impl History {
    /// A history of which only the first record is known.
    fn begun(first: Record, id: String, files: Arc<FileStore>, file: HistoryFile) -> Result<Self, String> {
        let Record::Session { version, model, system, parent, .. } = first else {
            return Err(store::NO_SESSION.to_owned());
        };
        if version > record::VERSION {
            return Err(format!("it is of version {version}; this program knows {}", record::VERSION));
        }
        Ok(History {
            id,
            model,
            system,
            parent,
            messages: Vec::new(),
            turns: 0,
            in_turn: false,
            totals: TurnUsage::default(),
            by_model: BTreeMap::new(),
            gauge: Gauge::default(),
            compactions: 0,
            files,
            file,
        })
    }

    /// All messages.
    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// What all turns have used.
    pub(crate) fn totals(&self) -> &TurnUsage {
        &self.totals
    }

    /// What each model has used.
    pub(crate) fn used_by_model(&self) -> &BTreeMap<String, TurnUsage> {
        &self.by_model
    }

    /// About how many tokens the model would be given now.
    pub(crate) fn context_tokens(&self) -> u64 {
        self.gauge.tokens()
    }

    /// How many messages from the beginning make room if the rest may have so many tokens, and what they weigh as a share
    /// of the whole, in percent.
    pub(crate) fn replaceable(&self, kept_tokens: u64) -> (usize, u64) {
        let count = compaction::replaced(&self.messages, self.gauge.in_estimates(kept_tokens));
        let replaced: u64 = self.messages[..count].iter().map(|message| estimate::message(message)).sum();
        (count, replaced * 100 / self.gauge.weighed().max(1))
    }

    /// How often messages were replaced by a summary: positions of messages hold until the next time.
    pub(crate) fn compactions(&self) -> u64 {
        self.compactions
    }

    /// The copies of attached files.
    pub(crate) fn files(&self) -> &Arc<FileStore> {
        &self.files
    }

    /// Begins a turn with what the user says.
    pub(crate) fn begin_turn(&mut self, message: Message) -> Result<(), WriteError> {
        self.close_dangling_calls()?;
        let preview = record::preview(&message);
        self.apply(Record::TurnStart { number: self.turns + 1, model: self.model.clone(), preview })?;
        self.push(message)
    }

    /// Notes how the turn ended, if one has begun.
    pub(crate) fn end_turn(&mut self, outcome: TurnOutcome) -> Result<(), WriteError> {
        if !self.in_turn {
            return Ok(());
        }
        self.apply(Record::TurnEnd { number: self.turns, model: self.model.clone(), outcome })
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: Message) -> Result<(), WriteError> {
        self.apply(Record::Message { message })
    }

    /// Notes what a model call has used.
    pub(crate) fn used(&mut self, usage: &TurnUsage) -> Result<(), WriteError> {
        let record = Record::Usage { usage: usage.clone(), aside: false };
        self.apply(record)
    }

    /// Notes what a model call has used that was not given the conversation itself, a subagent's for example.
    pub(crate) fn used_aside(&mut self, usage: &TurnUsage) -> Result<(), WriteError> {
        let record = Record::Usage { usage: usage.clone(), aside: true };
        self.apply(record)
    }

    /// Notes that another model is in use.
    pub(crate) fn set_model(&mut self, model: &str) -> Result<(), WriteError> {
        let record = Record::Model { model: model.to_owned() };
        self.apply(record)
    }

    /// Puts a summary in the place of the first `count` messages, unless there was a compaction since the one that was
    /// `seen`. `idle` says that nobody is about to answer.
    pub(crate) fn compact(
        &mut self,
        seen: u64,
        count: usize,
        summary: &str,
        idle: bool,
    ) -> Result<bool, WriteError> {
        if seen != self.compactions {
            return Ok(false);
        }
        let acknowledged = self.messages.get(count).map_or(idle, |next| next.user_text().is_some());
        let messages = compaction::messages_of(summary, acknowledged);
        self.apply(Record::Compacted { count, messages })?;
        self.sync()?;
        // Only now: a history that is still the old one after a crash needs its files.
        self.sweep_files();
        Ok(true)
    }

    fn sweep_files(&self) {
        self.files.sweep(self.messages.iter().map(AsRef::as_ref));
    }

    /// How many messages from the beginning can be replaced: all but what the model is being asked and what tools are
    /// working on.
    pub(crate) fn compactable(&self, in_turn: bool) -> usize {
        let open =
            |last: &Arc<Message>| last.calls().next().is_some() || (in_turn && last.user_text().is_some());
        self.messages.len() - usize::from(self.messages.last().is_some_and(open))
    }

    /// Brings everything to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), WriteError> {
        self.file.sync()
    }

    fn apply(&mut self, record: Record) -> Result<(), WriteError> {
        self.file.append(&record)?;
        self.take(record);
        Ok(())
    }

    /// What a record means for what is in memory.
    fn take(&mut self, record: Record) {
        match record {
            Record::Message { message } => {
                self.files.named(&message);
                self.gauge.add(&message);
                self.messages.push(Arc::new(message));
            }
            Record::Model { model } => self.model = model,
            Record::Usage { usage, aside } => {
                self.totals.add(&usage);
                let model = usage.model.as_ref().unwrap_or(&self.model).clone();
                self.by_model.entry(model).or_default().add(&usage);
                if !aside {
                    self.gauge.counted(&usage);
                }
            }
            Record::Compacted { count, messages } => {
                let count = count.min(self.messages.len());
                self.messages.splice(..count, messages.into_iter().map(Arc::new));
                self.gauge.restart(&self.messages);
                self.compactions += 1;
            }
            Record::TurnStart { number, .. } => (self.turns, self.in_turn) = (number, true),
            Record::TurnEnd { .. } => self.in_turn = false,
            Record::Session { .. } | Record::Unknown => {}
        }
    }

    /// Answers calls that a crash, or a full disk, left without an answer.
    fn close_dangling_calls(&mut self) -> Result<(), WriteError> {
        let Some(last) = self.messages.last() else { return Ok(()) };
        let results: Vec<Block> = last
            .calls()
            .map(|id| Block::ToolResult {
                tool_use_id: id.to_owned(),
                content: CUT_SHORT.to_owned(),
                is_error: true,
            })
            .collect();
        if results.is_empty() { Ok(()) } else { self.push(Message::results(results)) }
    }
}
