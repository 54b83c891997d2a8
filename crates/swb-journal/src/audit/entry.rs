//! What a caller has recorded: the start or the end of a command, or an event.
//!
//! An entry is flat JSON, so that a line can be read with any tool. What stands in `args`, `attributes`, `result`,
//! `message` and `payload` has been redacted by the caller; `redacted` names the rules that found something. The words
//! of protocols (methods, topics, ids) are text here: the log keeps them and knows nothing about them.

use serde::{Deserialize, Serialize};

use super::hold::Hold;
use super::json::Json;
use super::key::ArgumentsHash;
use super::moment::Moment;
use super::purge::PurgeProof;
use super::recover::Cut;

/// What sort of thing a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A command begins.
    Start,
    /// A command has ended; `of` is the number of its start.
    End,
    /// Something happened.
    Event,
    /// Records are to be kept until the hold is released.
    Hold,
    /// A hold is over.
    Release,
    /// Segments were removed; what they held can be proven against this record.
    Purge,
    /// A torn tail was cut when the log was opened.
    Recovered,
    /// A kind that a later version writes.
    #[serde(other)]
    Other,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It worked.
    Ok,
    /// It was carried out and failed.
    Error,
    /// It was not allowed.
    Denied,
    /// It, or the approval it needed, took too long.
    TimedOut,
    /// Whoever asked for it took it back.
    Cancelled,
    /// Nobody knows: the daemon ended in between.
    Interrupted,
    /// A status that a later version writes.
    #[serde(other)]
    Other,
}

/// Who acted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedActor {
    /// The sort of actor: `user`, `agent`, `service`, …
    pub kind: String,
    /// Which one.
    pub id: String,
}

/// Why a command was let through, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDecision {
    /// The decision.
    pub id: String,
    /// What it was, e.g. `permit`, `deny`, `approved`.
    pub outcome: String,
    /// The rules that spoke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The approval it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

/// One thing to record. Made with [`Entry::start`], [`Entry::end`] or [`Entry::event`], then filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What sort of thing it is about.
    pub kind: Kind,
    /// Of an end: the number of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// When, by the wall clock.
    pub at: Moment,
    /// Of a command: what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Of an event: what it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Of an end: how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Who acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<RecordedActor>,
    /// What it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What that is part of in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_correlation_id: Option<String>,
    /// In which workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// In which lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane_id: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// On which terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_id: Option<String>,
    /// Of a command: the id its sender gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// Of a command: why it was let through, or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RecordedDecision>,
    /// Of a command: the keyed hash of its arguments as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<ArgumentsHash>,
    /// Of a command: its arguments, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// What the decision was made on, so that another one can be tried on it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Json>,
    /// Of an end: what came of it, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Of an end: the code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Of an end: the words of the error, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of an end: how long it took, by a clock that is never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Of an event: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Of an event: its place among all events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_seq: Option<u64>,
    /// Of an event: its place within its topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Of an event: the facts, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// The rules of redaction that found something in this entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// Of a hold: what it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Of a release: the hold that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Of a purge: the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<Box<PurgeProof>>,
    /// Of a recovery: what was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Cut>,
}

impl Entry {
    /// A command begins.
    #[must_use]
    pub fn start(at: Moment, method: impl Into<String>) -> Self {
        Entry { method: Some(method.into()), ..Self::bare(Kind::Start, at) }
    }

    /// A command has ended. The ids of its start are repeated, so that each record can be found by them.
    #[must_use]
    pub fn end(at: Moment, of: u64, status: Status, start: &Entry) -> Self {
        Entry {
            of: Some(of),
            status: Some(status),
            method: start.method.clone(),
            actor: start.actor.clone(),
            correlation_id: start.correlation_id.clone(),
            parent_correlation_id: start.parent_correlation_id.clone(),
            workspace_id: start.workspace_id.clone(),
            lane_id: start.lane_id.clone(),
            session_id: start.session_id.clone(),
            terminal_id: start.terminal_id.clone(),
            command_id: start.command_id.clone(),
            decision: start.decision.clone(),
            ..Self::bare(Kind::End, at)
        }
    }

    /// The same of a start that is no longer needed: its ids move on, its arguments stay behind.
    #[must_use]
    pub fn into_end(self, at: Moment, of: u64, status: Status) -> Self {
        Entry {
            kind: Kind::End,
            of: Some(of),
            at,
            status: Some(status),
            args_hash: None,
            args: None,
            attributes: None,
            redacted: Vec::new(),
            ..self
        }
    }

    /// Something happened. `event_seq` is its place among all events, by which replays begin.
    #[must_use]
    pub fn event(at: Moment, topic: impl Into<String>, event_seq: u64) -> Self {
        Entry { topic: Some(topic.into()), event_seq: Some(event_seq), ..Self::bare(Kind::Event, at) }
    }

    pub(super) fn bare(kind: Kind, at: Moment) -> Self {
        Entry {
            kind,
            of: None,
            at,
            method: None,
            topic: None,
            status: None,
            actor: None,
            correlation_id: None,
            parent_correlation_id: None,
            workspace_id: None,
            lane_id: None,
            session_id: None,
            terminal_id: None,
            command_id: None,
            decision: None,
            args_hash: None,
            args: None,
            attributes: None,
            result: None,
            error_code: None,
            message: None,
            duration_us: None,
            event_id: None,
            event_seq: None,
            sequence: None,
            payload: None,
            redacted: Vec::new(),
            hold: None,
            release: None,
            purge: None,
            recovered: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_same_whether_its_start_is_kept_or_not() {
        let start = Entry {
            actor: Some(RecordedActor { kind: "user".to_owned(), id: "ada".to_owned() }),
            session_id: Some("sess_1".to_owned()),
            command_id: Some("7".to_owned()),
            args: Some(serde_json::Value::Bool(true).into()),
            attributes: Some(serde_json::Value::Bool(true).into()),
            redacted: vec!["jwt".to_owned()],
            ..Entry::start(Moment::default(), "a.b")
        };
        let at = Moment::from_unix_millis(1);
        assert_eq!(Entry::end(at, 7, Status::Error, &start), start.into_end(at, 7, Status::Error));
    }
}
