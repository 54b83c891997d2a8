//! Letting a call pass: the decision, and the question if somebody has to agree.

use serde_json::{Value, json};
use swb_rules::redact::redact;

use super::ask::{Asks, Question};
use super::house::{Errand, House};
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
    let (risk, reason) = match decision {
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

async fn ask_house(
    house: &House,
    subject: Subject<'_>,
    action: &Action<'_>,
    arguments: &Value,
) -> Result<(), Denied> {
    let errand = Errand {
        tool: action.tool,
        arguments,
        folder: match &action.effect {
            Effect::Run { folder, .. } => folder,
            _ => subject.folder,
        },
        subagents: subject.agents,
    };
    house.permit(&errand).await.map_err(|reason| Denied { reason: redact(&reason).text })
}
