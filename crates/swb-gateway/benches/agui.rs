//! The speed of the translator: events of a run in, frames for a client out.
//!
//! It is one core's work without any I/O, so it is a figure and not a ratio; beside it stands what the same payloads cost
//! when they are only parsed as JSON.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../../swb-bus/benches/figures/mod.rs"]
mod figures;

use std::time::Instant;

use figures::{figure, heading, is_quick, median};
use serde_json::{Value, json};
use swb_gateway::agui::{Dialect, Names, Translator};
use swb_proto::EventEnvelope;

fn main() {
    heading("AG-UI");
    let events = events();
    let rounds = if is_quick() { 20 } else { 400 };
    let mut bytes = 0;
    let ours = per_second(&events, rounds, || {
        let names = Names {
            thread_id: "thread".to_owned(),
            run_id: "run".to_owned(),
            session_id: "sess_1".to_owned(),
            bus_run_id: "run_1".to_owned(),
        };
        let mut translator = Translator::new(Dialect::One, names, None);
        translator.start();
        for event in &events {
            translator.translate(event);
        }
        bytes = translator.take().len();
    });
    let parsing = per_second(&events, rounds, || {
        for event in &events {
            let value: Value = serde_json::from_str(event.payload.get()).expect("JSON");
            std::hint::black_box(value);
        }
    });
    let wanted = if ours >= 500_000.0 { "(met)" } else { "(MISSED)" };
    figure(
        &format!("translator: events/s ({} bytes out for each)", bytes / events.len()),
        &format!("{ours:.0}"),
        &format!(">= 500000 {wanted}"),
    );
    figure("the same payloads parsed as JSON, and nothing else", &format!("{parsing:.0}"), "-");
}

fn per_second(events: &[EventEnvelope], rounds: usize, mut round: impl FnMut()) -> f64 {
    round();
    let seconds = (0..rounds).map(|_| {
        let begun = Instant::now();
        round();
        begun.elapsed().as_secs_f64()
    });
    let count = f64::from(u32::try_from(events.len()).expect("a few events"));
    count / median(seconds)
}

/// A run as it is: mostly text and thoughts, a call of a tool now and then.
fn events() -> Vec<EventEnvelope> {
    let tool = |status: &str, more: (&str, Value)| {
        let mut tool = json!({ "name": "bash", "call_id": "call_7", "status": status });
        tool[more.0] = more.1;
        json!({ "kind": "tool", "tool": tool })
    };
    let mut told = Vec::new();
    for turn in 0..20 {
        told.extend((0..20).map(|_| json!({ "kind": "thinking", "delta": "perhaps the test \"fails\"" })));
        told.extend((0..50).map(|_| json!({ "kind": "text", "delta": " and then we look at it" })));
        told.push(tool("started", ("args_hash", json!(turn))));
        told.extend((0..10).map(|_| tool("arguments", ("delta", json!("{\"command\":")))));
        told.push(tool("called", ("args", json!({ "command": "cargo test --workspace" }))));
        told.extend((0..10).map(|_| tool("output", ("delta", json!("test a ... ok\n")))));
        told.push(tool("done", ("result", json!("test a ... ok\n".repeat(10)))));
        told.push(json!({ "kind": "usage", "usage": { "input_tokens": 1000, "output_tokens": 100 } }));
    }
    let numbered = told.into_iter().zip(1_u64..);
    numbered
        .map(|(mut payload, step)| {
            payload["run_id"] = json!("run_1");
            payload["step"] = json!(step);
            let envelope = json!({
                "id": format!("evt_{step:026}"), "type": "event", "topic": "agent.run.progress",
                "ts": "2026-02-26T00:00:00.080Z", "seq": step, "sequence": step, "workspace_id": "ws_1",
                "session_id": "sess_1", "correlation_id": "cor_1", "payload": payload,
            });
            serde_json::from_value(envelope).expect("an envelope")
        })
        .collect()
}
