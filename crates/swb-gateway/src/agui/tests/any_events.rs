//! Whatever happens on the bus, in whatever order, a client takes the stream.

use proptest::prelude::*;
use serde_json::{Value, json};
use swb_proto::EventEnvelope;

use super::bus::{self, RUN, SESSION, event, translator};
use super::verifier::{events, judge};
use crate::agui::{Dialect, Standing};

#[derive(Debug, Clone)]
enum Act {
    Event(Box<EventEnvelope>),
    Start,
    Interrupt,
    Fail,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("a\r\nb\n\ndata: x".to_owned()), "\\PC{0,12}", "[a-z ]{1,6}"]
}

fn tool() -> impl Strategy<Value = Value> {
    let status = prop::sample::select(vec!["started", "arguments", "called", "output", "done"]);
    (prop::sample::select(vec!["c1", "c2", "c3", ""]), status, text(), any::<bool>()).prop_map(
        |(call, status, text, with_args)| {
            let mut tool = json!({ "name": "bash", "call_id": call, "status": status });
            match status {
                "arguments" | "output" => tool["delta"] = text.into(),
                "called" if with_args => tool["args"] = json!({ "command": text }),
                "done" => tool["result"] = text.into(),
                _ => {}
            }
            json!({ "kind": "tool", "tool": tool })
        },
    )
}

fn subagent() -> impl Strategy<Value = Value> {
    let paths = vec![vec![], vec![1_u64], vec![2], vec![1, 1], vec![1, 2], vec![3, 1]];
    let states = vec!["started", "working", "done", "failed", "cancelled"];
    (prop::sample::select(paths), prop::sample::select(states), prop::option::of(text())).prop_map(
        |(path, state, preview)| {
            let mut subagent = json!({ "path": path, "name": "scout", "state": state });
            if let Some(preview) = preview {
                subagent["preview"] = preview.into();
            }
            json!({ "kind": "subagent", "subagent": subagent })
        },
    )
}

fn plan() -> impl Strategy<Value = Value> {
    let paths = vec![vec![], vec![1_u64], vec![1, 2], vec![9]];
    let step =
        (text(), prop::sample::select(vec!["pending", "in_progress", "completed", "of a later version"]))
            .prop_map(|(text, status)| json!({ "text": text, "status": status }));
    (prop::sample::select(paths), prop::collection::vec(step, 0..4), prop::option::of(text())).prop_map(
        |(path, steps, note)| {
            let mut plan =
                json!({ "kind": "plan", "call_id": "c1", "path": path, "steps": steps, "percent": 7 });
            if let Some(note) = note {
                plan["note"] = note.into();
            }
            plan
        },
    )
}

fn progress() -> impl Strategy<Value = Value> {
    let usage = json!({ "input_tokens": 1, "output_tokens": u64::MAX });
    prop_oneof![
        4 => text().prop_map(|delta| json!({ "kind": "text", "delta": delta })),
        3 => text().prop_map(|delta| json!({ "kind": "thinking", "delta": delta })),
        6 => tool(),
        4 => subagent(),
        3 => plan(),
        1 => text().prop_map(|text| json!({ "kind": "input", "text": text, "how": "steer", "from": "user_local" })),
        1 => Just(json!({ "kind": "usage", "usage": usage })),
        1 => Just(json!({ "kind": "notice", "name": "restarted", "message": "m" })),
        1 => Just(json!({ "kind": "of a later version", "delta": 7 })),
        1 => Just(json!({ "kind": "tool", "tool": { "call_id": 7 } })),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let payload = (progress(), 1_u64..99, prop::bool::weighted(0.9)).prop_map(|(what, step, ours)| {
        let mut progress = bus::progress(step, what);
        if !ours {
            let other = progress.payload.get().replace(RUN, "run_2");
            progress.payload = serde_json::value::RawValue::from_string(other).unwrap();
        }
        Act::Event(progress.into())
    });
    let approvals = (prop::sample::select(vec!["apr_1", "apr_2"]), any::<bool>(), any::<bool>()).prop_map(
        |(id, resolved, ours)| {
            let session = if ours { SESSION } else { "sess_2" };
            Act::Event(Box::new(if resolved {
                let payload = json!({
                    "approval_id": id, "status": "approved", "resolved_by": "user_local", "reason": null,
                    "resolved_at": "2026-02-26T00:00:00.080Z",
                });
                event(7, "approval.resolved", Some(session), &payload.to_string())
            } else {
                bus::approval(7, id, session, &[])
            }))
        },
    );
    let topics = vec![
        "terminal.output",
        "session.attached",
        "renderer.switch.failed",
        "audit.recorded",
        "agent.run.started",
        "agent.run.completed",
        "agent.run.failed",
        "agent.run.progress",
        "agent.run.dropped",
        "approval.requested",
    ];
    let payloads = vec!["{}", "{\n \"chunk\": \"x\"\r\n}", "{\"run_id\":\"run_1\"}", "{\"run_id\":7}"];
    let odd = (prop::sample::select(topics), prop::sample::select(payloads))
        .prop_map(|(topic, payload)| Act::Event(event(9, topic, Some(SESSION), payload).into()));
    prop_oneof![
        40 => payload,
        4 => approvals,
        3 => odd,
        1 => Just(Act::Event(bus::completed(8).into())),
        1 => any::<bool>().prop_map(|cancelled| Act::Event(bus::failed(8, cancelled).into())),
        2 => Just(Act::Start),
        1 => Just(Act::Interrupt),
        1 => Just(Act::Fail),
    ]
}

fn stream(dialect: Dialect, acts: &[Act]) -> Vec<u8> {
    let mut translator = translator(dialect);
    for act in acts {
        match act {
            Act::Event(event) => {
                let standing = translator.translate(event);
                assert_eq!(standing == Standing::Over, translator.is_over());
            }
            Act::Start => translator.start(),
            Act::Interrupt => translator.interrupt(),
            Act::Fail => translator.fail("X", "gone"),
        }
    }
    translator.fail("LATE", "the test is over");
    translator.take().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn every_client_takes_every_stream(acts in prop::collection::vec(act(), 0..60), early in prop::bool::weighted(0.9)) {
        let acts: Vec<_> = early.then_some(Act::Start).into_iter().chain(acts).collect();
        for dialect in [Dialect::One, Dialect::Older] {
            let bytes = stream(dialect, &acts);
            let events = events(&bytes);
            prop_assert!(events.is_ok(), "{:?}", events);
            let judged = judge(dialect, &events.unwrap_or_default(), true);
            prop_assert!(judged.is_ok(), "{:?}: {}", judged, String::from_utf8_lossy(&bytes));
            prop_assert_eq!(bytes, stream(dialect, &acts), "the same events give the same bytes");
        }
    }
}
