//! Approvals of a run as the questions that its agent would have put.

use serde::Deserialize;
use serde_json::{Value, json};
use swb_proto::EventEnvelope;
use swb_proto::agent::{AddedEvent, Frame};
use swb_proto::approval::{Approval, ApprovalOutcome, ApprovalStatus};
use swb_proto::id::ApprovalId;
use swb_proto::run::Attended;

use super::{Teller, Told, payload};

#[derive(Deserialize)]
struct Resolved {
    approval_id: ApprovalId,
    #[serde(flatten)]
    outcome: ApprovalOutcome,
}

impl Teller {
    /// A question for whoever is here, once.
    pub(in crate::commands::run::daemon) fn ask(&mut self, approval: &Approval) -> Option<Frame> {
        let is_new = self.asked.insert(approval.approval_id.clone());
        (is_new && self.attended == Attended::Here).then(|| question(approval))
    }

    pub(super) fn approval(&mut self, what: &str, event: &EventEnvelope) -> Told {
        let mut told = Told { is_ours: true, ..Told::default() };
        match what {
            "requested" => {
                if let Some(approval) = payload::<Approval>(event).filter(|_| self.attended == Attended::Here)
                {
                    told.frames.push(question(&approval));
                }
            }
            "resolved" => {
                let Some(Resolved { approval_id, outcome }) = payload(event) else { return told };
                if self.attended == Attended::Nobody && outcome.status == ApprovalStatus::TimedOut {
                    self.denied += 1;
                }
                let ask_id = approval_id.as_str().to_owned();
                told.frames.push(Frame::Added(AddedEvent::AskClosed { ask_id, outcome: in_words(&outcome) }));
            }
            _ => {}
        }
        told
    }
}

/// What the daemon asks, as an agent would.
fn question(approval: &Approval) -> Frame {
    let tool = approval.action.strip_prefix("tool.").unwrap_or(&approval.action);
    let below: Vec<&String> = approval.audience.iter().rev().skip(1).collect();
    let options = serde_json::to_value(&approval.options).ok();
    let risk = serde_json::to_value(approval.risk).ok();
    Frame::Added(AddedEvent::Ask {
        ask_id: approval.approval_id.as_str().to_owned(),
        subject: json!({
            "tool": tool, "arguments": approval.subject, "agents": below, "details": details(approval),
        }),
        risk: risk.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
        options: options.and_then(|options| serde_json::from_value(options).ok()).unwrap_or_default(),
        free_text: false,
        deadline: approval.timeout_at.as_str().to_owned(),
        reason: approval.reason.clone(),
    })
}

/// What `d` shows.
fn details(approval: &Approval) -> String {
    let containment = serde_json::to_value(approval.containment).unwrap_or_default();
    let mut lines = vec![
        format!("{} · asked by {} {}", approval.approval_id, approval.actor.kind.as_str(), approval.actor.id),
        format!(
            "rules: {} · containment: {}",
            approval.rules.join(", "),
            containment.as_str().unwrap_or_default()
        ),
        format!("denied if nobody answers until {}", approval.timeout_at),
    ];
    for (name, value) in &approval.subject {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        lines.push(format!("{name}: {text}"));
    }
    lines.join("\n")
}

fn in_words(outcome: &ApprovalOutcome) -> String {
    let what = match outcome.status {
        ApprovalStatus::Approved => "approved",
        ApprovalStatus::Denied => "denied",
        ApprovalStatus::TimedOut => return "nobody answered in time, so it is denied".to_owned(),
        ApprovalStatus::Pending => "open",
    };
    match &outcome.resolved_by {
        Some(who) => format!("{what} by {who}"),
        None => what.to_owned(),
    }
}
