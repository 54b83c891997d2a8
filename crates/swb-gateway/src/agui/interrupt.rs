//! Questions as AG-UI knows them: a run that waits for an answer ends as interrupted, and the answer begins the next.

use std::sync::LazyLock;

use serde_json::{Value, json};
use swb_proto::approval::Approval;

use super::wire::{Interrupt, NAMESPACE};

/// No core reason fits a question of the gate: `tool_call` would promise the id of a call, which not every one has.
const REASON: &str = "helios:approval";

static ANSWER: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["approved"],
        "properties": {
            "approved": { "type": "boolean", "description": "Whether it may be done" },
            "reason": { "type": "string", "description": "Why, for the agent and for the record" },
            "allow_for_session": { "type": "boolean", "description": "Do not ask again for the like in this session" },
        },
    })
});

/// Hands over the interrupts of these questions. Of a call it is told which, if the client was told of it.
pub(super) fn with(asked: &[Approval], calls: &[String], use_them: impl FnOnce(&[Interrupt<'_>])) {
    let messages: Vec<_> = asked.iter().map(message).collect();
    let interrupts: Vec<_> = asked
        .iter()
        .zip(&messages)
        .map(|(approval, message)| Interrupt {
            id: approval.approval_id.as_str(),
            reason: REASON,
            message,
            tool_call_id: approval.call_id.as_deref().filter(|id| calls.iter().any(|call| call == id)),
            response_schema: &ANSWER,
            expires_at: approval.timeout_at.as_str(),
            metadata: json!({ NAMESPACE: approval }),
        })
        .collect();
    use_them(&interrupts);
}

fn message(approval: &Approval) -> String {
    let subject = &approval.subject;
    let what = match subject.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => Value::Object(subject.clone()).to_string(),
    };
    format!("{}: {what}\n{}", approval.action, approval.reason)
}
