//! A record as the doors show it. The reserved keys are gone by then; what they said about a cut body is said in the open.

use std::fmt::Display;

use swb_proto::message::{EventItem, LinkItem, MessageItem, Moment, ParentItem, Words};

use super::record::{BodyState, Link, Parent, Record};
use super::timestamp::Timestamp;

impl<'a> From<&'a Record<'_>> for MessageItem<'a> {
    fn from(record: &'a Record<'_>) -> Self {
        Self {
            msg_id: &record.id,
            timestamp: moment(record.timestamp.as_ref()),
            r#type: &record.kind,
            project_id: &record.project_id,
            task_id: &record.task_id,
            run_id: &record.run_id,
            issue_id: &record.issue_id,
            parents: record.parents.iter().map(parent).collect(),
            links: record.links.iter().map(link).collect(),
            meta: Words(&record.meta),
            body: record.body_text(),
            body_cut: record.body_state == BodyState::Cut,
        }
    }
}

impl<'a> From<&'a Record<'_>> for EventItem<'a> {
    fn from(record: &'a Record<'_>) -> Self {
        Self(record.into())
    }
}

/// A time that a message may not have.
pub fn moment(time: Option<&Timestamp>) -> Moment<'_> {
    Moment(time.map(|time| time as &dyn Display))
}

fn parent<'a>(parent: &'a Parent<'_>) -> ParentItem<'a> {
    ParentItem { msg_id: &parent.id, kind: &parent.kind, meta: Words(&parent.meta) }
}

fn link<'a>(link: &'a Link<'_>) -> LinkItem<'a> {
    LinkItem { url: &link.url, label: &link.label, kind: &link.kind }
}
