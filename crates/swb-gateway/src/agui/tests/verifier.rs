//! A model of the clients' verifier: what they reject, written down a second time and from their side.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::agui::Dialect;

/// Words that only 1.0 knows.
const ONE: [&str; 3] = ["SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"];

#[derive(Debug, Default)]
struct Model {
    began: bool,
    over: Option<&'static str>,
    messages: HashSet<String>,
    calls: HashSet<String>,
    thoughts: HashSet<String>,
    reasoning: HashSet<String>,
    steps: HashSet<String>,
    subagents: HashSet<String>,
    past_subagents: HashSet<String>,
    terminals: HashSet<String>,
}

/// The events of a stream, if its bytes are what the client's parser reads.
pub(super) fn events(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if text.contains('\r') {
        return Err("a carriage return breaks the stream".to_owned());
    }
    let Some(frames) = text.strip_suffix("\n\n") else {
        return if text.is_empty() { Ok(Vec::new()) } else { Err("an unfinished frame".to_owned()) };
    };
    let mut events = Vec::new();
    for frame in frames.split("\n\n") {
        let data = frame.strip_prefix("data: ").filter(|data| !data.contains('\n'));
        let data = data.ok_or_else(|| format!("not one line of data: {frame:?}"))?;
        if data.len() > 8 * 1024 * 1024 {
            return Err("a frame that is too large".to_owned());
        }
        events.push(serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?);
    }
    Ok(events)
}

/// Judges a whole stream. `ended` says whether its end must have been said.
pub(super) fn judge(dialect: Dialect, events: &[Value], ended: bool) -> Result<(), String> {
    let mut model = Model::default();
    for event in events {
        shape(dialect, event).map_err(|why| format!("{why}: {event}"))?;
        model.take(event).map_err(|why| format!("{why}: {event}"))?;
    }
    if ended && model.over.is_none() { Err("no end was said".to_owned()) } else { Ok(()) }
}

/// The schema: required fields, nothing that is null, times that are whole.
fn shape(dialect: Dialect, event: &Value) -> Result<(), String> {
    let fields = event.as_object().ok_or("not an object")?;
    let kind = event["type"].as_str().ok_or("no type")?;
    if dialect == Dialect::Older && ONE.contains(&kind) {
        return Err("a word that this client does not know".to_owned());
    }
    if let Some(null) = fields.iter().find(|(key, value)| value.is_null() && *key != "value") {
        return Err(format!("{} is null", null.0));
    }
    if fields.get("timestamp").is_some_and(|time| !time.is_i64()) {
        return Err("the time is no whole number".to_owned());
    }
    if !fields["metadata"]["helios.agui.v1"].is_object() {
        return Err("it does not say where it comes from".to_owned());
    }
    let (required, optional): (&[&str], &[&str]) = match kind {
        "RUN_STARTED" => (&["threadId", "runId"], &["protocolVersion"]),
        "RUN_FINISHED" => (&["threadId", "runId", "outcome"], &["result", "usage"]),
        "RUN_ERROR" => (&["message", "code"], &["usage"]),
        "STEP_STARTED" | "STEP_FINISHED" => (&["stepName"], &[]),
        "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => (&["messageId", "role"], &[]),
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => (&["messageId", "delta"], &[]),
        "TEXT_MESSAGE_END" | "REASONING_START" | "REASONING_END" | "REASONING_MESSAGE_END" => {
            (&["messageId"], &[])
        }
        "TOOL_CALL_START" => (&["toolCallId", "toolCallName"], &["parentMessageId"]),
        "TOOL_CALL_ARGS" => (&["toolCallId", "delta"], &[]),
        "TOOL_CALL_END" => (&["toolCallId"], &[]),
        "TOOL_CALL_RESULT" => (&["messageId", "toolCallId", "content", "role"], &[]),
        "SUBAGENT_STARTED" => (&["subagentRunId", "name"], &["description", "parentSubagentRunId"]),
        "SUBAGENT_FINISHED" => (&["subagentRunId", "outcome"], &["result"]),
        "SUBAGENT_ERROR" => (&["subagentRunId", "message"], &[]),
        "STATE_SNAPSHOT" => (&["snapshot"], &[]),
        "ACTIVITY_SNAPSHOT" if dialect == Dialect::One => {
            (&["messageId", "activityType", "content", "replace"], &["subagentRunId"])
        }
        "ACTIVITY_SNAPSHOT" => (&["messageId", "activityType", "content", "replace"], &[]),
        "ACTIVITY_DELTA" => (&["messageId", "activityType", "patch"], &[]),
        "CUSTOM" => (&["name", "value"], &[]),
        other => return Err(format!("{other} is no event")),
    };
    let known: BTreeSet<_> =
        required.iter().chain(optional).chain(&["type", "timestamp", "metadata"]).copied().collect();
    if let Some(missing) = required.iter().find(|key| !fields.contains_key(**key)) {
        return Err(format!("{missing} is missing"));
    }
    match fields.keys().find(|key| !known.contains(key.as_str())) {
        Some(extra) => Err(format!("{extra} would be stripped")),
        None if event["delta"] == "" => Err("an empty delta".to_owned()),
        None => outcome(dialect, event),
    }
}

fn outcome(dialect: Dialect, event: &Value) -> Result<(), String> {
    let Some(outcome) = event.get("outcome").filter(|_| event["type"] == "RUN_FINISHED") else {
        return Ok(());
    };
    match outcome["type"].as_str() {
        Some("success") => {}
        Some("cancelled") if dialect == Dialect::One => {}
        Some("interrupt") => {
            let interrupts = outcome["interrupts"].as_array().filter(|list| !list.is_empty());
            for interrupt in interrupts.ok_or("no interrupts")? {
                let known = ["id", "reason", "message", "responseSchema", "expiresAt", "metadata"];
                let fields = interrupt.as_object().ok_or("not an object")?;
                let call = usize::from(fields.contains_key("toolCallId"));
                if fields.len() != known.len() + call || known.iter().any(|key| fields[*key].is_null()) {
                    return Err("not an interrupt".to_owned());
                }
            }
        }
        other => return Err(format!("{other:?} is no outcome")),
    }
    let mut counts =
        event["usage"].as_array().into_iter().flatten().flat_map(|usage| usage.as_object()).flatten();
    match counts.find(|(key, count)| {
        *key != "model" && count.as_u64().is_none_or(|count| count >= 1 << 53)
            || dialect == Dialect::Older && *key == "cacheWriteInputTokens"
    }) {
        Some((key, _)) => Err(format!("{key} is no count")),
        None => Ok(()),
    }
}

impl Model {
    fn take(&mut self, event: &Value) -> Result<(), &'static str> {
        let kind = event["type"].as_str().unwrap_or_default();
        if !self.began && kind != "RUN_STARTED" && kind != "RUN_ERROR" {
            return Err("the first event must be RUN_STARTED");
        }
        if self.over.is_some() {
            return Err("nothing follows the end");
        }
        let id = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let (message, call, agent) = (id("messageId"), id("toolCallId"), id("subagentRunId"));
        let ok = match kind {
            "RUN_STARTED" => !std::mem::replace(&mut self.began, true),
            "RUN_ERROR" => {
                self.over = Some("error");
                true
            }
            "RUN_FINISHED" => {
                self.over = Some("finished");
                let open = [&self.messages, &self.calls, &self.steps];
                let later = [&self.thoughts, &self.reasoning, &self.subagents];
                open.iter().all(|set| set.is_empty()) && later.iter().all(|set| set.is_empty())
            }
            "TEXT_MESSAGE_START" => self.messages.insert(message),
            "TEXT_MESSAGE_CONTENT" => self.messages.contains(&message),
            "TEXT_MESSAGE_END" => self.messages.remove(&message),
            "REASONING_START" => self.reasoning.insert(message),
            "REASONING_END" => self.reasoning.remove(&message),
            "REASONING_MESSAGE_START" => self.thoughts.insert(message),
            "REASONING_MESSAGE_CONTENT" => self.thoughts.contains(&message),
            "REASONING_MESSAGE_END" => self.thoughts.remove(&message),
            "TOOL_CALL_START" => self.calls.insert(call),
            "TOOL_CALL_ARGS" => self.calls.contains(&call),
            "TOOL_CALL_END" => self.calls.remove(&call),
            "STEP_STARTED" => self.steps.insert(id("stepName")),
            "STEP_FINISHED" => self.steps.remove(&id("stepName")),
            "SUBAGENT_STARTED" => {
                let parent = event.get("parentSubagentRunId").and_then(Value::as_str);
                let known = |id: &str| self.subagents.contains(id) || self.past_subagents.contains(id);
                let ok = parent.is_none_or(known) && !known(&agent);
                self.subagents.insert(agent);
                ok
            }
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let ok = self.subagents.remove(&agent);
                self.past_subagents.insert(agent);
                ok
            }
            // A plan is told whole each time; what a terminal has put out would be lost.
            "ACTIVITY_SNAPSHOT" if event["activityType"] == "PLAN" => {
                let known = |id: &str| self.subagents.contains(id) || self.past_subagents.contains(id);
                event["content"]["steps"].is_array() && (agent.is_empty() || known(&agent))
            }
            "ACTIVITY_SNAPSHOT" => self.terminals.insert(message),
            "ACTIVITY_DELTA" => self.terminals.contains(&message),
            _ => true,
        };
        if ok { Ok(()) } else { Err("out of order") }
    }
}

#[test]
fn the_model_rejects_what_the_real_client_was_seen_to_reject() {
    let at = serde_json::json!({ "helios.agui.v1": {} });
    let event = |text: &str| -> Value {
        let mut event: Value = serde_json::from_str(text).unwrap();
        event["metadata"] = at.clone();
        event
    };
    let start = event(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#);
    let end = event(r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}"#);
    let cancelled =
        event(r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}"#);
    let custom = event(r#"{"type":"CUSTOM","name":"n","value":null}"#);
    let open = event(r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#);
    let stray = event(r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}"#);
    let judged = |dialect, events: &[&Value]| {
        judge(dialect, &events.iter().map(|event| (*event).clone()).collect::<Vec<_>>(), true)
    };
    for dialect in [Dialect::One, Dialect::Older] {
        assert_eq!(judged(dialect, &[&start, &custom, &end]), Ok(()));
        for bad in [
            &[&custom][..],
            &[&start, &start],
            &[&start, &end, &custom],
            &[&start, &open, &end],
            &[&start, &open, &open],
            &[&start, &stray],
            &[&start],
        ] {
            assert!(judged(dialect, bad).is_err(), "{bad:?}");
        }
    }
    assert_eq!(judged(Dialect::One, &[&start, &cancelled]), Ok(()));
    assert!(judged(Dialect::Older, &[&start, &cancelled]).is_err());
    assert!(events(b"data: {}\r\n\r\n").is_err() && events(b"data: {}\n").is_err());
}
