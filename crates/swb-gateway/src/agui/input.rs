//! What a client sends to begin or to resume a run: `RunAgentInput`, read leniently. Words of a later version, tools of
//! the front end and its context are passed over: agents of this house bring their own.

use axum::body::Body;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use swb_proto::approval::{ApprovalDecision, ResolveParams};
use swb_proto::id::{self, ApprovalId};

use crate::failure::Failure;
use crate::messages::read_body;

/// A conversation is sent whole with every run.
const LARGEST: usize = 8 << 20;
const LONGEST_RUN_ID: usize = 200;

/// A run that a front end wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAgentInput {
    /// The conversation: a name of the client's own, or the id of a session.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,80}$"))]
    pub(super) thread_id: String,
    /// The client's name for this run.
    #[schemars(length(min = 1, max = 200))]
    pub(super) run_id: String,
    /// Absent: a client before 1.0.
    #[serde(default)]
    pub(super) protocol_version: Option<String>,
    /// What the front end keeps; it comes back with what is asked added to it.
    #[serde(default)]
    pub(super) state: Option<Value>,
    /// The conversation so far. The last message of the user is the prompt.
    pub(super) messages: Vec<Message>,
    /// `project_id` or `project` of a new conversation, `model`, `agent`.
    #[serde(default)]
    pub(super) forwarded_props: Option<Value>,
    /// Answers to all interrupts of the run before.
    #[serde(default)]
    pub(super) resume: Option<Vec<Resume>>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// `user`, `assistant`, `tool` and others.
    role: String,
    /// Text, or a list of parts.
    #[serde(default)]
    content: Option<Value>,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resume {
    /// Which one.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,80}$"))]
    interrupt_id: String,
    /// Whether somebody answered.
    status: ResumeStatus,
    /// The answer: `approved`, and perhaps `reason` and `allow_for_session`.
    #[serde(default)]
    payload: Option<Value>,
}

/// Whether somebody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    /// There is an answer.
    Resolved,
    /// Nobody wants to, which means no.
    Cancelled,
}

impl RunAgentInput {
    pub(super) async fn read(body: Body) -> Result<Self, Failure> {
        let most = LARGEST >> 20;
        let bytes = read_body(body, LARGEST).await.ok_or_else(|| {
            Failure::bad_request(format!("the body is cut short, or larger than {most} MiB"))
        })?;
        let input: Self = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::bad_request(format!("not a RunAgentInput: {error}")))?;
        id::check(&input.thread_id)
            .map_err(|error| Failure::bad_request(format!("threadId cannot be used: {error}")))?;
        if input.run_id.is_empty() || input.run_id.len() > LONGEST_RUN_ID {
            return Err(Failure::bad_request(format!("runId must have 1 to {LONGEST_RUN_ID} bytes")));
        }
        Ok(input)
    }

    /// What the user wants: the text of the last message, which must be theirs.
    pub(super) fn prompt(&self) -> Result<String, Failure> {
        let talk = ["user", "assistant", "tool"];
        let last = self.messages.iter().rev().find(|message| talk.contains(&message.role.as_str()));
        let last = last
            .filter(|message| message.role == "user")
            .ok_or_else(|| Failure::bad_request("the last message must be the user's: it is the prompt"))?;
        let text = match last.content.as_ref() {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().map(text_of).collect::<Result<Vec<_>, _>>()?.join("\n"),
            _ => String::new(),
        };
        if text.trim().is_empty() {
            return Err(Failure::bad_request("the last message says nothing"));
        }
        Ok(text)
    }

    /// A word for this server among what the front end passes on.
    pub(super) fn prop(&self, key: &str) -> Option<&str> {
        self.forwarded_props.as_ref()?.get(key)?.as_str().map(str::trim).filter(|value| !value.is_empty())
    }
}

/// Text alone: to leave an image out without a word would answer another question.
fn text_of(part: &Value) -> Result<String, Failure> {
    match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text.to_owned()),
        (kind, _) => {
            let kind = kind.unwrap_or("unknown");
            Err(Failure::bad_request(format!("a part of the type {kind} is not understood; text is")))
        }
    }
}

impl Resume {
    pub(super) fn status(&self) -> ResumeStatus {
        self.status
    }

    pub(super) fn approval_id(&self) -> Result<ApprovalId, Failure> {
        ApprovalId::try_from(self.interrupt_id.clone())
            .map_err(|error| Failure::bad_request(format!("interruptId cannot be used: {error}")))
    }

    /// The answer as the bus knows it. Only `approved: true` is a yes.
    pub(super) fn answer(&self, approval_id: ApprovalId) -> ResolveParams {
        let empty = Map::new();
        let payload = self.payload.as_ref().and_then(Value::as_object).unwrap_or(&empty);
        let yes = |key: &str| payload.get(key) == Some(&Value::Bool(true));
        let approved = self.status == ResumeStatus::Resolved && yes("approved");
        let reason = payload.get("reason").and_then(Value::as_str).map(str::to_owned);
        let reason =
            reason.or_else(|| (self.status == ResumeStatus::Cancelled).then(|| "nobody answered".to_owned()));
        ResolveParams {
            approval_id,
            decision: if approved { ApprovalDecision::Approve } else { ApprovalDecision::Deny },
            reason,
            allow_for_session: approved && yes("allow_for_session"),
            edited_args: payload.get("editedArgs").and_then(Value::as_object).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(messages: Value) -> RunAgentInput {
        serde_json::from_value(json!({ "threadId": "t", "runId": "r", "messages": messages, "more": 1 }))
            .unwrap()
    }

    #[test]
    fn the_prompt_is_the_last_message_of_the_user() {
        let said = json!([
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "yes" },
            { "role": "user", "content": [{ "type": "text", "text": "two" }, { "type": "text", "text": "three" }] },
            { "role": "activity", "content": {} },
        ]);
        assert_eq!(input(said).prompt().unwrap(), "two\nthree");
        for bad in [
            json!([]),
            json!([{ "role": "user", "content": " " }]),
            json!([{ "role": "user" }]),
            json!([{ "role": "user", "content": "x" }, { "role": "tool", "content": "y" }]),
            json!([{ "role": "user", "content": [{ "type": "image", "source": {} }] }]),
        ] {
            assert!(input(bad.clone()).prompt().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_true_approved_is_a_yes() {
        let decision = |status: &str, payload: Value| {
            let resume: Resume = serde_json::from_value(
                json!({ "interruptId": "apr_1", "status": status, "payload": payload }),
            )
            .unwrap();
            resume.answer(resume.approval_id().unwrap()).decision
        };
        assert_eq!(decision("resolved", json!({ "approved": true })), ApprovalDecision::Approve);
        for (status, payload) in [
            ("resolved", json!({ "approved": false })),
            ("resolved", json!({ "approved": "true" })),
            ("resolved", json!(true)),
            ("resolved", json!(null)),
            ("cancelled", json!({ "approved": true })),
        ] {
            assert_eq!(decision(status, payload.clone()), ApprovalDecision::Deny, "{status} {payload}");
        }
    }
}
