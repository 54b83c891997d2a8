//! Letting a call pass: the decision, and the question if somebody has to agree.

use std::path::Path;

use serde_json::{Value, json};
use swb_rules::redact::redact;

use super::ask::{Asks, Question};
use super::house::{Errand, House};
use super::local_rules::LocalCall;
use super::{Action, Decision, Effect, Gate, Mode, Subject};

const ALLOW: &str = "allow";
const DENY: &str = "deny";

/// Why a call may not happen. The text is for the model.
#[derive(Debug, thiserror::Error)]
#[error("Denied: {reason}")]
pub(crate) struct Denied {
    reason: String,
}

/// Lets a call pass, or says why not.
pub(crate) async fn permit(
    gate: &Gate,
    asks: &Asks,
    subject: Subject<'_>,
    action: &Action<'_>,
    arguments: &Value,
) -> Result<(), Denied> {
    let decision = gate.decide(subject, action, arguments);
    if let Some(house) = gate.house.as_ref().filter(|_| action.effect != Effect::Borrow) {
        return match decision {
            // Whoever only looks is not asked for more.
            Decision::Deny { reason } if gate.mode().min(subject.mode) == Mode::ReadOnly => {
                Err(Denied { reason: redact(&reason).text })
            }
            _ => ask_house(house, subject, action, arguments).await,
        };
    }
    let (risk, reason) = match ruled(gate, subject, action, arguments, decision).await {
        Decision::Allow => return Ok(()),
        Decision::Deny { reason } => return Err(Denied { reason: redact(&reason).text }),
        Decision::Ask { risk, reason } => (risk, redact(&reason).text),
    };
    let mut about = json!({ "session_id": subject.session_id, "tool": action.tool, "arguments": arguments });
    if !subject.agents.is_empty() {
        about["agents"] = json!(subject.agents);
    }
    let question = Question {
        subject: about,
        risk,
        options: [ALLOW, DENY].map(str::to_owned).to_vec(),
        free_text: false,
        reason: reason.clone(),
        patience: None,
    };
    match asks.put(question).await {
        Ok(answer) if answer.option.as_deref() == Some(ALLOW) => Ok(()),
        Ok(_) => Err(Denied { reason: format!("{reason}, and the answer was no") }),
        Err(why) => Err(Denied { reason: format!("{reason}, and {why}") }),
    }
}

/// What the rules make of what the mode says.
async fn ruled(
    gate: &Gate,
    subject: Subject<'_>,
    action: &Action<'_>,
    arguments: &Value,
    mode: Decision,
) -> Decision {
    let only_looks = gate.mode().min(subject.mode) == Mode::ReadOnly;
    let stays = action.effect == Effect::Borrow || (only_looks && matches!(mode, Decision::Deny { .. }));
    let Some(rules) = gate.rules.clone().filter(|_| !stays) else { return mode };
    let call = LocalCall {
        tool: action.tool.to_owned(),
        arguments: arguments.clone(),
        folder: folder(subject, action).to_owned(),
        workspace: subject.workspace.to_owned(),
        session_id: subject.session_id.to_owned(),
        agents: subject.agents.to_vec(),
    };
    // Files are read, and links followed.
    let decided = tokio::task::spawn_blocking(move || rules.decide(&call, mode)).await;
    decided.unwrap_or_else(|_| Decision::Deny { reason: "the rules could not be asked".to_owned() })
}

/// The folder that the call works in.
fn folder<'a>(subject: Subject<'a>, action: &'a Action<'_>) -> &'a Path {
    match &action.effect {
        Effect::Run { folder, .. } => folder,
        _ => subject.folder,
    }
}

async fn ask_house(
    house: &House,
    subject: Subject<'_>,
    action: &Action<'_>,
    arguments: &Value,
) -> Result<(), Denied> {
    let errand = Errand {
        tool: action.tool,
        arguments,
        folder: folder(subject, action),
        subagents: subject.agents,
        call_id: subject.call_id,
    };
    house.permit(&errand).await.map_err(|reason| Denied { reason: redact(&reason).text })
}
