//! Everything about one question.

use serde_json::Value;
use swb_bus::BusHandle;
use swb_proto::approval::{
    Approval, ApprovalOption, ApprovalStatus, Containment, Get, List, ListApprovalsParams, WhichApproval,
};

use super::find;
use super::list::{ended, left, risk, since};
use crate::failure::Failure;
use crate::io::{BOLD, DIM, Io, NAME, WARN};
use crate::plain;

pub(super) async fn run(handle: &BusHandle, wanted: &str, io: &Io) -> Result<(), Failure> {
    let approval_id = meant(handle, wanted, None).await?.approval_id;
    let approval = handle.call::<Get>(WhichApproval { approval_id }).await?;
    if io.json { io.object(&approval) } else { io.line(page(&approval)) }
}

/// The question that is meant, among those that stand at `status`.
pub(super) async fn meant(
    handle: &BusHandle,
    wanted: &str,
    status: Option<ApprovalStatus>,
) -> Result<Approval, Failure> {
    let params = ListApprovalsParams { status, ..ListApprovalsParams::default() };
    let approvals = handle.call::<List>(params).await?.approvals;
    let ids = approvals.iter().map(|approval| approval.approval_id.as_str());
    let id = find::one(ids, wanted, "approval", "`swb approvals --all` lists them")?.to_owned();
    approvals
        .into_iter()
        .find(|approval| approval.approval_id.as_str() == id)
        .ok_or_else(|| Failure::new(format!("there is no approval {id}")))
}

fn page(approval: &Approval) -> String {
    let mut lines = vec![format!(
        "{NAME}{}{NAME:#}  {}  {}",
        approval.approval_id,
        risk(approval.risk),
        match &approval.outcome {
            None => format!("{WARN}pending{WARN:#}, {}", left(approval)),
            Some(outcome) => ended(outcome),
        }
    )];
    let mut field = |name: &str, text: String| lines.push(format!("{DIM}{name:>12}{DIM:#}  {text}"));
    let line = |text: &str| plain::line(text, 400);
    field("action", format!("{BOLD}{}{BOLD:#}", line(&approval.action)));
    field("asked by", line(&format!("{} {}", approval.actor.kind.as_str(), approval.actor.id)));
    if approval.audience.len() > 1 {
        field("below", line(&approval.audience[1..].join(", ")));
    }
    field("asked", format!("{} ago ({})", since(&approval.requested_at), approval.requested_at));
    field("why", block(&approval.reason));
    if !approval.rules.is_empty() {
        field("rules", line(&approval.rules.join(", ")));
    }
    field(
        "containment",
        match approval.containment {
            Containment::Enforced => "enforced".to_owned(),
            Containment::Advisory => {
                format!("{WARN}advisory{WARN:#}: nothing but your answer holds the asker back")
            }
        },
    );
    for (name, id) in [
        ("workspace", approval.workspace_id.as_ref().map(ToString::to_string)),
        ("session", approval.session_id.as_ref().map(ToString::to_string)),
        ("correlation", approval.correlation_id.as_ref().map(ToString::to_string)),
    ] {
        if let Some(id) = id {
            field(name, id);
        }
    }
    for (name, value) in &approval.subject {
        let text = match value {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        field(&plain::line(name, 40), block(&text));
    }
    if let Some(outcome) = &approval.outcome {
        if let Some(reason) = &outcome.reason {
            field("answer", block(reason));
        }
        if let Some(grant) = &outcome.grant_id {
            field("grant", grant.to_string());
        }
    } else {
        let id = &approval.approval_id;
        let mut ways =
            vec![format!("swb approvals approve {id}"), format!("swb approvals deny {id} --reason '…'")];
        if approval.options.contains(&ApprovalOption::AllowForSession) {
            ways.insert(1, format!("swb approvals approve {id} --for-session"));
        }
        ways.iter().for_each(|way| field("", format!("{DIM}{way}{DIM:#}")));
    }
    lines.join("\n")
}

/// A text of somebody else, harmless, its further lines below its first.
fn block(text: &str) -> String {
    plain::text(text).replace('\n', &format!("\n{:>14}", ""))
}
