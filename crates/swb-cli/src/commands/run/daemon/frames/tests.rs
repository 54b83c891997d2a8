//! What events of a run become.

use serde_json::Value;

use super::*;

const RUN: &str = "run_1";
const SESSION: &str = "sess_1";

fn teller(attended: Attended) -> Teller {
    let run = RunId::try_from(RUN.to_owned()).unwrap();
    Teller::new(run, SessionId::try_from(SESSION.to_owned()).unwrap(), attended)
}

fn event(topic: &str, payload: &Value) -> EventEnvelope {
    event_at(topic, payload, SESSION, "2026-01-01T00:00:00.000Z")
}

fn event_at(topic: &str, payload: &Value, session: &str, ts: &str) -> EventEnvelope {
    serde_json::from_value(json!({
        "id": "evt_1", "type": "event", "topic": topic, "ts": ts, "seq": 7, "session_id": session, "payload": payload,
    }))
    .unwrap()
}

fn progress(mut what: Value) -> EventEnvelope {
    what["run_id"] = RUN.into();
    what["step"] = 1.into();
    event("agent.run.progress", &what)
}

fn answer(frames: &[Frame]) -> &BTreeMap<String, Value> {
    match frames.last() {
        Some(Frame::Contract(Event::Response { id, body, .. })) if id == ID => body,
        other => panic!("{other:?}"),
    }
}

fn approval() -> Value {
    json!({
        "approval_id": "apr_1", "status": "pending", "action": "tool.bash",
        "actor": { "kind": "agent", "id": "sess_1" }, "audience": ["helper", "sess_1"],
        "subject": { "command": "rm -rf x", "cwd": "/w" }, "reason": "it deletes", "risk": "medium",
        "rules": ["r"], "containment": "enforced", "options": ["allow", "allow_for_session", "deny"],
        "requested_at": "2026-01-01T00:00:00.000Z", "timeout_at": "2026-01-01T00:15:00.000Z",
        "timeout_action": "deny",
    })
}

fn resolved(status: &str, by: Option<&str>) -> EventEnvelope {
    let payload = json!({
        "approval_id": "apr_1", "status": status, "resolved_by": by, "reason": null,
        "resolved_at": "2026-01-01T00:00:01.000Z",
    });
    event("approval.resolved", &payload)
}

#[test]
fn a_run_is_told_like_an_agent_of_our_own() {
    let mut teller = teller(Attended::Here);
    let started = json!({ "run_id": RUN, "prompt_hash": "h", "agent": "builtin", "model": "demo" });
    let told = teller.tell(&event("agent.run.started", &started));
    assert!(matches!(&told.frames[..], [Frame::Contract(Event::Ready { model, .. })] if model == "demo"));
    let told = teller.tell(&progress(json!({ "kind": "text", "delta": "hi" })));
    let update = AssistantEvent::TextDelta { delta: "hi".to_owned() };
    assert_eq!(told.frames, [Frame::Contract(Event::MessageUpdate { event: update })]);
    let tool = |status: &str, more: &str, value: Value| {
        let mut tool = json!({ "name": "bash", "call_id": "c", "status": status });
        tool[more] = value;
        progress(json!({ "kind": "tool", "tool": tool }))
    };
    teller.tell(&tool("started", "args", json!(null)));
    let told = teller.tell(&tool("done", "result", "out".into()));
    let result = AssistantEvent::ToolcallResult { tool_id: "c".to_owned(), result: "out".to_owned() };
    assert_eq!(told.frames, [Frame::Contract(Event::MessageUpdate { event: result })]);
    let told = teller.tell(&tool("output", "delta", "x".into()));
    assert!(
        matches!(&told.frames[1..], [Frame::Added(AddedEvent::ToolOutput { delta, .. })] if delta == "x")
    );
    let begun = &told.frames[0];
    assert!(
        matches!(
            begun,
            Frame::Contract(Event::MessageUpdate { event: AssistantEvent::ToolcallStart { .. } })
        ),
        "a call that was under way before we came begins when we hear of it"
    );
    let end = json!({
        "run_id": RUN, "result": "hi", "duration_ms": 5,
        "usage": { "input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5 },
    });
    let told = teller.tell(&event("agent.run.completed", &end));
    assert_eq!((&answer(&told.frames)["ok"], teller.is_over()), (&json!(true), true));
    let Frame::Contract(Event::Response { body, .. }) = teller.stats("s".to_owned()) else { panic!() };
    assert_eq!((&body["cost"], &body["session_id"]), (&json!(0.5), &json!(SESSION)));
    let late = teller.tell(&progress(json!({ "kind": "text", "delta": "late" })));
    assert_eq!(late, Told::default(), "nothing comes behind the end");
}

#[test]
fn what_is_not_ours_is_not_told() {
    let mut teller = teller(Attended::Here);
    let other = json!({ "run_id": "run_2", "step": 1, "kind": "text", "delta": "x" });
    assert_eq!(teller.tell(&event("agent.run.progress", &other)), Told::default());
    let elsewhere = event_at("approval.requested", &approval(), "sess_2", "2026-01-01T00:00:00.000Z");
    assert_eq!(teller.tell(&elsewhere), Told::default());
    assert_eq!(teller.tell(&event("agent.run.progress", &json!({}))), Told::default());
    assert!(!teller.is_over());
}

#[test]
fn an_end_says_whether_somebody_wanted_it() {
    for cancelled in [false, true] {
        let mut teller = teller(Attended::Here);
        let error = ErrorEnvelope::from(swb_proto::BusError::new(swb_proto::error::ERR_INTERNAL, "enough"));
        let end = json!({ "run_id": RUN, "error": error, "cancelled": cancelled });
        let told = teller.tell(&event("agent.run.failed", &end));
        let body = answer(&told.frames);
        assert_eq!(
            (&body["ok"], &body["cancelled"], &body["error"]),
            (&json!(false), &json!(cancelled), &json!("enough"))
        );
    }
}

#[test]
fn an_approval_is_a_question_that_somebody_else_may_answer() {
    let mut teller = teller(Attended::Here);
    let told = teller.tell(&event("approval.requested", &approval()));
    let [Frame::Added(AddedEvent::Ask { ask_id, subject, risk, options, .. })] = &told.frames[..] else {
        panic!("{told:?}")
    };
    assert_eq!((ask_id.as_str(), risk.as_str()), ("apr_1", "medium"));
    assert_eq!(options, &["allow", "allow_for_session", "deny"]);
    assert_eq!((&subject["tool"], &subject["arguments"]["command"]), (&json!("bash"), &json!("rm -rf x")));
    assert_eq!(subject["agents"], json!(["helper"]));
    assert!(subject["details"].as_str().unwrap().contains("00:15:00"));
    let told = teller.tell(&resolved("approved", Some("ada")));
    let closed = AddedEvent::AskClosed { ask_id: "apr_1".to_owned(), outcome: "approved by ada".to_owned() };
    assert_eq!(told.frames, [Frame::Added(closed)]);
}

#[test]
fn what_is_denied_because_nobody_is_there_is_counted_and_not_asked() {
    let end = json!({ "run_id": RUN, "result": "", "duration_ms": 5, "usage": { "input_tokens": 0, "output_tokens": 0 } });
    for (status, by, denied) in
        [("timed_out", None, 1), ("denied", Some("ada"), 0), ("approved", Some("ada"), 0)]
    {
        let mut teller = teller(Attended::Nobody);
        assert_eq!(teller.tell(&event("approval.requested", &approval())).frames, []);
        teller.tell(&resolved(status, by));
        let told = teller.tell(&event("agent.run.completed", &end));
        assert_eq!(answer(&told.frames)[DENIED], json!(denied), "{status}");
    }
}

#[test]
fn a_subagent_is_shown_with_its_time_and_those_below_it_at_it() {
    let mut teller = teller(Attended::Here);
    let mut say = |path: &[u64], state: &str, preview: &str, ts: &str| {
        let subagent = json!({ "path": path, "name": "helper", "state": state, "preview": preview });
        let payload = json!({ "run_id": RUN, "step": 1, "kind": "subagent", "subagent": subagent });
        teller.tell(&event_at("agent.run.progress", &payload, SESSION, ts)).frames.remove(0)
    };
    let first = say(&[1], "started", "look", "2026-01-01T00:00:00.000Z");
    assert!(matches!(first, Frame::Contract(Event::SubagentStart { subagent_id: 1, .. })));
    let below = say(&[1, 2], "started", "deeper", "2026-01-01T00:00:01.000Z");
    assert!(
        matches!(&below, Frame::Contract(Event::SubagentUpdate { subagent_id: 1, status, .. }) if status == "helper: deeper")
    );
    let done = say(&[1], "failed", "no", "2026-01-01T00:00:02.500Z");
    let Frame::Contract(Event::SubagentDone { result_preview, duration_secs, .. }) = done else { panic!() };
    assert_eq!((result_preview.as_str(), (duration_secs * 10.0).round()), ("ERROR: no", 25.0));
}

#[test]
fn a_piece_that_is_missing_is_noticed() {
    let mut teller = teller(Attended::Here);
    let mut at = |step: u64| {
        let payload = json!({ "run_id": RUN, "step": step, "kind": "text", "delta": "x" });
        teller.tell(&event("agent.run.progress", &payload)).aside
    };
    assert_eq!([at(4), at(5)], [None, None], "whoever joins late begins anywhere");
    assert!(at(8).unwrap().starts_with("2 pieces"));
    assert_eq!(at(9), None);
}

#[test]
fn a_plan_is_told_as_its_agent_has_said_it() {
    let mut teller = teller(Attended::Here);
    let steps = json!([{ "text": "look", "status": "in_progress" }]);
    let told =
        teller.tell(&progress(json!({ "kind": "plan", "call_id": "c", "steps": steps, "percent": 0 })));
    let said = json!({ "type": "plan", "tool_id": "c", "steps": steps });
    let said = AddedEvent::deserialize(&said).unwrap();
    assert_eq!(told.frames, [Frame::Added(said)]);
}
