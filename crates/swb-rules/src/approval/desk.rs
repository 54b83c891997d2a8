//! The desk: all approvals, grants and tokens, and what events make of them.
//!
//! What can be done with them stands in `answering` (questions) and `standing` (grants and tokens).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::deadline::{AT_LEAST_AFTER_RESTART, millis};
use super::event::ApprovalEvent;
use super::request::Approval;
use super::token::Token;
use crate::policy::Grant;

/// Most questions that may wait at once; one more is refused, which means no.
pub const MAX_PENDING: usize = 1_000;
/// Most outcomes that are remembered, so that a late answer can be told.
pub const MAX_RESOLVED: usize = 1_000;
/// Most grants and tokens that are remembered.
const MAX_KEPT: usize = 1_000;

/// All approvals. Serialized it is a snapshot; events that came later are applied on top.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desk {
    pub(super) approvals: BTreeMap<String, Approval>,
    /// Those with an outcome, the oldest first.
    resolved: VecDeque<String>,
    /// The oldest first.
    pub(super) grants: VecDeque<Grant>,
    pub(super) tokens: VecDeque<(String, Token)>,
    /// The latest moment seen: time does not go back.
    latest: u64,
    /// Where in the order of all that is told the latest news was told, or was about to be.
    #[serde(default)]
    told_after: u64,
}

impl Desk {
    /// What the events make of an empty desk.
    pub fn replay(events: impl IntoIterator<Item = ApprovalEvent>) -> Self {
        let mut desk = Self::default();
        for event in events {
            desk.apply(event);
        }
        desk
    }

    /// The next moment at which something expires.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.pending().map(|approval| approval.deadline).min()
    }

    /// The place behind which whatever may or may not have been told before a crash would stand.
    #[must_use]
    pub fn told_after(&self) -> u64 {
        self.told_after
    }

    /// One question.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Approval> {
        self.approvals.get(id)
    }

    /// All questions that are remembered, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.values()
    }

    /// Questions that wait for an answer.
    pub fn pending(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.values().filter(|approval| approval.is_pending())
    }

    /// Questions that wait and were asked by this agent or one below it.
    pub fn pending_for(&self, agent: &str) -> impl Iterator<Item = &Approval> {
        self.pending().filter(move |approval| approval.concerns(agent))
    }

    /// Applies an event. What does not fit (a second outcome, an id that is not known) changes nothing.
    pub fn apply(&mut self, event: ApprovalEvent) {
        match event {
            ApprovalEvent::Requested { approval } => {
                self.latest = self.latest.max(approval.requested_at);
                let id = approval.request.id.clone();
                self.approvals.entry(id).or_insert(*approval);
            }
            ApprovalEvent::Resolved { id, outcome } => {
                self.latest = self.latest.max(outcome.resolved_at);
                if let Some(approval) = self.approvals.get_mut(&id).filter(|approval| approval.is_pending()) {
                    approval.outcome = Some(outcome);
                    self.resolved.push_back(id);
                    self.forget_oldest();
                }
            }
            ApprovalEvent::Granted { grant, .. } => {
                self.latest = self.latest.max(grant.granted_at);
                let latest = self.latest;
                self.grants.retain(|known| known.id != grant.id && latest < known.expires_at);
                self.grants.push_back(grant);
                if self.grants.len() > MAX_KEPT {
                    self.grants.pop_front();
                }
            }
            ApprovalEvent::Revoked { grant_id, at, .. } => {
                self.latest = self.latest.max(at);
                self.grants.retain(|grant| grant.id != grant_id);
            }
            ApprovalEvent::TokenIssued { approval_id, hash, binding, expires_at } => {
                if let Some(approval) = self.approvals.get_mut(&approval_id) {
                    approval.token_issued = true;
                }
                self.tokens.push_back((hash, Token { binding, expires_at, spent: false }));
                if self.tokens.len() > MAX_KEPT {
                    self.tokens.pop_front();
                }
            }
            ApprovalEvent::TokenSpent { hash, at } => {
                self.latest = self.latest.max(at);
                if let Some((_, token)) = self.tokens.iter_mut().find(|(known, _)| *known == hash) {
                    token.spent = true;
                }
            }
            ApprovalEvent::Telling { after } => self.told_after = self.told_after.max(after),
            ApprovalEvent::Announced { id, known } => {
                if let Some(approval) = self.approvals.get_mut(&id) {
                    approval.announced = approval.announced.max(known);
                }
            }
            ApprovalEvent::Restarted { at } => {
                self.latest = self.latest.max(at);
                let earliest = self.latest.saturating_add(millis(AT_LEAST_AFTER_RESTART));
                for approval in self.approvals.values_mut().filter(|approval| approval.is_pending()) {
                    // Where nobody can be asked, a restart brings nobody.
                    if approval.deadline > approval.requested_at {
                        approval.deadline = approval.deadline.max(earliest);
                    }
                }
            }
        }
    }

    pub(super) fn apply_all(&mut self, events: &[ApprovalEvent]) {
        for event in events {
            self.apply(event.clone());
        }
    }

    /// `now`, or the latest moment seen if that is later.
    pub(super) fn not_before(&self, now: u64) -> u64 {
        now.max(self.latest)
    }

    fn forget_oldest(&mut self) {
        if self.resolved.len() > MAX_RESOLVED
            && let Some(oldest) = self.resolved.pop_front()
        {
            self.approvals.remove(&oldest);
        }
    }
}
