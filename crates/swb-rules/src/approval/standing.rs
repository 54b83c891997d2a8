//! What answers leave behind: grants for the session, tokens for shares.

use thiserror::Error;

use super::deadline::millis;
use super::desk::Desk;
use super::event::ApprovalEvent;
use super::outcome::Outcome;
use super::token::{Binding, TOKEN_LIFE, TokenError, hash_of, token_text};
use crate::policy::{Actor, Grant, Input};

/// Why a grant was not taken back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no grant {id}")]
pub struct RevokeError {
    /// The id.
    pub id: String,
}

/// Why no token was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IssueError {
    /// The approval does not exist, was not given, or is not for something that takes a token.
    #[error("no token can be made of this approval")]
    NotApproved,
    /// One was made already.
    #[error("the token of this approval was already made")]
    AlreadyIssued,
}

impl Desk {
    /// The standing approval that answers the question about this call, if there is one.
    #[must_use]
    pub fn covering(&self, now: u64, input: &Input) -> Option<&Grant> {
        let now = self.not_before(now);
        self.grants.iter().find(|grant| grant.covers(input, now))
    }

    /// The standing approvals that hold now.
    pub fn grants(&self, now: u64) -> impl Iterator<Item = &Grant> {
        let now = self.not_before(now);
        self.grants.iter().filter(move |grant| now < grant.expires_at)
    }

    /// Takes a standing approval back.
    pub fn revoke(
        &mut self,
        now: u64,
        grant_id: &str,
        by: &Actor,
    ) -> Result<Vec<ApprovalEvent>, RevokeError> {
        let at = self.not_before(now);
        if !self.grants(at).any(|grant| grant.id == grant_id) {
            return Err(RevokeError { id: grant_id.to_owned() });
        }
        let by = Some(by.id().to_owned());
        let events = vec![ApprovalEvent::Revoked { grant_id: grant_id.to_owned(), by, at }];
        self.apply_all(&events);
        Ok(events)
    }

    /// Some of what happened cannot be read any more. What was taken back or used up may be among it, so nothing that
    /// stands is trusted: all grants end, and all tokens are used up.
    pub fn distrust(&mut self, now: u64) -> Vec<ApprovalEvent> {
        let at = self.not_before(now);
        let grants = self.grants.iter().map(|grant| ApprovalEvent::Revoked {
            grant_id: grant.id.clone(),
            by: None,
            at,
        });
        let tokens = self.tokens.iter().filter(|(_, token)| !token.spent);
        let tokens = tokens.map(|(hash, _)| ApprovalEvent::TokenSpent { hash: hash.clone(), at });
        let events: Vec<ApprovalEvent> = grants.chain(tokens).collect();
        self.apply_all(&events);
        events
    }

    /// Makes the token of an approved share out of random bytes. Once.
    pub fn issue_token(
        &mut self,
        now: u64,
        approval_id: &str,
        random: &[u8; 32],
    ) -> Result<(String, Vec<ApprovalEvent>), IssueError> {
        let now = self.not_before(now);
        let approval = self.approvals.get(approval_id).ok_or(IssueError::NotApproved)?;
        let approved = approval.outcome.as_ref().is_some_and(Outcome::is_approved);
        let binding =
            approval.request.token_for.clone().filter(|_| approved).ok_or(IssueError::NotApproved)?;
        if approval.token_issued {
            return Err(IssueError::AlreadyIssued);
        }
        let text = token_text(random);
        let events = vec![ApprovalEvent::TokenIssued {
            approval_id: approval_id.to_owned(),
            hash: hash_of(&text),
            binding,
            expires_at: now.saturating_add(millis(TOKEN_LIFE)),
        }];
        self.apply_all(&events);
        Ok((text, events))
    }

    /// Uses a token up. What it is shown for must be exactly what it was issued for.
    pub fn spend_token(
        &mut self,
        now: u64,
        token: &str,
        shown_for: &Binding,
    ) -> Result<Vec<ApprovalEvent>, TokenError> {
        let at = self.not_before(now);
        let hash = hash_of(token);
        let (_, known) = self.tokens.iter().find(|(known, _)| *known == hash).ok_or(TokenError::Unknown)?;
        if known.spent {
            return Err(TokenError::Spent);
        }
        if at >= known.expires_at {
            return Err(TokenError::Expired);
        }
        if known.binding != *shown_for {
            return Err(TokenError::Foreign);
        }
        let events = vec![ApprovalEvent::TokenSpent { hash, at }];
        self.apply_all(&events);
        Ok(events)
    }
}
