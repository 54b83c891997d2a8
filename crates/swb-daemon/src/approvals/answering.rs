//! Answers, and what they leave behind: grants taken back, tokens spent.

use std::io;
use std::sync::Arc;

use swb_proto::id::GrantId;
use swb_rules::approval::{ApprovalEvent, Binding, Choice, Desk, Outcome, Resolve, ResolveError, TokenError};
use swb_rules::policy::{Actor, ActorKind};

use super::asking::Approvals;
use super::error::AnswerError;
use super::subject::presentable_reason;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which question.
    pub approval: String,
    /// The answer.
    pub choice: Choice,
    /// Who gives it, as the gate has found out.
    pub by: Actor,
    /// In their words.
    pub reason: Option<String>,
}

/// An answer that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The outcome.
    pub outcome: Outcome,
    /// The token, where the call demands one. Only its hash is kept.
    pub token: Option<String>,
}

/// Why a token was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpendError {
    /// It is worth nothing here.
    #[error("{}", .0.message())]
    Invalid(#[source] TokenError),
    /// That it was used could not be written, so it was not.
    #[error("the use of the approval token could not be kept")]
    NotKept(#[source] io::Error),
}

impl Approvals {
    /// Takes an answer. When this returns, it is on disk and everybody was told.
    pub async fn resolve(self: &Arc<Self>, answer: Answer) -> Result<Answered, AnswerError> {
        if answer.by.kind() != ActorKind::User {
            return Err(AnswerError::NotAPerson);
        }
        let approvals = Arc::clone(self);
        let answered = tokio::task::spawn_blocking(move || {
            // Before the answer counts: without randomness there is no token, and then no approval that needs one.
            let mut random = [0; 32];
            getrandom::fill(&mut random).map_err(|error| AnswerError::NotKept(io::Error::other(error)))?;
            let grant_id = GrantId::from_ulid(approvals.mint.unique());
            approvals
                .change(|desk, now| take(desk, now, answer, grant_id.as_str(), &random))
                .map_err(AnswerError::NotKept)?
        });
        answered.await.unwrap_or_else(|panic| Err(AnswerError::NotKept(io::Error::other(panic))))
    }

    /// Takes back what was allowed for a session.
    pub async fn revoke(self: &Arc<Self>, grant: String, by: Actor) -> Result<(), AnswerError> {
        if by.kind() != ActorKind::User {
            return Err(AnswerError::NotAPerson);
        }
        let approvals = Arc::clone(self);
        let revoked = tokio::task::spawn_blocking(move || {
            let revoke = |desk: &mut Desk, now| match desk.revoke(now, &grant, &by) {
                Ok(events) => (Ok(()), events),
                Err(error) => (Err(AnswerError::UnknownGrant { id: error.id }), Vec::new()),
            };
            approvals.change(revoke).map_err(AnswerError::NotKept)?
        });
        revoked.await.unwrap_or_else(|panic| Err(AnswerError::NotKept(io::Error::other(panic))))
    }

    /// Uses a token up. It is good once, and only for what it was issued for.
    pub async fn spend(self: &Arc<Self>, token: String, shown_for: Binding) -> Result<(), SpendError> {
        let approvals = Arc::clone(self);
        let spent = tokio::task::spawn_blocking(move || {
            let spend = |desk: &mut Desk, now| match desk.spend_token(now, &token, &shown_for) {
                Ok(events) => (Ok(()), events),
                Err(error) => (Err(SpendError::Invalid(error)), Vec::new()),
            };
            approvals.change(spend).map_err(SpendError::NotKept)?
        });
        spent.await.unwrap_or_else(|panic| Err(SpendError::NotKept(io::Error::other(panic))))
    }
}

type Taken = Result<Answered, AnswerError>;

fn take(
    desk: &mut Desk,
    now: u64,
    answer: Answer,
    grant_id: &str,
    random: &[u8; 32],
) -> (Taken, Vec<ApprovalEvent>) {
    let id = answer.approval.as_str();
    let resolve = Resolve {
        id,
        choice: answer.choice,
        by: &answer.by,
        reason: answer.reason.map(|reason| presentable_reason(&reason)),
        grant_id,
    };
    match desk.resolve(now, resolve) {
        Ok(resolution) => {
            let mut events = resolution.events;
            // Where no token is due, this is an error that says so.
            let token = desk.issue_token(now, id, random).ok().map(|(token, issued)| {
                events.extend(issued);
                token
            });
            (Ok(Answered { outcome: resolution.outcome, token }), events)
        }
        Err(ResolveError::AlreadyResolved { id, outcome, events }) => {
            (Err(AnswerError::AlreadyResolved { id, outcome }), events)
        }
        Err(ResolveError::NoSuchOption { id }) => {
            let options = desk.get(&id).map(|approval| approval.options.clone()).unwrap_or_default();
            (Err(AnswerError::NoSuchOption { id, options }), Vec::new())
        }
        Err(ResolveError::NotForAgents) => (Err(AnswerError::NotAPerson), Vec::new()),
        Err(_) => (Err(AnswerError::Unknown { id: answer.approval }), Vec::new()),
    }
}
