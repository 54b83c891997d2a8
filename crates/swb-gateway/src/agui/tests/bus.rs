//! Events of the bus, made up.

use serde_json::{Value, json};
use swb_proto::EventEnvelope;

use crate::agui::{Dialect, Names, Translator};

pub(super) const RUN: &str = "run_1";
pub(super) const SESSION: &str = "sess_1";

pub(super) fn translator(dialect: Dialect) -> Translator {
    let names = Names {
        thread_id: "thread".to_owned(),
        run_id: "client-run".to_owned(),
        session_id: SESSION.to_owned(),
        bus_run_id: RUN.to_owned(),
    };
    Translator::new(dialect, names, None)
}

pub(super) fn event(seq: u64, topic: &str, session: Option<&str>, payload: &str) -> EventEnvelope {
    let mut envelope = json!({
        "id": format!("evt_{seq}"), "type": "event", "topic": topic, "ts": "2026-02-26T00:00:00.080Z",
        "seq": seq, "sequence": seq, "correlation_id": "cor_1", "terminal_id": "term_1", "payload": {},
    });
    if let Some(session) = session {
        envelope["session_id"] = session.into();
    }
    let mut event: EventEnvelope = serde_json::from_value(envelope).expect("an envelope");
    event.payload = serde_json::value::RawValue::from_string(payload.to_owned()).expect("JSON");
    event
}

pub(super) fn progress(step: u64, what: Value) -> EventEnvelope {
    let mut payload = json!({ "run_id": RUN, "step": step });
    payload.as_object_mut().expect("an object").extend(what.as_object().expect("an object").clone());
    event(step, "agent.run.progress", Some(SESSION), &payload.to_string())
}

pub(super) fn approval(seq: u64, id: &str, session: &str, audience: &[&str]) -> EventEnvelope {
    let payload = json!({
        "approval_id": id, "status": "pending", "action": "tool.bash", "actor": { "kind": "agent", "id": session },
        "audience": audience, "subject": { "command": "make" }, "reason": "it changes files", "risk": "medium",
        "containment": "enforced", "options": ["allow", "deny"], "session_id": session,
        "call_id": "c1", "requested_at": "2026-02-26T00:00:00.080Z", "timeout_at": "2026-02-27T00:00:00.080Z", "timeout_action": "deny",
    });
    event(seq, "approval.requested", Some(session), &payload.to_string())
}

pub(super) fn completed(seq: u64) -> EventEnvelope {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 2 });
    let payload = json!({ "run_id": RUN, "result": "done", "usage": usage, "duration_ms": 7 });
    event(seq, "agent.run.completed", Some(SESSION), &payload.to_string())
}

pub(super) fn failed(seq: u64, cancelled: bool) -> EventEnvelope {
    let error = json!({ "code": "POLICY_DENIED", "message": "no", "retryable": false });
    let payload = json!({ "run_id": RUN, "error": error, "cancelled": cancelled });
    event(seq, "agent.run.failed", Some(SESSION), &payload.to_string())
}
