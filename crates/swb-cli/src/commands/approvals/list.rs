//! The questions, those that wait first.

use std::time::Duration;

use anstyle::Style;
use serde_json::Value;
use swb_bus::BusHandle;
use swb_journal::audit::Moment;
use swb_proto::Timestamp;
use swb_proto::approval::{
    Approval, ApprovalOutcome, ApprovalStatus, Containment, List, ListApprovalsParams, Risk,
};
use swb_proto::id::SessionId;

use crate::commands::sessions::{age, columns};
use crate::failure::Failure;
use crate::io::{BAD, BOLD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

pub(super) async fn run(
    handle: &BusHandle,
    all: bool,
    session: Option<String>,
    io: &Io,
) -> Result<(), Failure> {
    let session_id = session
        .map(|id| SessionId::try_from(id).map_err(|error| Failure::new("no id of a session").because(error)))
        .transpose()?;
    let status = (!all).then_some(ApprovalStatus::Pending);
    let params = ListApprovalsParams { status, session_id, workspace_id: None };
    let approvals = handle.call::<List>(params).await?.approvals;
    if io.json {
        return approvals.iter().try_for_each(|approval| io.json_line(approval));
    }
    if approvals.is_empty() {
        let more = if all { "" } else { "; `swb approvals --all` lists those that were answered" };
        io.note(format!("{DIM}nothing waits for an answer{more}{DIM:#}"));
    }
    for approval in &approvals {
        io.line(lines(approval, columns()))?;
    }
    Ok(())
}

/// Two lines: who, when, how bad; what, and why it was asked.
fn lines(approval: &Approval, columns: usize) -> String {
    let Approval { approval_id, action, actor, reason, requested_at, .. } = approval;
    let asked = since(requested_at);
    let when = match &approval.outcome {
        None => left(approval),
        Some(outcome) => ended(outcome),
    };
    let advisory = match approval.containment {
        Containment::Enforced => String::new(),
        Containment::Advisory => format!("  {WARN}not contained{WARN:#}"),
    };
    let (sign, style) = sign(approval);
    let risk = risk(approval.risk);
    let who = plain::line(&format!("{} {}", actor.kind.as_str(), actor.id), 60);
    let what = plain::line(&format!("{action}  {}", subject_line(approval)), columns.saturating_sub(2));
    let why = plain::line(reason, columns.saturating_sub(2));
    format!(
        "{style}{sign}{style:#} {NAME}{approval_id}{NAME:#}  {risk}  {who}  {DIM}asked {asked} ago{DIM:#}, {when}{advisory}\n  {BOLD}{what}{BOLD:#}\n  {DIM}{why}{DIM:#}"
    )
}

fn sign(approval: &Approval) -> (&'static str, Style) {
    match approval.status {
        ApprovalStatus::Pending => ("?", WARN),
        ApprovalStatus::Approved => ("✓", GOOD),
        ApprovalStatus::Denied => ("✗", BAD),
        ApprovalStatus::TimedOut => ("○", DIM),
    }
}

/// How bad it could be, in its colour.
pub(super) fn risk(risk: Risk) -> String {
    let (word, style) = match risk {
        Risk::Low => ("low", GOOD),
        Risk::Medium => ("medium", WARN),
        Risk::High => ("high", BAD),
        Risk::Critical => ("critical", BAD),
    };
    format!("{style}{word} risk{style:#}")
}

/// What came out, in a few words.
pub(super) fn ended(outcome: &ApprovalOutcome) -> String {
    let at = since(&outcome.resolved_at);
    let by = outcome.resolved_by.as_deref().map(|by| format!(" by {}", plain::line(by, 60)));
    match outcome.status {
        ApprovalStatus::Approved => format!("{GOOD}approved{GOOD:#}{} {at} ago", by.unwrap_or_default()),
        ApprovalStatus::TimedOut => format!("nobody answered, denied {at} ago"),
        ApprovalStatus::Denied | ApprovalStatus::Pending => {
            format!("{BAD}denied{BAD:#}{} {at} ago", by.unwrap_or_default())
        }
    }
}

/// How long there is to answer.
pub(super) fn left(approval: &Approval) -> String {
    let left = millis(&approval.timeout_at) - Moment::now().unix_millis();
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    let style = if left < Duration::from_secs(60) { BAD } else { Style::new() };
    format!("{style}{} left{style:#}", age(left))
}

pub(crate) fn since(at: &Timestamp) -> String {
    let since = Moment::now().unix_millis() - millis(at);
    age(Duration::from_millis(u64::try_from(since).unwrap_or(0)))
}

fn millis(at: &Timestamp) -> i64 {
    Moment::parse(at.as_str()).unwrap_or_default().unix_millis()
}

/// What is asked about, in one text: a command line as it is, anything else as JSON.
fn subject_line(approval: &Approval) -> String {
    let only = |name: &str| match (approval.subject.get(name), approval.subject.len()) {
        (Some(Value::String(text)), 1) => Some(text.clone()),
        _ => None,
    };
    only("command").or_else(|| only("value")).unwrap_or_else(|| {
        let mut parts = Vec::new();
        for (name, value) in &approval.subject {
            match (name.as_str(), value) {
                // The action says it already.
                ("method", Value::String(method)) if *method == approval.action => {}
                ("arguments", Value::Object(arguments)) => {
                    // Who calls, and where, has a place of its own.
                    let named = arguments.iter().filter(|(name, _)| *name != "_meta");
                    parts.extend(named.map(|(name, value)| format!("{name}={value}")));
                }
                _ => parts.push(format!("{name}={value}")),
            }
        }
        parts.join(" ")
    })
}
