//! What events become, shown.

use serde_json::{Value, json};
use swb_proto::EventEnvelope;

use super::bus::{self, SESSION, event, progress, translator};
use super::verifier::{events, judge};
use crate::agui::{Dialect, Names, Standing, Translator};

/// The AG-UI events of a run that is told these events, without `CUSTOM`.
fn native(dialect: Dialect, told: &[EventEnvelope]) -> Vec<Value> {
    let mut translator = translator(dialect);
    translator.start();
    for event in told {
        translator.translate(event);
    }
    let events = events(&translator.take()).unwrap();
    judge(dialect, &events, false).unwrap();
    events.into_iter().filter(|event| event["type"] != "CUSTOM").collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("TEXT_MESSAGE_")).collect()
}

fn tool(step: u64, status: &str, more: Value) -> EventEnvelope {
    let mut tool = json!({ "name": "bash", "call_id": "c1", "status": status });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    progress(step, json!({ "kind": "tool", "tool": tool }))
}

fn subagent(step: u64, path: &[u64], state: &str) -> EventEnvelope {
    let subagent = json!({ "path": path, "name": "scout", "state": state, "preview": "looks around" });
    progress(step, json!({ "kind": "subagent", "subagent": subagent }))
}

#[test]
fn text_and_thoughts_are_messages_and_anything_between_ends_one() {
    let told = [
        progress(1, json!({ "kind": "thinking", "delta": "hm" })),
        progress(2, json!({ "kind": "text", "delta": "a" })),
        progress(3, json!({ "kind": "text", "delta": "b" })),
        progress(4, json!({ "kind": "usage", "usage": { "input_tokens": 1, "output_tokens": 1 } })),
        progress(5, json!({ "kind": "text", "delta": "c" })),
        bus::completed(6),
    ];
    let events = native(Dialect::One, &told);
    assert_eq!(
        kinds(&events),
        [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "START",
            "CONTENT",
            "CONTENT",
            "END",
            "START",
            "CONTENT",
            "END",
            "RUN_FINISHED"
        ]
    );
    assert_eq!((&events[6]["messageId"], &events[10]["messageId"]), (&json!("run_1.2"), &json!("run_1.5")));
    let end = &events[13];
    assert_eq!((&end["result"], &end["outcome"]), (&json!("done"), &json!({ "type": "success" })));
    let usage = json!({
        "inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedInputTokens": 2, "cacheWriteInputTokens": 0
    });
    assert_eq!(end["usage"], json!([usage]));
}

#[test]
fn a_call_belongs_to_what_was_said_before_it_and_its_arguments_are_sent_once() {
    let streamed = [
        progress(1, json!({ "kind": "text", "delta": "I look" })),
        tool(2, "started", json!({})),
        tool(3, "arguments", json!({ "delta": "{\"a\"" })),
        tool(4, "arguments", json!({ "delta": ":1}" })),
        tool(5, "called", json!({ "args": { "a": 1 } })),
        tool(6, "output", json!({ "delta": "…" })),
        tool(7, "done", json!({ "result": "ok" })),
    ];
    let events = native(Dialect::Older, &streamed);
    let calls = [
        "RUN_STARTED",
        "START",
        "CONTENT",
        "END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ];
    assert_eq!(kinds(&events), calls);
    assert_eq!(events[4]["parentMessageId"], "run_1.1");
    assert_eq!((&events[8]["messageId"], &events[8]["content"]), (&json!("run_1.7"), &json!("ok")));

    let at_once =
        [tool(1, "called", json!({ "args": { "a": 1 } })), tool(2, "done", json!({ "result": "ok" }))];
    let events = native(Dialect::One, &at_once);
    assert_eq!(
        kinds(&events)[1..],
        ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    );
    assert_eq!(events[2]["delta"], r#"{"a":1}"#);
}

#[test]
fn subagents_have_events_of_their_own_or_are_steps() {
    let told = [
        subagent(1, &[1], "started"),
        subagent(2, &[1, 1], "started"),
        subagent(3, &[1, 1], "working"),
        subagent(4, &[1, 1], "failed"),
        subagent(5, &[1], "done"),
        subagent(6, &[1], "started"),
        bus::completed(7),
    ];
    let events = native(Dialect::One, &told);
    let mine =
        ["SUBAGENT_STARTED", "SUBAGENT_STARTED", "SUBAGENT_ERROR", "SUBAGENT_FINISHED", "RUN_FINISHED"];
    assert_eq!(kinds(&events)[1..], mine, "an id is used once");
    assert_eq!(events[2]["parentSubagentRunId"], events[1]["subagentRunId"]);
    let events = native(Dialect::Older, &told);
    assert_eq!(
        kinds(&events)[1..],
        ["STEP_STARTED", "STEP_STARTED", "STEP_FINISHED", "STEP_FINISHED", "RUN_FINISHED"]
    );
    assert_eq!(events[1]["stepName"], "scout 1");
}

#[test]
fn a_plan_is_one_activity_of_its_agent_that_the_next_one_replaces() {
    let plan = |step: u64, path: &[u64], status: &str| {
        let steps = json!([{ "text": "look", "status": status }]);
        let mut plan = json!({ "kind": "plan", "call_id": "c1", "steps": steps, "percent": 0 });
        if !path.is_empty() {
            (plan["path"], plan["name"], plan["note"]) = (json!(path), json!("scout"), json!("why"));
        }
        progress(step, plan)
    };
    let told = [
        progress(1, json!({ "kind": "text", "delta": "a" })),
        plan(2, &[], "pending"),
        plan(3, &[1], "pending"),
        subagent(4, &[1], "started"),
        plan(5, &[1], "in_progress"),
        plan(6, &[], "completed"),
        plan(7, &[], "of a later version"),
        bus::completed(8),
    ];
    for dialect in [Dialect::One, Dialect::Older] {
        let events = native(dialect, &told);
        assert_eq!(events[3]["type"], "TEXT_MESSAGE_END", "what was being said is over");
        let plans: Vec<_> = events.iter().filter(|event| event["type"] == "ACTIVITY_SNAPSHOT").collect();
        let ids: Vec<_> = plans.iter().map(|plan| plan["messageId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["run_1.plan", "run_1.plan.1", "run_1.plan.1", "run_1.plan"]);
        assert!(plans.iter().all(|plan| plan["activityType"] == "PLAN" && plan["replace"] == true));
        let content = json!({ "steps": [{ "text": "look", "status": "completed" }], "percent": 0 });
        assert_eq!(plans[3]["content"], content);
        assert_eq!(
            (&plans[2]["content"]["name"], &plans[2]["content"]["note"]),
            (&json!("scout"), &json!("why"))
        );
        let agents: Vec<_> = plans.iter().map(|plan| plan.get("subagentRunId")).collect();
        let known = json!("client-run:1");
        let known = Some(&known).filter(|_| dialect == Dialect::One);
        assert_eq!(agents, [None, None, known, None], "one that the client knows");
    }
}

#[test]
fn a_question_ends_the_stream_and_names_itself() {
    let mut translator = translator(Dialect::One);
    translator.start();
    translator.translate(&subagent(1, &[1], "started"));
    assert_eq!(translator.translate(&bus::approval(2, "apr_x", "sess_2", &[])), Standing::Going);
    let below = bus::approval(3, "apr_1", "sess_1.1", &["sess_1.1", SESSION]);
    assert_eq!(translator.translate(&below), Standing::Asking);
    translator.interrupt();
    assert!(translator.is_over());
    let events = events(&translator.take()).unwrap();
    judge(Dialect::One, &events, true).unwrap();
    let customs: Vec<_> =
        events.iter().filter(|event| event["type"] == "CUSTOM").map(|event| &event["name"]).collect();
    assert_eq!(customs, ["ui.agent.progress", "ui.approval.required"]);
    let [.., state, suspended, end] = &events[..] else { panic!("{events:?}") };
    assert_eq!(state["snapshot"]["helios.agui.v1"]["approvals"][0]["approval_id"], "apr_1");
    assert_eq!(suspended["outcome"], json!({ "type": "suspended", "interruptIds": ["apr_1"] }));
    let interrupt = &end["outcome"]["interrupts"][0];
    assert_eq!((&interrupt["id"], &interrupt["reason"]), (&json!("apr_1"), &json!("helios:approval")));
    assert_eq!(interrupt["expiresAt"], "2026-02-27T00:00:00.080Z");
    assert_eq!(interrupt["message"], "tool.bash: make\nit changes files");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
}

#[test]
fn a_call_that_is_asked_about_is_named_and_begun_once_over_both_streams() {
    for dialect in [Dialect::One, Dialect::Older] {
        let mut asking = translator(dialect);
        asking.start();
        asking.translate(&tool(1, "started", json!({})));
        asking.translate(&tool(2, "arguments", json!({ "delta": "{\"command\":" })));
        asking.translate(&bus::approval(3, "apr_1", SESSION, &[]));
        assert!(asking.is_writing_a_call(), "the question waits for the rest of the call");
        asking.translate(&tool(3, "arguments", json!({ "delta": "1}" })));
        asking.translate(&tool(4, "called", json!({ "args": { "command": 1 } })));
        assert!(!asking.is_writing_a_call());
        asking.interrupt();
        let first = events(&asking.take()).unwrap();
        judge(dialect, &first, true).unwrap();
        assert_eq!(first[first.len() - 1]["outcome"]["interrupts"][0]["toolCallId"], "c1");
        assert_eq!(asking.unanswered(), ["c1"]);

        // Whatever of the call is told again in the next stream, and the same name in a later turn.
        let mut going_on = translator(dialect).going_on(None, asking.unanswered().to_vec());
        going_on.start();
        for (step, status) in
            [(4, "called"), (5, "output"), (6, "done"), (7, "started"), (8, "called"), (9, "done")]
        {
            going_on.translate(&tool(step, status, json!({ "delta": "x", "result": "y" })));
        }
        going_on.translate(&bus::completed(10));
        let second = events(&going_on.take()).unwrap();
        judge(dialect, &second, true).unwrap();
        let native = second.into_iter().filter(|event| event["type"] != "CUSTOM").collect::<Vec<_>>();
        assert_eq!(
            kinds(&native),
            [
                "RUN_STARTED",
                "TOOL_CALL_RESULT",
                "TOOL_CALL_START",
                "TOOL_CALL_END",
                "TOOL_CALL_RESULT",
                "RUN_FINISHED"
            ]
        );
    }
}

#[test]
fn a_question_about_a_call_that_was_not_told_names_none() {
    let mut translator = translator(Dialect::One);
    translator.start();
    translator.translate(&bus::approval(1, "apr_1", SESSION, &[]));
    translator.interrupt();
    let events = events(&translator.take()).unwrap();
    assert_eq!(events[events.len() - 1]["outcome"]["interrupts"][0].get("toolCallId"), None);
}

#[test]
fn a_cancelled_run_is_an_outcome_to_new_clients_and_an_error_to_older_ones() {
    let events = native(Dialect::One, &[bus::failed(1, true)]);
    assert_eq!(events[1]["outcome"], json!({ "type": "cancelled" }));
    let events = native(Dialect::Older, &[bus::failed(1, true)]);
    assert_eq!((&events[1]["type"], &events[1]["code"]), (&json!("RUN_ERROR"), &json!("cancelled")));
    for dialect in [Dialect::One, Dialect::Older] {
        let events = native(dialect, &[bus::failed(1, false)]);
        assert_eq!((&events[1]["type"], &events[1]["code"]), (&json!("RUN_ERROR"), &json!("POLICY_DENIED")));
    }
}

#[test]
fn an_event_keeps_its_facts_and_says_where_it_comes_from() {
    let mut translator = translator(Dialect::Older);
    translator.start();
    let told = event(
        7,
        "agent.run.progress",
        Some(SESSION),
        r#"{"run_id":"run_1","step":1,"kind":"text","delta":"é","new":[1]}"#,
    );
    translator.translate(&told);
    let events = events(&translator.take()).unwrap();
    let custom = &events[1];
    assert_eq!(custom["value"]["payload"], serde_json::from_str::<Value>(told.payload.get()).unwrap());
    assert_eq!(custom["value"]["source_event_id"], "evt_7");
    for event in &events[1..] {
        assert_eq!(event["timestamp"], 1_772_064_000_080_i64);
        assert_eq!(
            event["metadata"]["helios.agui.v1"],
            json!({
                "namespace": "helios.agui.v1", "event_id": "evt_7", "topic": "agent.run.progress", "seq": 7,
                "sequence": 7, "correlation_id": "cor_1"
            })
        );
    }
    assert_eq!(events[0]["metadata"]["helios.agui.v1"]["session_id"], SESSION);
}

#[test]
fn what_is_too_large_for_a_frame_is_cut_into_pieces_or_told_as_a_size() {
    let long = "<\u{1}é".repeat(300_000);
    let told = [
        progress(1, json!({ "kind": "text", "delta": long })),
        tool(2, "called", json!({ "args": { "text": long } })),
        tool(3, "done", json!({ "result": long })),
    ];
    let mut translator = translator(Dialect::One);
    translator.start();
    told.iter().for_each(|event| {
        translator.translate(event);
    });
    let events = events(&translator.take()).unwrap();
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert!(text == long, "in pieces, and whole");
    let custom = events.iter().find(|event| event["type"] == "CUSTOM").unwrap();
    assert_eq!(custom["value"]["payload"]["omitted_bytes"], told[0].payload.get().len());
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert!(result["content"].as_str().unwrap().ends_with("bytes are not shown …]"));
}

#[test]
fn the_state_of_a_client_is_kept_and_ours_is_taken_back() {
    let names = Names {
        thread_id: "t".to_owned(),
        run_id: "r".to_owned(),
        session_id: SESSION.to_owned(),
        bus_run_id: "run_1".to_owned(),
    };
    let state = json!({ "theirs": 1, "helios.agui.v1": { "approvals": ["old"] } });
    let mut translator = Translator::new(Dialect::One, names.clone(), Some(state));
    translator.start();
    let snapshot = &events(&translator.take()).unwrap()[1]["snapshot"];
    assert_eq!((&snapshot["theirs"], &snapshot["helios.agui.v1"]["approvals"]), (&json!(1), &json!([])));
    let mut translator = Translator::new(Dialect::One, names, Some(json!([1])));
    translator.start();
    translator.translate(&bus::approval(1, "apr_1", SESSION, &[]));
    translator.interrupt();
    let events = events(&translator.take()).unwrap();
    assert!(events.iter().all(|event| event["type"] != "STATE_SNAPSHOT"), "nothing can be added to a list");
}

#[test]
fn progress_that_is_missing_is_told_and_ends_a_message() {
    let piece = |step| progress(step, json!({ "kind": "text", "delta": "x" }));
    let mut going_on = translator(Dialect::One).going_on(Some("demo".to_owned()), Vec::new());
    let mut from_the_start = translator(Dialect::One);
    for (translator, holes) in [(&mut from_the_start, 2), (&mut going_on, 1)] {
        translator.start();
        for step in [3, 4, 9] {
            translator.translate(&piece(step));
        }
        translator.translate(&bus::completed(10));
        let events = events(&translator.take()).unwrap();
        judge(Dialect::One, &events, true).unwrap();
        let lost: Vec<_> = events.iter().filter(|event| event["value"]["topic"] == "bus.gap").collect();
        assert_eq!(lost.len(), holes, "what came before a stream that goes on is not missing");
        assert_eq!(
            lost[holes - 1]["value"]["payload"],
            json!({ "run_id": "run_1", "from_step": 5, "to_step": 8 })
        );
        let messages = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_START").count();
        assert_eq!(messages, 2);
    }
}
