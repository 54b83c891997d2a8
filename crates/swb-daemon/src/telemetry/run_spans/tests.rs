use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const CORRELATION: &str = "corr_1";

/// An event of the run `run_1`, at so many milliseconds.
fn event(seq: u64, at: u64, topic: &str, payload: Value) -> EventEnvelope {
    let mut payload = payload;
    payload["run_id"] = json!("run_1");
    let event = json!({
        "id": format!("evt_{seq}"), "type": "event", "topic": topic, "seq": seq, "sequence": seq,
        "ts": format!("2026-01-01T00:00:{:02}.{:03}Z", at / 1000, at % 1000),
        "session_id": "sess_1", "workspace_id": "ws_1", "correlation_id": CORRELATION, "payload": payload,
    });
    serde_json::from_value(event).unwrap()
}

fn started() -> Value {
    json!({ "prompt_hash": "h", "agent": "builtin", "model": "acme/large" })
}

fn tool(call: &str, status: &str, rest: Value) -> Value {
    let mut tool = json!({ "name": "read", "call_id": call, "status": status });
    tool.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({ "step": 1, "kind": "tool", "tool": tool })
}

fn usage(input: u64, output: u64) -> Value {
    json!({ "input_tokens": input, "output_tokens": output, "cost_usd": 0.5, "turns": 2 })
}

/// A run that asks its model, calls a tool, asks again.
fn story() -> Vec<EventEnvelope> {
    let told = "agent.run.progress";
    let lines = [
        (0, "agent.run.started", started()),
        (100, told, json!({ "step": 1, "kind": "thinking", "delta": "hm" })),
        (200, told, tool("c1", "started", json!({}))),
        (250, told, tool("c1", "called", json!({ "args": { "path": "secret.txt" } }))),
        (900, told, tool("c1", "done", json!({ "result": "two lines" }))),
        (910, told, json!({ "step": 1, "kind": "usage", "usage": usage(100, 10) })),
        (1500, told, json!({ "step": 1, "kind": "text", "delta": "There are two." })),
        (
            1600,
            "agent.run.completed",
            json!({ "result": "There are two.", "usage": usage(250, 30), "duration_ms": 1600 }),
        ),
    ];
    let numbered = lines.into_iter().zip(1..);
    numbered.map(|((at, topic, payload), seq)| event(seq, at, topic, payload)).collect()
}

fn translate(events: &[EventEnvelope], capture: bool) -> Vec<Span> {
    let (mut runs, mut out) = (RunSpans::new(capture), Vec::new());
    for event in events {
        runs.event(event, &mut out);
    }
    out
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.as_str().into_owned())
}

/// How long after its run each span began and ended, in milliseconds.
fn times(spans: &[Span]) -> Vec<(&str, i64, i64)> {
    let base = spans.iter().map(|span| span.start).min().unwrap();
    let ms = |at: Micros| (at - base) / 1000;
    spans.iter().map(|span| (span.name.as_str(), ms(span.start), ms(span.end))).collect()
}

#[test]
fn a_run_is_its_answers_and_its_calls() {
    let spans = translate(&story(), false);
    assert_eq!(
        times(&spans),
        [
            ("execute_tool read", 250, 900),
            ("chat acme/large", 0, 250),
            ("chat acme/large", 900, 1500),
            ("invoke_agent builtin", 0, 1600),
        ]
    );
    let [call, first, second, run] = &spans[..] else { panic!("{spans:?}") };
    assert!(spans.iter().all(|span| span.trace == Trace::of(CORRELATION) && span.error.is_none()));
    assert_eq!(run.parent, Some(start_span("run_1")));
    assert!([call, first, second].iter().all(|span| span.parent == Some(run.id)));
    let tokens = |span| {
        (attribute(span, names::INPUT_TOKENS).unwrap(), attribute(span, names::OUTPUT_TOKENS).unwrap())
    };
    assert_eq!(tokens(first), ("100".to_owned(), "10".to_owned()));
    assert_eq!(tokens(second), ("150".to_owned(), "20".to_owned()));
    assert_eq!(tokens(run), ("250".to_owned(), "30".to_owned()));
    assert_eq!(attribute(run, names::PROVIDER).as_deref(), Some("acme"));
    assert_eq!(attribute(run, names::CONVERSATION).as_deref(), Some("sess_1"));
    assert_eq!(attribute(call, names::TOOL_CALL).as_deref(), Some("c1"));
    assert_eq!(attribute(call, names::OUTCOME).as_deref(), Some("ok"));
}

#[test]
fn what_was_said_goes_along_only_if_it_is_wanted() {
    let said = |spans: &[Span]| {
        format!("{spans:?}").contains("secret.txt") || format!("{spans:?}").contains("two lines")
    };
    assert!(!said(&translate(&story(), false)));
    let spans = translate(&story(), true);
    assert_eq!(attribute(&spans[0], names::TOOL_ARGUMENTS).as_deref(), Some(r#"{"path":"secret.txt"}"#));
    assert_eq!(attribute(&spans[0], names::TOOL_RESULT).as_deref(), Some("two lines"));
    assert_eq!(attribute(&spans[3], names::RESULT).as_deref(), Some("There are two."));
}

#[test]
fn a_run_that_fails_says_why_and_what_was_open_with_it() {
    let mut events = story();
    events.truncate(4);
    let error = json!({ "code": "INTERNAL_ERROR", "message": "gone", "retryable": false, "details": { "reason": "AGENT_CRASHED" } });
    events.push(event(
        9,
        2000,
        "agent.run.failed",
        json!({ "error": error, "cancelled": false, "usage": usage(1, 1), "duration_ms": 2000 }),
    ));
    let spans = translate(&events, false);
    let names: Vec<_> =
        spans.iter().map(|span| (span.name.as_str(), attribute(span, names::ERROR_TYPE))).collect();
    assert_eq!(
        names,
        [
            ("chat acme/large", None),
            ("execute_tool read", Some("interrupted".to_owned())),
            ("invoke_agent builtin", Some("AGENT_CRASHED".to_owned())),
        ]
    );
}

#[test]
fn an_end_alone_is_a_run_too() {
    let events = story();
    let spans = translate(&events[7..], false);
    let whole = translate(&events, false);
    let (alone, run) = (&spans[0], &whole[3]);
    assert_eq!(spans.len(), 1);
    assert_eq!((alone.id, alone.trace, alone.start, alone.end), (run.id, run.trace, run.start, run.end));
}

#[test]
fn subagents_stand_below_one_another_and_their_calls_are_told() {
    let told = "agent.run.progress";
    let below = |path: Value, state: &str| json!({ "step": 1, "kind": "subagent", "subagent": { "path": path, "name": "helper", "state": state } });
    let call = json!({
        "tool": "web__get", "server": "web", "tool_id": "m1", "session_id": "s", "agents": ["helper"], "args_hash": "h", "args": {},
        "started_at": "2026-01-01T00:00:00.250Z", "duration_ms": 50, "outcome": "failed",
    });
    let events = [
        event(1, 0, "agent.run.started", started()),
        event(2, 100, told, below(json!([1]), "started")),
        event(3, 200, told, below(json!([1, 2]), "started")),
        event(4, 310, told, json!({ "step": 1, "kind": "mcp", "call": call })),
        event(5, 400, told, below(json!([1, 2]), "done")),
        event(6, 500, told, below(json!([1]), "failed")),
    ];
    let spans = translate(&events, false);
    let [mcp, inner, outer] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((inner.parent, outer.parent), (Some(outer.id), Some(run_span("run_1"))));
    assert_eq!((mcp.end - mcp.start, attribute(mcp, names::MCP_SERVER).as_deref()), (50_000, Some("web")));
    assert!(mcp.error.is_some() && inner.error.is_none() && outer.error.is_some());
}

proptest! {
    /// A daemon that dies at any place, and one that reads everything again from the beginning and tells what comes after
    /// that place, together tell what one would have told that lived.
    #[test]
    fn two_daemons_tell_what_one_would(died_after in 0_usize..=8, picks in prop::collection::vec(0_usize..8, 0..24)) {
        // Any events in any order, with the whole story at the end.
        let all = story();
        let events: Vec<EventEnvelope> = picks.iter().map(|at| all[*at].clone()).chain(all.clone()).collect();
        let cut = died_after.min(events.len());
        let whole = translate(&events, false);
        let (mut second, mut out) = (RunSpans::new(false), translate(&events[..cut], false));
        for (at, event) in events.iter().enumerate() {
            let mut told = Vec::new();
            second.event(event, &mut told);
            if at >= cut {
                out.extend(told);
            }
        }
        prop_assert_eq!(&out, &whole);
        prop_assert!(whole.iter().all(|span| span.end >= span.start));
    }
}
