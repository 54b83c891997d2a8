//! Events of the bus under the names that front ends know: the six of the mapping, and two of ours for a run's two ends.
//!
//! ```text
//! {"namespace":"helios.agui.v1","name":"ui.agent.progress","source_event_id":"evt_…","topic":"agent.run.progress",
//!  "seq":12,"sequence":3,"ts":"…","payload":{…}}
//! ```
//!
//! The payload is that of the event, byte for byte; one too large for a frame is left out and its size told.

use std::io::Write;

use serde::Deserialize;
use serde_json::value::RawValue;
use swb_proto::event::{EventEnvelope, Gap};

use super::wire::NAMESPACE;

/// The largest payload that is sent on.
pub(super) const LARGEST_PAYLOAD: usize = 512 * 1024;

pub(super) const STREAM_DELTA: &str = "ui.stream.delta";
pub(super) const AGENT_STARTED: &str = "ui.agent.started";
pub(super) const AGENT_PROGRESS: &str = "ui.agent.progress";
pub(super) const AGENT_COMPLETED: &str = "ui.agent.completed";
pub(super) const APPROVAL_REQUIRED: &str = "ui.approval.required";
pub(super) const APPROVAL_RESULT: &str = "ui.approval.result";
pub(super) const SYSTEM_NOTICE: &str = "ui.system.notice";
pub(super) const ERROR: &str = "ui.error";

/// The name of an event for front ends; none for what does not concern them.
pub(crate) fn name_of(event: &EventEnvelope) -> Option<&'static str> {
    let topic = event.topic.as_str();
    Some(match topic {
        "terminal.output" => STREAM_DELTA,
        "agent.run.started" => AGENT_STARTED,
        "agent.run.progress" => AGENT_PROGRESS,
        "agent.run.completed" => AGENT_COMPLETED,
        // That somebody ended a run is no error.
        "agent.run.failed" if was_cancelled(event) => SYSTEM_NOTICE,
        "agent.run.failed" | "renderer.switch.failed" => ERROR,
        "agent.run.queued" | "agent.run.dropped" => SYSTEM_NOTICE,
        "approval.requested" => APPROVAL_REQUIRED,
        "approval.resolved" => APPROVAL_RESULT,
        _ => match topic.split('.').next() {
            Some("terminal" | "session" | "renderer" | "share" | "workspace" | "project" | "bus") => {
                SYSTEM_NOTICE
            }
            _ => return None,
        },
    })
}

fn was_cancelled(event: &EventEnvelope) -> bool {
    #[derive(Deserialize)]
    struct Ended {
        #[serde(default)]
        cancelled: bool,
    }
    serde_json::from_str::<Ended>(event.payload.get()).is_ok_and(|ended| ended.cancelled)
}

/// Appends an event under its name. Ids and topics have a grammar that needs no escapes.
pub(crate) fn write(out: &mut Vec<u8>, name: &str, event: &EventEnvelope) {
    let EventEnvelope { id, topic, seq, ts, .. } = event;
    let _ = write!(
        out,
        "{{\"namespace\":\"{NAMESPACE}\",\"name\":\"{name}\",\"source_event_id\":\"{id}\",\"topic\":\"{topic}\",\"seq\":{seq}",
    );
    if let Some(sequence) = event.sequence {
        let _ = write!(out, ",\"sequence\":{sequence}");
    }
    let _ = write!(out, ",\"ts\":\"{ts}\"");
    let ids = [
        ("workspace_id", event.workspace_id.as_ref().map(|id| id.as_str())),
        ("session_id", event.session_id.as_ref().map(|id| id.as_str())),
        ("terminal_id", event.terminal_id.as_ref().map(|id| id.as_str())),
        ("correlation_id", event.correlation_id.as_ref().map(|id| id.as_str())),
    ];
    for (key, id) in ids {
        if let Some(id) = id {
            let _ = write!(out, ",\"{key}\":\"{id}\"");
        }
    }
    out.extend_from_slice(b",\"payload\":");
    payload(out, &event.payload);
    out.push(b'}');
}

/// Appends a range that this reader does not get.
pub(crate) fn write_gap(out: &mut Vec<u8>, gap: &Gap) {
    let _ =
        write!(out, "{{\"namespace\":\"{NAMESPACE}\",\"name\":\"{SYSTEM_NOTICE}\",\"topic\":\"bus.gap\",");
    let _ = write!(out, "\"seq\":{},\"payload\":", gap.to);
    serde_json::to_writer(&mut *out, gap).unwrap_or_default();
    out.push(b'}');
}

/// Appends that these pieces of a run's progress are no longer kept.
pub(super) fn write_lost(out: &mut Vec<u8>, run_id: &str, (from, to): (u64, u64)) {
    let _ =
        write!(out, "{{\"namespace\":\"{NAMESPACE}\",\"name\":\"{SYSTEM_NOTICE}\",\"topic\":\"bus.gap\",");
    let _ = write!(out, "\"payload\":{{\"run_id\":\"{run_id}\",\"from_step\":{from},\"to_step\":{to}}}}}");
}

/// A line break between two words of JSON would end a line of the stream.
fn payload(out: &mut Vec<u8>, payload: &RawValue) {
    let text = payload.get();
    if text.len() > LARGEST_PAYLOAD {
        let _ = write!(out, "{{\"omitted_bytes\":{}}}", text.len());
    } else if text.contains(['\n', '\r']) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        serde_json::to_writer(&mut *out, &value).unwrap_or_default();
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}
