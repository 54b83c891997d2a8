//! Telling the house what was posted: a count, and the event `message.posted`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use swb_bus::topics::Topics;
use swb_journal::message_bus::{Appended, Draft};
use swb_proto::{Actor, Meta};

use crate::messages::Scope;
use crate::metrics::Metrics;
use crate::postmaster::{Expected, Postmaster};

#[derive(Debug)]
pub(crate) struct Announce {
    pub(crate) topics: Arc<Topics>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) postmaster: Option<Arc<dyn Postmaster>>,
}

/// The event `message.posted`.
#[derive(Debug, Serialize)]
struct PostedEvent<'a> {
    project: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    msg_id: &'a str,
    r#type: &'a str,
}

impl Announce {
    /// A message is about to be written.
    pub(crate) fn expect(&self, scope: &Scope) -> Option<Box<dyn Expected>> {
        self.postmaster.as_ref()?.expect(scope.project(), scope.task()?)
    }

    /// One write is done, whatever number of messages it held.
    pub(crate) fn written(&self) {
        self.metrics.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// A message is in its file. Repeating a post is no news, and the first may have come another way.
    pub(crate) fn posted(
        &self,
        scope: &Scope,
        draft: &Draft,
        actor: &Actor,
        appended: &Appended,
        expected: Option<Box<dyn Expected>>,
    ) {
        if appended.already_posted {
            return;
        }
        if let Some(expected) = expected {
            expected.posted(appended.id.as_str(), draft, actor);
        }
        self.metrics.appends.fetch_add(1, Ordering::Relaxed);
        let (msg_id, project, task) = (appended.id.as_str(), scope.project(), scope.task());
        let event = PostedEvent { project, task, msg_id, r#type: &draft.kind };
        // That nobody hears of it here is no reason to tell its poster otherwise.
        if let Err(error) = self.topics.publish("message.posted", &Meta::default(), Some(actor), &event) {
            tracing::warn!(%error, "message.posted was not published");
        }
    }
}
