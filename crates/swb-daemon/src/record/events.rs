//! Events: what everybody may see of them, which are kept, and how they are read back.
//!
//! Kept are events that tell what became of something; what only shows it moving (deltas, progress, output) is not, and
//! neither is what the record says about itself, so that no record causes another one.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use swb_bus::topics::{Event, Keeper, Kept, KeptEvents};
use swb_journal::audit::{AuditReader, Entry, Events, Json, Looked, Moment, Record, RecordedActor};
use swb_proto::event::EventType;
use swb_proto::{Actor, EventEnvelope, Timestamp, Topic};
use swb_rules::redact::{is_plain_json, redact_json};

use super::{Recorder, shown};

/// What the record says about itself.
pub(super) const RECORDED: &str = "audit.recorded";

/// The first names of topics whose events are kept.
const KEPT: &[&str] = &[
    "agent",
    "approval",
    "audit",
    "bus",
    "checkpoint",
    "grant",
    "lane",
    "lock",
    "policy",
    "project",
    "renderer",
    "run",
    "secrets",
    "session",
    "share",
    "terminal",
    "trust",
    "workspace",
];

/// The last names of topics that only show something moving.
const MOVING: &[&str] = &["chunk", "delta", "output", "progress", "token", "usage"];

/// How many records one look passes over.
const RECORDS: usize = 256;

impl Keeper for Recorder {
    fn show(&self, _topic: &str, payload: Box<RawValue>) -> Box<RawValue> {
        if is_plain_json(payload.get()) {
            return payload;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(payload.get()) else { return payload };
        if redact_json(&mut value).is_empty() {
            return payload;
        }
        serde_json::value::to_raw_value(&value).unwrap_or(payload)
    }

    fn keeps(&self, topic: &str) -> bool {
        is_kept(topic)
    }

    fn keep(&self, events: &[Arc<Event>]) -> usize {
        // Nobody waits for it: what has to be synced is written in order, before the end of whatever caused it.
        let is_lost = |event: &&Arc<Event>| {
            let recorded = self.log.append(&entry_of(event.envelope()));
            recorded
                .inspect_err(
                    |error| tracing::error!(%error, topic = event.topic(), "an event was not recorded"),
                )
                .is_err()
        };
        events.iter().filter(is_lost).count()
    }

    fn last_kept(&self) -> u64 {
        self.log.last_event()
    }

    fn kept_after(&self, seq: u64) -> Option<Box<dyn KeptEvents>> {
        match AuditReader::new(self.log.folder()).events_after(seq) {
            Ok(events) => Some(Box::new(FromLog(events))),
            Err(error) => {
                tracing::error!(%error, "recorded events cannot be read");
                None
            }
        }
    }
}

/// Whether events of a topic are recorded.
pub(super) fn is_kept(topic: &str) -> bool {
    let first = topic.split('.').next().unwrap_or_default();
    let last = topic.rsplit('.').next().unwrap_or_default();
    topic != RECORDED && KEPT.contains(&first) && !MOVING.contains(&last)
}

fn entry_of(event: &EventEnvelope) -> Entry {
    let text = |id: &str| id.to_owned();
    let at = Moment::parse(event.ts.as_str()).unwrap_or_else(Moment::now);
    let actor = event
        .actor
        .as_ref()
        .map(|actor| RecordedActor { kind: text(actor.kind.as_str()), id: text(actor.id.as_str()) });
    Entry {
        actor,
        workspace_id: event.workspace_id.as_ref().map(|id| text(id.as_str())),
        lane_id: event.lane_id.as_ref().map(|id| text(id.as_str())),
        session_id: event.session_id.as_ref().map(|id| text(id.as_str())),
        terminal_id: event.terminal_id.as_ref().map(|id| text(id.as_str())),
        correlation_id: event.correlation_id.as_ref().map(|id| text(id.as_str())),
        event_id: Some(text(event.id.as_str())),
        sequence: event.sequence,
        // It was redacted before it was published.
        payload: Some(shown::bounded_if_long(event.payload.clone())),
        ..Entry::event(at, event.topic.as_str(), event.seq)
    }
}

#[derive(Debug)]
struct FromLog(Events);

impl KeptEvents for FromLog {
    fn next(&mut self) -> Kept {
        match self.0.look(RECORDS) {
            Ok(Looked::Found(record)) => match envelope_of(*record) {
                Some(event) => Kept::Event(Box::new(event)),
                // Written by a version whose words this one does not know.
                None => Kept::KeepLooking,
            },
            Ok(Looked::NotYet) => Kept::KeepLooking,
            Ok(Looked::End) => Kept::End,
            Err(swb_journal::audit::AuditReadError::Damaged { .. }) => Kept::KeepLooking,
            Err(error) => {
                tracing::error!(%error, "recorded events cannot be read on");
                Kept::End
            }
        }
    }
}

fn envelope_of(record: Record) -> Option<EventEnvelope> {
    let entry = record.entry;
    Some(EventEnvelope {
        subscription: None,
        id: entry.event_id?.try_into().ok()?,
        r#type: EventType::Event,
        topic: Topic::try_from(entry.topic?).ok()?,
        ts: Timestamp::try_from(entry.at.to_string()).ok()?,
        seq: entry.event_seq?,
        sequence: entry.sequence,
        actor: entry.actor.and_then(|actor| Actor::new(&actor.kind, &actor.id).ok()),
        workspace_id: entry.workspace_id.and_then(|id| id.try_into().ok()),
        lane_id: entry.lane_id.and_then(|id| id.try_into().ok()),
        session_id: entry.session_id.and_then(|id| id.try_into().ok()),
        terminal_id: entry.terminal_id.and_then(|id| id.try_into().ok()),
        correlation_id: entry.correlation_id.and_then(|id| id.try_into().ok()),
        payload: entry.payload.map_or_else(|| RawValue::NULL.to_owned(), Json::into_raw),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_something_is_kept_and_what_moves_is_not() {
        for topic in [
            "session.created",
            "approval.requested",
            "approval.resolved",
            "agent.run.completed",
            "project.clone.failed",
            "policy.rules.updated",
            "share.session.started",
            "workspace.opened",
            "audit.retention.deleted",
            "bus.ready",
        ] {
            assert!(is_kept(topic), "{topic}");
        }
        for topic in [
            RECORDED,
            "agent.run.progress",
            "terminal.output",
            "agent.text.delta",
            "project.clone.progress",
            "message.posted",
            "diagnostics.metric",
            "rpc.call",
        ] {
            assert!(!is_kept(topic), "{topic}");
        }
    }
}
