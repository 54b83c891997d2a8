//! Questions, outcomes and grants in the words of the wire.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value};
use swb_proto::approval as wire;
use swb_proto::grant as wire_grant;
use swb_proto::id::{ApprovalId, CorrelationId, GrantId, SessionId, WorkspaceId};
use swb_proto::{Actor, Timestamp};
use swb_rules::approval::{Approval, Choice, Outcome, Status};
use swb_rules::policy::{self, Grant};
use swb_rules::shell::Risk;

/// A moment of the desk on the wire.
pub(crate) fn timestamp(millis: u64) -> Timestamp {
    Timestamp::from_system_time(UNIX_EPOCH + Duration::from_millis(millis))
}

/// Who acts, on the wire.
pub(super) fn actor_to_wire(actor: &policy::Actor) -> Actor {
    let kind = match actor {
        policy::Actor::User { .. } => "user",
        policy::Actor::Agent { .. } => "agent",
        policy::Actor::Service { .. } => "service",
    };
    Actor::new(kind, actor.id()).or_else(|_| Actor::new(kind, "unknown")).unwrap_or_else(|_| Actor::system())
}

/// The workspace a question is about: that of the thing, else that of the asker.
pub(crate) fn workspace_of(approval: &Approval) -> Option<WorkspaceId> {
    let input = &approval.request.input;
    let of_actor = match &input.actor {
        policy::Actor::Agent { workspace, .. } => Some(workspace.as_str()),
        _ => None,
    };
    input.resource.workspace().or(of_actor).and_then(|id| WorkspaceId::try_from(id.to_owned()).ok())
}

/// A question. Its id was checked before it was put, so it has words.
pub(crate) fn approval_to_wire(approval: &Approval) -> Option<wire::Approval> {
    let request = &approval.request;
    Some(wire::Approval {
        approval_id: ApprovalId::try_from(request.id.clone()).ok()?,
        status: approval
            .outcome
            .as_ref()
            .map_or(wire::ApprovalStatus::Pending, |outcome| status(outcome.status)),
        action: request.input.action.clone(),
        actor: actor_to_wire(&request.input.actor),
        audience: if request.input.actor.is_agent() {
            approval.audience().map(str::to_owned).collect()
        } else {
            Vec::new()
        },
        subject: object(request.subject.clone()),
        reason: request.reason.clone(),
        risk: risk(request.risk),
        rules: request.rules.clone(),
        containment: if request.contained {
            wire::Containment::Enforced
        } else {
            wire::Containment::Advisory
        },
        options: approval.options.iter().copied().map(option).collect(),
        workspace_id: workspace_of(approval),
        session_id: request.session_id.clone().and_then(|id| SessionId::try_from(id).ok()),
        correlation_id: request.correlation_id.clone().and_then(|id| CorrelationId::try_from(id).ok()),
        call_id: request.call_id.clone(),
        requested_at: timestamp(approval.requested_at),
        timeout_at: timestamp(approval.deadline),
        timeout_action: wire::TimeoutAction::Deny,
        outcome: approval.outcome.as_ref().map(outcome_to_wire),
    })
}

/// What came out.
pub(super) fn outcome_to_wire(outcome: &Outcome) -> wire::ApprovalOutcome {
    wire::ApprovalOutcome {
        status: status(outcome.status),
        resolved_by: outcome.resolved_by.clone(),
        reason: outcome.reason.clone(),
        resolved_at: timestamp(outcome.resolved_at),
        grant_id: outcome.grant_id.clone().and_then(|id| GrantId::try_from(id).ok()),
    }
}

/// A grant.
pub(crate) fn grant_to_wire(grant: &Grant) -> Option<wire_grant::Grant> {
    Some(wire_grant::Grant {
        grant_id: GrantId::try_from(grant.id.clone()).ok()?,
        agent: grant.agent.clone(),
        action: grant.action.clone(),
        scope: object(serde_json::to_value(&grant.scope).unwrap_or_default()),
        risk: risk(grant.risk),
        granted_by: grant.granted_by.clone(),
        granted_at: timestamp(grant.granted_at),
        expires_at: timestamp(grant.expires_at),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

fn status(status: Status) -> wire::ApprovalStatus {
    match status {
        Status::Approved => wire::ApprovalStatus::Approved,
        Status::Denied => wire::ApprovalStatus::Denied,
        Status::TimedOut => wire::ApprovalStatus::TimedOut,
    }
}

fn option(choice: Choice) -> wire::ApprovalOption {
    match choice {
        Choice::Allow => wire::ApprovalOption::Allow,
        Choice::AllowForSession => wire::ApprovalOption::AllowForSession,
        Choice::Deny => wire::ApprovalOption::Deny,
    }
}

fn risk(risk: Risk) -> wire::Risk {
    match risk {
        Risk::Low => wire::Risk::Low,
        Risk::Medium => wire::Risk::Medium,
        Risk::High => wire::Risk::High,
        Risk::Critical => wire::Risk::Critical,
    }
}
