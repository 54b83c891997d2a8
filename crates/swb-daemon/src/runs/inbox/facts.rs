//! What others can find out about the delivery of a message: the cursor of the agent beside the bus, and events.
//!
//! The reader `agent.SESSION` has read what was given to the agent, and acknowledged what the agent is done with or what
//! will never reach it. Events say what became of each message, and are recorded.

use serde_json::json;
use swb_bus::topics::Topics;
use swb_journal::audit::{AuditReader, Looked};
use swb_journal::message_bus::{BusOptions, BusPath, MessageBus};
use swb_proto::{Actor, BusError};

use super::kept::Marks;
use crate::runs::agent::Place;
use crate::runs::kept::KeptRun;

const DELIVERED: &str = "agent.message.delivered";
const ACCEPTED: &str = "agent.message.accepted";
const REFUSED: &str = "agent.message.refused";
const HELD: &str = "agent.message.held";
/// How many records one look passes over.
const RECORDS: usize = 1024;

/// A message, as events tell of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) run: &'a KeptRun,
    pub(super) msg_id: &'a str,
    pub(super) kind: &'a str,
    pub(super) actor: &'a Actor,
}

impl About<'_> {
    /// The agent has it.
    pub(super) fn delivered(&self, topics: &Topics, steers: bool, is_data: bool) {
        let how = if steers { "steer" } else { "follow_up" };
        self.tell(topics, DELIVERED, json!({ "how": how, "as_data": is_data }));
    }

    /// The agent is done with it.
    pub(super) fn accepted(&self, topics: &Topics) {
        self.tell(topics, ACCEPTED, json!({}));
    }

    /// It will not reach the agent.
    pub(super) fn refused(&self, topics: &Topics, error: &BusError) {
        let message = swb_rules::redact::redact(&error.message).text;
        self.tell(topics, REFUSED, json!({ "error": { "code": error.code, "message": message } }));
    }

    /// It waits for a person.
    pub(super) fn held(&self, topics: &Topics, in_a_row: u32) {
        self.tell(topics, HELD, json!({ "in_a_row": in_a_row }));
    }

    fn tell(&self, topics: &Topics, topic: &'static str, mut payload: serde_json::Value) {
        payload["run_id"] = json!(self.run.id());
        payload["msg_id"] = json!(self.msg_id);
        payload["type"] = json!(self.kind);
        if let Err(error) = topics.publish(topic, &self.run.scope(), Some(self.actor), &payload) {
            tracing::warn!(%error, topic, "not published");
        }
    }

    /// Whether it was told that the agent has it: a daemon may have died in between.
    pub(super) fn is_told(&self, audit: &std::path::Path) -> bool {
        let Ok(mut events) = AuditReader::new(audit).events_after(self.run.after) else { return false };
        loop {
            match events.look(RECORDS) {
                Ok(Looked::Found(record)) => {
                    let payload = record.entry.payload.as_ref();
                    let is = |key: &str, value: &str| {
                        payload.and_then(|payload| payload.text(key)).is_some_and(|text| text == value)
                    };
                    if record.entry.topic.as_deref() == Some(DELIVERED)
                        && is("msg_id", self.msg_id)
                        && is("run_id", self.run.id().as_str())
                    {
                        return true;
                    }
                }
                Ok(Looked::NotYet) => {}
                Ok(Looked::End) | Err(_) => return false,
            }
        }
    }
}

/// The bus of a session's task.
pub(super) fn bus_of(place: &Place) -> Option<MessageBus> {
    let (root, project) = (place.message_bus.parent()?, place.message_bus.file_name()?.to_str()?);
    let path = BusPath::in_root(root, project, Some(&place.session));
    let path = path.inspect_err(|error| tracing::warn!(%error, "a session has no bus")).ok()?;
    Some(MessageBus::new(path, BusOptions::default()))
}

/// Moves the cursor of a session's agent. Waits for the disk.
pub(super) fn mark(bus: &MessageBus, session: &str, marks: &Marks) {
    let reader = format!("agent.{session}");
    let read = marks.read.as_ref().map(|id| bus.mark_read(&reader, id));
    let acked = marks.acked.as_ref().map(|id| bus.acknowledge(&reader, id));
    for error in [read, acked].into_iter().flatten().filter_map(Result::err) {
        tracing::warn!(%error, "how far a message came could not be noted beside its bus");
    }
}
