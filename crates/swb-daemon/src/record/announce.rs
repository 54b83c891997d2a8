//! `audit.recorded`: told to whoever listens, for each command that ended. It is never recorded itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use serde_json::json;
use swb_bus::topics::Topics;
use swb_journal::audit::{Entry, Receipt};
use swb_proto::{Actor, Meta};

use super::events::RECORDED;

/// Where it is told, and whether anybody listens.
#[derive(Debug)]
pub(super) struct Announcer {
    /// The topics hold the recorder, so the recorder must not hold the topics.
    topics: OnceLock<Weak<Topics>>,
    /// The audience when it was last asked, and one bit: whether somebody in it listens.
    asked: AtomicU64,
}

impl Default for Announcer {
    fn default() -> Self {
        Announcer { topics: OnceLock::new(), asked: AtomicU64::new(u64::MAX) }
    }
}

impl Announcer {
    pub(super) fn speak_on(&self, topics: &Arc<Topics>) {
        let _ = self.topics.set(Arc::downgrade(topics));
    }

    /// Tells that the end of a command was recorded. Costs two loads when nobody listens.
    pub(super) fn recorded(&self, end: &Entry, receipt: &Receipt) {
        let Some(topics) = self.topics.get().and_then(Weak::upgrade) else { return };
        if !self.is_heard(&topics) {
            return;
        }
        let mut payload = json!({
            "audit_id": receipt.number.to_string(),
            "type": "command",
            "method_or_topic": end.method,
            "outcome": end.status,
        });
        if let Some(decision) = &end.decision {
            payload["decision_id"] = decision.id.clone().into();
        }
        let actor = end.actor.as_ref().and_then(|actor| Actor::new(&actor.kind, &actor.id).ok());
        let scope = Meta {
            workspace_id: end.workspace_id.clone().and_then(|id| id.try_into().ok()),
            lane_id: end.lane_id.clone().and_then(|id| id.try_into().ok()),
            session_id: end.session_id.clone().and_then(|id| id.try_into().ok()),
            terminal_id: end.terminal_id.clone().and_then(|id| id.try_into().ok()),
            correlation_id: end.correlation_id.clone().and_then(|id| id.try_into().ok()),
            ..Meta::default()
        };
        // A bus that is closed tells nothing more, and the record is written.
        if let Err(error) = topics.publish(RECORDED, &scope, actor.as_ref(), &payload) {
            tracing::debug!(%error, "not published");
        }
    }

    fn is_heard(&self, topics: &Topics) -> bool {
        let audience = topics.audience();
        let asked = self.asked.load(Ordering::Relaxed);
        if asked >> 1 == audience & (u64::MAX >> 1) && asked != u64::MAX {
            return asked & 1 == 1;
        }
        let heard = topics.is_wanted(RECORDED);
        self.asked.store(audience << 1 | u64::from(heard), Ordering::Relaxed);
        heard
    }
}
