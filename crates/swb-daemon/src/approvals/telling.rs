//! What is said on the bus: that a question was put, and what came out, each once.
//!
//! A thing is said after it was written, with the place behind which it is going to be said. That it was said is written with
//! the next change. So after a crash only the latest is in doubt, and whoever keeps events is asked whether it has been said.

use std::sync::Arc;

use serde_json::{Value, json};
use swb_bus::topics::Topics;
use swb_proto::TopicGlob;
use swb_proto::id::{CorrelationId, SessionId};
use swb_proto::{Actor, Meta};
use swb_rules::approval::{Announced, Approval, ApprovalEvent, Outcome};

use crate::telemetry::ApprovalCounts;

use super::view::{actor_to_wire, approval_to_wire, outcome_to_wire, timestamp, workspace_of};

/// How many events are looked at together.
const PAGE: usize = 500;

/// Says what has not been said of a question, and returns what is to be noted.
pub(super) fn announce(topics: &Topics, counts: &ApprovalCounts, approval: &Approval) -> ApprovalEvent {
    let meta = context(approval);
    if approval.announced < Announced::Question {
        // As it was put, though it may have its outcome by now.
        let put = Approval { outcome: None, ..approval.clone() };
        let asker = actor_to_wire(&approval.request.input.actor);
        let payload = approval_to_wire(&put).and_then(|put| serde_json::to_value(put).ok());
        counts.requested();
        say(topics, "approval.requested", &meta, &asker, &payload.unwrap_or_default());
    }
    let mut known = Announced::Question;
    if let Some(outcome) = &approval.outcome {
        counts.resolved(outcome.status);
        say(topics, "approval.resolved", &meta, &answerer(outcome), &resolved(&approval.request.id, outcome));
        known = Announced::Outcome;
    }
    ApprovalEvent::Announced { id: approval.request.id.clone(), known }
}

/// What has been said of questions behind `after`, as far as events are kept.
pub(super) fn told_after(topics: &Arc<Topics>, mut after: u64) -> Vec<ApprovalEvent> {
    let mut told = Vec::new();
    let globs = ["approval.requested", "approval.resolved"];
    let globs: Vec<TopicGlob> =
        globs.into_iter().filter_map(|glob| glob.to_owned().try_into().ok()).collect();
    loop {
        // A place that nobody has come to yet: these are events of another life.
        let Ok(page) = topics.read(globs.clone(), Some(after), PAGE) else { return told };
        for event in &page.events {
            let known = match event.topic.as_str() {
                "approval.requested" => Announced::Question,
                "approval.resolved" => Announced::Outcome,
                _ => continue,
            };
            let payload = serde_json::from_str::<Value>(event.payload.get()).unwrap_or_default();
            if let Some(id) = payload["approval_id"].as_str() {
                told.push(ApprovalEvent::Announced { id: id.to_owned(), known });
            }
        }
        if page.events.len() < PAGE {
            return told;
        }
        after = page.next;
    }
}

/// Whether something became of a grant.
pub(super) fn is_of_grant(event: &ApprovalEvent) -> bool {
    matches!(event, ApprovalEvent::Granted { .. } | ApprovalEvent::Revoked { .. })
}

/// Says what became of grants.
pub(super) fn announce_grants(topics: &Topics, events: &[ApprovalEvent]) {
    for event in events {
        match event {
            ApprovalEvent::Granted { approval_id, grant } => {
                let by = user(&grant.granted_by);
                let payload = json!({
                    "grant_id": grant.id, "approval_id": approval_id, "agent": grant.agent, "action": grant.action,
                    "granted_by": grant.granted_by, "expires_at": timestamp(grant.expires_at),
                });
                say(topics, "grant.given", &Meta::default(), &by, &payload);
            }
            ApprovalEvent::Revoked { grant_id, by, at } => {
                let actor = by.as_deref().map_or_else(Actor::system, user);
                let payload = json!({ "grant_id": grant_id, "revoked_by": by, "revoked_at": timestamp(*at) });
                say(topics, "grant.revoked", &Meta::default(), &actor, &payload);
            }
            _ => {}
        }
    }
}

fn resolved(id: &str, outcome: &Outcome) -> Value {
    let mut payload = json!({ "approval_id": id });
    if let (Some(payload), Ok(Value::Object(outcome))) =
        (payload.as_object_mut(), serde_json::to_value(outcome_to_wire(outcome)))
    {
        payload.extend(outcome);
    }
    payload
}

fn context(approval: &Approval) -> Meta {
    let request = &approval.request;
    Meta {
        workspace_id: workspace_of(approval),
        session_id: request.session_id.clone().and_then(|id| SessionId::try_from(id).ok()),
        correlation_id: request.correlation_id.clone().and_then(|id| CorrelationId::try_from(id).ok()),
        ..Meta::default()
    }
}

/// Only people answer; where nobody did, the daemon says what follows from that.
fn answerer(outcome: &Outcome) -> Actor {
    outcome.resolved_by.as_deref().map_or_else(Actor::system, user)
}

fn user(id: &str) -> Actor {
    Actor::new("user", id).unwrap_or_else(|_| Actor::system())
}

fn say(topics: &Topics, topic: &str, meta: &Meta, actor: &Actor, payload: &Value) {
    if let Err(error) = topics.publish(topic, meta, Some(actor), payload) {
        tracing::warn!(%error, topic, "not published");
    }
}
